"""Rewards of sampled states: from arrays, JAX functions or plain Python functions, terminals respected.

A function is written for one state. One that JAX can trace runs inside the compiled program, its parameters as
arguments. Any other is called on the host, sample by sample: slower, with the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi.evaluation.functions import UserError, blamed, guarded, wrong_index
from ggpi.ghm.network_sampler import NetworkSampler
from ggpi.ghm.samplers import ModelSampler, Table, TableSampler
from ggpi.rewards import Each, Features, Formula, Reward, Target
from ggpi.types import Numbers, Sampler

PolicyIndices = tuple[int, ...] | Int[Array, "K"]
UNTRACEABLE = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
)
CHECKED = Target | Features | Formula
"""Rewards whose indices are known without tracing them."""


class OnHost(eqx.Module):
    """A Python function that JAX cannot trace."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *sample: Any) -> Any:
        return self.function(*sample)

    def of_rows(self, *rows: Numbers) -> np.ndarray:
        """The reward of each row; an error names the sample that led to it."""
        rows = tuple(np.asarray(part) for part in rows)
        found = np.empty(len(rows[0]), np.float32)
        for i, sample in enumerate(zip(*rows, strict=True)):
            try:
                value = np.asarray(self.function(*sample), np.float32)
            except Exception as error:
                words, cause = blamed(error)
                raise ValueError(f"the reward raised {words} {_at(i, sample)}") from cause
            if value.shape != ():
                raise ValueError(f"a reward is one number, got shape {value.shape} {_at(i, sample)}")
            found[i] = value
        return found


