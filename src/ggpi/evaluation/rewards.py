"""What sampled states are paid: by arrays, JAX functions or plain Python functions, terminals respected.

A function is written for one state. One that JAX can trace runs inside the compiled program, its parameters as
arguments. Any other is called on the host, sample by sample: slower, with the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi.evaluation.functions import UserError, blamed, guarded, wrong_index
from ggpi.rewards import Each, Features, Reward, Target

UNTRACEABLE = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
)


class Table(eqx.Module):
    """An array over the states of a finite MDP, as a function of an integer state (and action)."""

    values: jax.Array

    def __call__(self, *place):
        return self.values[place]


class OnHost(eqx.Module):
    """A Python function that JAX cannot trace."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *given):
        return self.function(*given)

    def pay_all(self, *given: Any) -> np.ndarray:
        """The reward of each row; a sample that it cannot pay is named."""
        given = tuple(np.asarray(part) for part in given)
        paid = np.empty(len(given[0]), np.float32)
        for i, sample in enumerate(zip(*given, strict=True)):
            try:
                value = np.asarray(self.function(*sample), np.float32)
            except Exception as error:
                words, cause = blamed(error)
                raise ValueError(f"the reward raised {words} {_at(i, sample)}") from cause
            if value.shape != ():
                raise ValueError(f"a reward is one number, got shape {value.shape} {_at(i, sample)}")
            paid[i] = value
        return paid


def checked_payment(
    reward: Reward,
    state: jax.ShapeDtypeStruct,
    action: jax.ShapeDtypeStruct,
    sizes: tuple[int, int] | None = None,
) -> Any:
    """The reward's values as a module that pays one state, after a try without numbers.

    `sizes` are the numbers of states and of actions of a finite MDP.
    """
    values = reward.values
    if not callable(values):
        _check_table(reward, state, sizes)
        return Table(jnp.asarray(values, jnp.float32))
    one = jax.tree.map(lambda leaf: leaf[0], values.values) if isinstance(values, Each) else values
    _check_indices(one, state)
    given = (state, action) if reward.form == "state_action" else (state,)
    shapes = " and an action ".join(str(part.shape) for part in given)
    called = guarded(one, UNTRACEABLE)
    try:
        jaxpr, found = jax.make_jaxpr(called, return_shape=True)(*given)
    except UNTRACEABLE as error:
        if isinstance(values, Each):
            raise ValueError(
                f"rewards of a batch are computed in one compiled program, and JAX cannot trace {type(one).__name__}: "
                "write it with jax.numpy, jnp.where in the place of if; or give each reward to an agent of its own, "
                f"which also takes plain Python: agent.with_reward(reward). JAX says: {str(error).splitlines()[0]}"
            ) from error
        return OnHost(values)
    except UserError as error:
        words, cause = blamed(error.__cause__ or error)
        raise ValueError(f"the reward raised {words} on a state of shape {shapes}") from cause
    if found.shape != ():
        raise ValueError(
            f"a reward is one number for one state, got shape {found.shape} on a state of shape {state.shape}"
        )
    if said := wrong_index(called, jaxpr, given):
        raise ValueError(
            f"the reward has an index that is out of range, where JAX would read the nearest entry: {said} "
            f"A state has shape {shapes}; give an index within that"
        )
    return values


def _check_table(reward: Reward, state: jax.ShapeDtypeStruct, sizes: tuple[int, int] | None) -> None:
    shape = np.shape(reward.values)
    if sizes is None:
        raise ValueError(
            f"an array {shape} pays the numbered states of a finite MDP; here a state is a vector {state.shape}: give "
            "a function of it, such as ggpi.rewards.arrival(f), or ggpi.rewards.target"
        )
    wanted = sizes if reward.form == "state_action" else sizes[:1]
    if shape != wanted:
        raise ValueError(f"a {reward.form} reward of these models has shape {wanted}, got {shape}")


def _check_indices(values: Any, state: jax.ShapeDtypeStruct) -> None:
    """JAX would read the last number of the state in the place of one that is not there."""
    if not isinstance(values, Target | Features) or len(state.shape) != 1:
        return
    size = state.shape[0]
    if not all(-size <= i < size for i in values.indices):
        raise ValueError(
            f"the reward reads the numbers {values.indices} of the state, which has {size} (0 to {size - 1}); "
            "give indices that it has"
        )


def payment(
    values: Any, reward_form: str, terminal: Callable[[Any], Any] | None, gamma: float
) -> Callable[..., Any]:
    """x [nodes, P, n, …] (and actions) ↦ r there: nothing is left behind in a terminal state, ρ is paid once."""

    def pay(x, *action):
        paid = pay_all(values, x, *action)
        if terminal is None:
            return paid
        once = (1 - gamma) * paid if reward_form == "arrival" else 0.0
        return jnp.where(over(terminal, x), once, paid)

    return pay


def over(function: Callable[..., Any], x: Any, *action: Any) -> Any:
    """A function of one state at every state of x [nodes, P, n, …]."""
    return jax.vmap(jax.vmap(jax.vmap(lambda *one: jnp.asarray(function(*one)))))(x, *action)


def first_bad_sample(values: Any, x: Any, *action: Any) -> str | None:
    """Which of the samples x [nodes, P, n, …] is not paid a finite number, in words."""
    paid = np.asarray(pay_all(values, x, *action))
    bad = np.argwhere(~np.isfinite(paid))
    if not len(bad):
        return None
    place = tuple(bad[0])
    return f"the reward is {paid[place]} {_at(int(place[2]), [np.asarray(part)[place] for part in (x, *action)])}"


def pay_all(values: Any, x: Any, *action: Any) -> Any:
    """The reward of every state (and action) of x [nodes, P, n, …], terminal or not."""
    if isinstance(values, OnHost):
        rows = [np.asarray(part).reshape(-1, *part.shape[3:]) for part in (x, *action)]
        return jnp.asarray(values.pay_all(*rows).reshape(x.shape[:3]))
    if isinstance(values, Each):
        pay_one = jax.vmap(lambda v, *given: over(v, *(part[:, None] for part in given))[:, 0], (0, 1), 1)
        if action:
            pay_one = jax.vmap(
                lambda v, *given: over(v, *(part[:, None] for part in given))[:, 0], (0, 1, 1), 1
            )
        return pay_one(values.values, x, *action).astype(jnp.float32)
    return over(values, x, *action).astype(jnp.float32)


def _at(i: int, sample: Any) -> str:
    state, *action = (np.array2string(np.asarray(part), precision=3, threshold=12) for part in sample)
    return f"at sample {i}: state {state}" + (f", action {action[0]}" if action else "")
