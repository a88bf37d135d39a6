"""Any function of a state as a policy.

A function in JAX is traced, so it is compiled, vectorised and stacked like everything else. Plain Python or
NumPy is called back from compiled code, with all states of a batch at once; it has no gradient and must not
depend on anything but the state, for it may be called more often than actions are used.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.policies import action_heads

NOT_JAX = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def policy_from(
    function: Any,
    actions: Any,
    *,
    returns: str = "action",
    runs: str = "jax",
    name: str | None = None,
) -> Any:
    """A policy that acts as a function of the state says.

    `actions` is a Gymnasium space (`env.action_space`), the number of discrete actions, or bounds (low, high)
    with one number for each coordinate, to which actions are clipped.

    The function `returns` an "action" (an integer, or a vector), or a distribution: "probabilities" or "logits"
    [A] of discrete actions, or "gaussian", a pair (mean, deviation) of vectors.

    It `runs` in "jax", on one state; in "python", which is called for one state at a time and takes NumPy; or in
    "python-batch", which is called with states [N, D] and returns N rows: much faster than "python".
    """
    space = _space(actions)
    allowed = ("action", "probabilities", "logits") if isinstance(space, Discrete) else ("action", "gaussian")
    if returns not in allowed:
        raise ValueError(f"with actions {space} a function returns one of {allowed}, got returns={returns!r}")
    if runs not in ("jax", "python", "python-batch"):
        raise ValueError(f"a function runs in 'jax', 'python' or 'python-batch', got runs={runs!r}")
    if not callable(function):
        raise TypeError(f"policy_from takes a function of the state, got {type(function).__name__}")
    called = getattr(function, "__name__", type(function).__name__).strip("<>")
    wrapped = Function(_hashable(function), name or called, runs, returns, *_form(space))
    return _policy(wrapped, space, name or called)


def _policy(function: Function, space: Any, name: str) -> Any:
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


class Function(eqx.Module):
    """A user's function with what it promised to return."""

    code: Any
    name: str
    runs: str = eqx.field(static=True)
    returns: str = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    """The shape of an action."""
    count: int = eqx.field(static=True)
    """The number of discrete actions, 0 for vectors."""

    def __call__(self, state: Any) -> Any:
        given = self._traced(state) if self.runs == "jax" else self._called_back(state)
        return jnp.log(given) if self.returns == "probabilities" else given

    def _traced(self, state: Any) -> Any:
        try:
            given = self.code(state)
        except NOT_JAX as error:
            raise TypeError(
                f"policy {self.name!r} is no JAX function; for plain Python say runs='python' "
                f"(or runs='python-batch' for states [N, D]): {error}"
            ) from error
        return self._checked(given, (), jnp)

    def _called_back(self, state: Any) -> Any:
        wanted = jax.ShapeDtypeStruct(self._row(), jnp.int32 if self._chooses() else jnp.float32)
        result = (wanted, wanted) if self.returns == "gaussian" else wanted
        state = jax.lax.stop_gradient(state)
        return jax.pure_callback(self._on_host, result, state, vmap_method="broadcast_all")

    def _on_host(self, states: Any) -> Any:
        """The rows of all states, whatever axes they come in."""
        states = np.asarray(states)
        inner = 0 if states.dtype.kind in "iu" else 1
        batch, one = states.shape[: states.ndim - inner], states.shape[states.ndim - inner :]
        flat = states.reshape(math.prod(batch), *one)
        if self.runs == "python-batch":
            given = self.code(flat)
        else:
            given = [self.code(state) for state in flat]
            given = tuple(zip(*given, strict=True)) if self.returns == "gaussian" else given
        given = self._checked(given, (len(flat),), np)
        return jax.tree.map(lambda leaf: leaf.reshape(*batch, *self._row()), given)

    def _checked(self, given: Any, batch: tuple[int, ...], numpy: Any) -> Any:
        """What was returned as arrays of the promised shape; `batch` are the axes before it."""
        if self.returns == "gaussian":
            if not isinstance(given, tuple | list) or len(given) != 2:
                raise ValueError(f"policy {self.name!r} promised a pair (mean, deviation), got {given!r}")
            return tuple(self._array(part, batch, numpy) for part in given)
        return self._array(given, batch, numpy)

    def _array(self, given: Any, batch: tuple[int, ...], numpy: Any) -> Any:
        given = numpy.asarray(given)
        if given.shape != (*batch, *self._row()):
            raise ValueError(
                f"policy {self.name!r} returned {self.returns} of shape {given.shape}, "
                f"{(*batch, *self._row())} was expected"
            )
        if not self._chooses():
            return given.astype(numpy.float32)
        if not numpy.issubdtype(given.dtype, numpy.integer):
            raise TypeError(
                f"policy {self.name!r} returned {given.dtype}, discrete actions are integers; "
                "for a distribution say returns='probabilities' or 'logits'"
            )
        if numpy is np and not ((given >= 0) & (given < self.count)).all():
            raise ValueError(f"policy {self.name!r} has actions 0 to {self.count - 1}, it returned {given}")
        return given.astype(numpy.int32)

    def _chooses(self) -> bool:
        return bool(self.count) and self.returns == "action"

    def _row(self) -> tuple[int, ...]:
        """The shape of what is returned for one state."""
        return (self.count,) if self.returns in ("probabilities", "logits") else self.shape


def _space(actions: Any) -> Discrete | Box:
    if isinstance(actions, Discrete | Box):
        space = actions
    elif isinstance(actions, int | np.integer) and not isinstance(actions, bool) and actions > 0:
        space = Discrete(int(actions))
    elif isinstance(actions, tuple | list) and len(actions) == 2:
        low, high = (np.asarray(bound, np.float32) for bound in actions)
        if low.ndim != 1 or low.shape != high.shape or not (low < high).all():
            raise ValueError(f"bounds have one number per coordinate, ([-1, -1], [1, 1]), got {actions}")
        space = Box(low, high)
    else:
        raise TypeError(f"actions are a Box, a Discrete, a number of actions or (low, high), got {actions!r}")
    if (isinstance(space, Box) and len(space.shape) != 1) or (isinstance(space, Discrete) and space.start):
        raise ValueError(f"actions are vectors, or discrete from 0; got {space}")
    return space


def _form(space: Any) -> tuple[tuple[int, ...], int]:
    """The shape of an action, and how many there are."""
    return space.shape, int(space.n) if isinstance(space, Discrete) else 0


def _hashable(function: Any) -> Any:
    """The function; compiled programs are looked up by it, so what has no hash of its own gets one."""
    if not jax.tree_util.all_leaves([function]):
        return function
    try:
        hash(function)
    except TypeError:
        return lambda state: function(state)
    return function