class PolicyReward(eqx.Module):
    """r^π(x) of every policy of a finite MDP: actions need not be drawn, which would add variance."""

    r: Float[Array, "S A"]
    r_pi: Float[Array, "K S"]

    def __call__(self, policies: PolicyIndices, x: Numbers, action: Numbers | None) -> Array:
        """r^π of the policies at x [nodes, P, n], policy by policy; r(x, a) where an action is given."""
        if action is not None:
            return self.r[x, action]
        policy = jnp.repeat(jnp.asarray(policies, jnp.int32), len(x) // len(policies))[:, None, None]
        return self.r_pi.ravel()[x + self.r_pi.shape[1] * policy]


SampledForm = Literal["state", "state_action", "arrival", "policy"]
"""The form of a reward, where "policy" means that r^π(x) is known."""


class SampledReward(eqx.Module):
    """A reward at many sampled states: 0 on leaving a terminal state, and once on entering it."""

    values: Any
    form: SampledForm = eqx.field(static=True)
    arriving: float | Float[Array, ""] | Float[np.ndarray, ""]
    """1 − γ: so much of μ's mass at a terminal state is that of the arrival."""
    terminal: Callable[[Any], Any] | None

    @property
    def depends_on_policy(self) -> bool:
        return self.form in ("state_action", "policy")

    def __call__(self, policies: PolicyIndices, x: Numbers, action: Numbers | None = None) -> Array:
        """r at x [nodes, P, n, …], where these policies act or the actions are given."""
        if self.form == "policy":
            r = self.values(policies, x, action)
        else:
            used = () if action is None or self.form != "state_action" else (action,)
            r = rewards_at(self.values, x, *used)
        if self.terminal is None:
            return r
        once = self.arriving * r if self.form == "arrival" else 0.0
        return jnp.where(over(self.terminal, x), once, r)

    def now(self, states: Numbers) -> Array:
        """r(x) on leaving states [P, …], if that is what the form says; else 0."""
        if self.form != "state":
            return jnp.zeros(len(states))
        return self((), states[None, :, None])[0, :, 0]

    def has_ended(self, states: Numbers) -> Array | None:
        """Which states [P, …] are terminal; None if none is."""
        return None if self.terminal is None else jax.vmap(self.terminal)(states)

    def for_rows(self, rows: Callable[[Array], Array]) -> SampledReward:
        """The same reward for other rows of states, as `rows` makes them of arrays [B, …]."""
        if not isinstance(self.values, Each):
            return self
        return eqx.tree_at(lambda old: old.values, self, jax.tree.map(rows, self.values))


def sampled_reward(reward: Reward, sampler: Sampler) -> SampledReward:
    """A reward as an evaluator needs it; arrays are those of a finite MDP."""
    values, form = reward.values, reward.form
    if not callable(values):
        if isinstance(sampler, ModelSampler | NetworkSampler | TableSampler):
            check_table(reward, sampler.pi.shape[1:] if isinstance(sampler, TableSampler) else None)
        values = Table(jnp.asarray(values, jnp.float32))
        if form == "state_action" and isinstance(sampler, TableSampler):
            values = PolicyReward(values.values, (sampler.pi * values.values).sum(axis=-1))
            form = "policy"
    return SampledReward(values, form, np.asarray(1 - sampler.gamma, np.float32), sampler.terminal)


def checked_reward(
    reward: Reward,
    state: jax.ShapeDtypeStruct,
    action: jax.ShapeDtypeStruct,
    sizes: tuple[int, ...] | None = None,
) -> Reward:
    """The reward, after a try on shapes alone; a function that JAX cannot trace becomes one that runs on the host.

    Args:
        reward: the reward.
        state: the shape of a state.
        action: the shape of an action.
        sizes: the numbers of states and of actions of a finite MDP.
    """
    values = reward.values
    if not callable(values):
        check_table(reward, sizes)
        return reward
    one = jax.tree.map(lambda leaf: leaf[0], values.values) if isinstance(values, Each) else values
    _check_indices(one, state)
    sample = (state, action) if reward.form == "state_action" else (state,)
    shapes = " and an action ".join(str(part.shape) for part in sample)
    called = guarded(one, UNTRACEABLE)
    try:
        jaxpr, found = jax.make_jaxpr(called, return_shape=True)(*sample)
    except UNTRACEABLE as error:
        if isinstance(values, Each):
            raise ValueError(
                f"rewards of a batch are computed in one compiled program, and JAX cannot trace {type(one).__name__}: "
                "write it with jax.numpy, jnp.where in the place of if; or give each reward to an agent of its own, "
                f"which also takes plain Python: agent.with_reward(reward). JAX says: {str(error).splitlines()[0]}"
            ) from error
        return Reward(reward.form, OnHost(values))
    except UserError as error:
        words, cause = blamed(error.__cause__ or error)
        raise ValueError(f"the reward raised {words} on a state of shape {shapes}") from cause
    if found.shape != ():
        raise ValueError(
            f"a reward is one number for one state, got shape {found.shape} on a state of shape {state.shape}"
        )
    if not isinstance(one, CHECKED) and (said := wrong_index(called, jaxpr, sample)):
        raise ValueError(
            f"the reward has an index that is out of range, where JAX would read the nearest entry: {said} "
            f"A state has shape {shapes}; give an index within that"
        )
    return reward


def check_table(reward: Reward, sizes: tuple[int, ...] | None) -> None:
    """Raises unless an array has a reward for every state (and action) of a finite MDP."""
    shape = reward.table.shape
    if sizes is None:
        raise ValueError(
            f"an array {shape} is a reward of the numbered states of a finite MDP; here states are vectors: give a "
            "function of a state, such as ggpi.rewards.arrival(f), or ggpi.rewards.target"
        )
    wanted = sizes if reward.form == "state_action" else sizes[:1]
    if shape != wanted:
        raise ValueError(f"a {reward.form} reward of these models has shape {wanted}, got {shape}")


def _check_indices(values: Any, state: jax.ShapeDtypeStruct) -> None:
    """JAX would read the last coordinate of the state in the place of one that is not there."""
    if not isinstance(values, CHECKED) or len(state.shape) != 1:
        return
    size = state.shape[0]
    if isinstance(values, Formula):
        if values.size != size:
            raise ValueError(
                f"the formula is of states with {values.size} coordinates, these have {size}; give all their names"
            )
        return
    if not all(-size <= i < size for i in values.indices):
        raise ValueError(
            f"the reward reads the coordinates {values.indices} of a state that has {size} (0 to {size - 1}); "
            "give indices that it has"
        )


def stay(terminal: Callable[[Any], Any] | None, start: Numbers, end: Numbers) -> Numbers:
    """The ends of segments from start [K, rows, …]: a terminal state is never left."""
    if terminal is None:
        return end
    stays = jax.vmap(jax.vmap(terminal))(start)
    return jnp.where(stays.reshape(*stays.shape, *[1] * (start.ndim - 2)), start, end)


def over(function: Callable[..., Any], x: Any, *action: Any) -> Any:
    """A function of one state at every state of x [nodes, P, n, …]."""
    return jax.vmap(jax.vmap(jax.vmap(lambda *one: jnp.asarray(function(*one)))))(x, *action)


def first_bad_sample(values: Any, x: Any, *action: Any) -> str | None:
    """Which of the samples x [nodes, P, n, …] has a reward that is not finite, in words."""
    found = np.asarray(rewards_at(values, x, *action))
    bad = np.argwhere(~np.isfinite(found))
    if not len(bad):
        return None
    place = tuple(bad[0])
    return f"the reward is {found[place]} {_at(int(place[2]), [np.asarray(part)[place] for part in (x, *action)])}"


def rewards_at(values: Any, x: Numbers, *action: Numbers) -> Array:
    """The reward of every state (and action) of x [nodes, P, n, …], terminal or not."""
    if isinstance(values, OnHost):
        rows = [np.asarray(part).reshape(-1, *part.shape[3:]) for part in (x, *action)]
        return jnp.asarray(values.of_rows(*rows).reshape(x.shape[:3]))
    if isinstance(values, Each):

        def own(value: Any, *sample: Numbers) -> Array:
            return over(value, *(part[:, None] for part in sample))[:, 0]

        return jax.vmap(own, (0, 1, 1)[: 2 + len(action)], 1)(values.values, x, *action).astype(jnp.float32)
    return over(values, x, *action).astype(jnp.float32)


def _at(i: int, sample: Any) -> str:
    state, *action = (np.array2string(np.asarray(part), precision=3, threshold=12) for part in sample)
    return f"at sample {i}: state {state}" + (f", action {action[0]}" if action else "")
