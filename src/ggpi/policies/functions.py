"""Policies from functions of the state.

A JAX function is traced, so it is compiled, vectorised and stacked like any other policy. A function of plain Python or
NumPy is called back from compiled code, with all states of a batch at once. It has no gradient and must depend on the
state only, because it may be called more often than its actions are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Array

from ggpi._jax.batching import Function
from ggpi.policies import action_heads
from ggpi.policies.action_heads import Head
from ggpi.types import ArrayLike

Actions = Box | Discrete | int | np.integer | Sequence[ArrayLike]
NOT_JAX = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def policy_from(
    function: Function,
    actions: Actions,
    *,
    returns: str = "action",
    runs: str = "jax",
    name: str | None = None,
) -> Head:
    """Makes a policy from a function of the state.

    Args:
        function: Takes one state, an integer or a vector [D].
        actions: A Gymnasium space (`env.action_space`), the number of discrete actions, or bounds (low, high) with one
            number per action dimension, to which actions are clipped.
        returns: "action" (an integer, or a vector); "probabilities" or "logits" [A] of discrete actions; or "gaussian",
            a pair (mean, standard deviation) of vectors.
        runs: "jax"; "python", called with one NumPy state at a time; or "python-batch", called with states [N, D] and
            much faster.
        name: By default the name of the function.
    """
    space = _space(actions)
    allowed = ("action", "probabilities", "logits") if isinstance(space, Discrete) else ("action", "gaussian")
    if returns not in allowed:
        raise ValueError(f"returns must be one of {allowed} for actions {space}, got {returns!r}")
    if runs not in ("jax", "python", "python-batch"):
        raise ValueError(f"runs must be 'jax', 'python' or 'python-batch', got {runs!r}")
    if not callable(function):
        raise TypeError(f"policy_from takes a function of the state, got {type(function).__name__}")
    called = getattr(function, "__name__", type(function).__name__).strip("<>")
    wrapped = UserFunction(_hashable(function), name or called, runs, returns, *_form(space))
    return _policy(wrapped, space, name or called)


def _policy(function: UserFunction, space: Discrete | Box, name: str) -> Head:
    if isinstance(space, Discrete):
        kind = action_heads.ChoicePolicy if function.returns == "action" else action_heads.CategoricalPolicy
        return kind(function, name, int(space.n))
    low, high = jnp.asarray(space.low, jnp.float32), jnp.asarray(space.high, jnp.float32)
    kind = (
        action_heads.DeterministicPolicy
        if function.returns == "action"
        else action_heads.ClippedGaussianPolicy
    )
    return kind(function=function, name=name, low=low, high=high)


class UserFunction(eqx.Module):
    """A function of the user, and what it returns."""

    code: Function
    name: str
    runs: str = eqx.field(static=True)
    returns: str = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    """The shape of an action."""
    count: int = eqx.field(static=True)
    """The number of discrete actions, 0 for vectors."""

    def __call__(self, state: Array) -> Any:
        """The action, logits, or (mean, standard deviation) in one state."""
        result = self._traced(state) if self.runs == "jax" else self._called_back(state)
        return jnp.log(result) if self.returns == "probabilities" else result

    def _traced(self, state: Array) -> Any:
        try:
            result = self.code(state)
        except NOT_JAX as error:
            raise TypeError(
                f"policy {self.name!r} is not a JAX function; for plain Python pass runs='python' "
                f"(or runs='python-batch' for states [N, D]): {error}"
            ) from error
        return self._checked(result, (), jnp)

    def _called_back(self, state: Array) -> Any:
        row = jax.ShapeDtypeStruct(self._row(), jnp.int32 if self._chooses() else jnp.float32)
        result = (row, row) if self.returns == "gaussian" else row
        state = jax.lax.stop_gradient(state)
        return jax.pure_callback(self._on_host, result, state, vmap_method="broadcast_all")

    def _on_host(self, states: ArrayLike) -> Any:
        """Calls the function on states with any leading axes."""
        states = np.asarray(states)
        inner = 0 if states.dtype.kind in "iu" else 1
        batch, one = states.shape[: states.ndim - inner], states.shape[states.ndim - inner :]
        flat = states.reshape(math.prod(batch), *one)
        if self.runs == "python-batch":
            result = self.code(flat)
        else:
            result = [self.code(state) for state in flat]
            result = tuple(zip(*result, strict=True)) if self.returns == "gaussian" else result
        result = self._checked(result, (len(flat),), np)
        return jax.tree.map(lambda leaf: leaf.reshape(*batch, *self._row()), result)

    def _checked(self, result: object, batch: tuple[int, ...], numpy: ModuleType) -> Any:
        """The result as arrays of the expected shape, with the leading axes `batch`."""
        if self.returns == "gaussian":
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise ValueError(
                    f"policy {self.name!r} must return (mean, standard deviation), got {result!r}"
                )
            return tuple(self._array(part, batch, numpy) for part in result)
        return self._array(result, batch, numpy)

    def _array(self, result: object, batch: tuple[int, ...], numpy: ModuleType) -> Any:
        array = numpy.asarray(result)
        if array.shape != (*batch, *self._row()):
            raise ValueError(
                f"policy {self.name!r} returned {self.returns} of shape {array.shape}, "
                f"expected {(*batch, *self._row())}"
            )
        if not self._chooses():
            return array.astype(numpy.float32)
        if not numpy.issubdtype(array.dtype, numpy.integer):
            raise TypeError(
                f"policy {self.name!r} returned {array.dtype}, but discrete actions are integers; "
                "for a distribution pass returns='probabilities' or 'logits'"
            )
        if numpy is np and not ((array >= 0) & (array < self.count)).all():
            raise ValueError(f"policy {self.name!r} has actions 0 to {self.count - 1}, it returned {array}")
        return array.astype(numpy.int32)

    def _chooses(self) -> bool:
        return bool(self.count) and self.returns == "action"

    def _row(self) -> tuple[int, ...]:
        """The shape of the result for one state."""
        return (self.count,) if self.returns in ("probabilities", "logits") else self.shape


def _space(actions: object) -> Discrete | Box:
    if isinstance(actions, Discrete | Box):
        space = actions
    elif isinstance(actions, int | np.integer) and not isinstance(actions, bool) and actions > 0:
        space = Discrete(int(actions))
    elif isinstance(actions, tuple | list) and len(actions) == 2:
        low, high = (np.asarray(bound, np.float32) for bound in actions)
        if low.ndim != 1 or low.shape != high.shape or not (low < high).all():
            raise ValueError(
                f"bounds have one number per action dimension, such as ([-1, -1], [1, 1]), got {actions}"
            )
        space = Box(low, high)
    else:
        raise TypeError(
            f"actions must be a Box, a Discrete, a number of actions or (low, high), got {actions!r}"
        )
    if (isinstance(space, Box) and len(space.shape) != 1) or (isinstance(space, Discrete) and space.start):
        raise ValueError(f"actions must be vectors, or discrete and start at 0; got {space}")
    return space


def _form(space: Discrete | Box) -> tuple[tuple[int, ...], int]:
    """The shape of an action, and the number of discrete actions."""
    return tuple(space.shape or ()), int(space.n) if isinstance(space, Discrete) else 0


def _hashable(function: Function) -> Function:
    """The function, wrapped if it has no hash: compiled programs are looked up by it."""
    if not jax.tree_util.all_leaves([function]):
        return function
    try:
        hash(function)
    except TypeError:
        return lambda state: function(state)
    return function
