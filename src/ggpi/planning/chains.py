"""Returns of some plans of a set, where it is decided at run time which ones.

Plans are given by their rows, in ascending order, so that equal prefixes are neighbours: each is drawn once and serves
all plans below it. All segments of a level share their random numbers (common random numbers): differences between
plans are differences of what they do, and two plans that share a prefix differ only after it.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from ggpi.evaluation.queries import largest_call
from ggpi.evaluation.rewards import SampledReward, sampled_reward, stay
from ggpi.ghm.exact import TabularSampler
from ggpi.ghm.samplers import ModelSampler, TableSampler, place_of
from ggpi.planning.choices import Choices
from ggpi.planning.plans import Plans, Weights
from ggpi.rewards import Reward, as_reward
from ggpi.switching import beta_of
from ggpi.types import Key, Numbers, Sampler

MOST_NODES = 2**10
"""Plans that are sampled at a time."""


class Problem(eqx.Module):
    """Where a search starts, and what it may sample."""

    plans: Plans
    sampler: Sampler
    reward: SampledReward
    state: Any
    choices: Choices | None = None
    """What plans are made of, where they are not listed."""

    def weights(self, rows: Int[Array, "n"]) -> Weights:
        """What each segment of some plans counts."""
        return self.plans.weights(self.sampler.gamma, self.reward.form, rows)

    def width(self, batch: int) -> int:
        """How many plans are sampled at a time."""
        fitting = largest_call(self.sampler) // (4 * batch)
        return max(1, min(len(self.plans), MOST_NODES, fitting))


def problem_of(plans: Plans, sampler: Sampler, reward: Reward, state: ArrayLike) -> Problem:
    """What a planner searches; raises for Samplers that run on the host."""
    if not isinstance(sampler, eqx.Module):
        raise TypeError(
            f"planners are compiled, and {type(sampler).__name__} is not an equinox.Module: use "
            "ggpi.evaluation.evaluate_states_sampled, which also runs Samplers of the host"
        )
    scored = sampled_reward(as_reward(reward), sampler)
    return Problem(plans, sampler, scored, jnp.asarray(state))


class Selected(eqx.Module):
    """A Sampler of which only one policy acts, whose index is traced; it is called as policy 0."""

    sampler: Sampler
    policy: Int[Array, ""]
    num_policies: int = eqx.field(static=True)

    def act(self, state: Numbers, *, key: Key) -> Array:
        return self.sampler.act(*self._everyone(state), key=key)[self.policy]

    def jump(self, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        policies, states = self._everyone(state)
        actions = jnp.broadcast_to(action, (len(policies), *action.shape))
        return self.sampler.jump(policies, horizon, states, actions, key=key)[self.policy]

    def onward(self, horizon: float, state: Numbers, *, key: Key) -> Array:
        if isinstance(self.sampler, TableSampler):
            table = self.sampler.tables[place_of(horizon, self.sampler.horizons)]
            if isinstance(table, TabularSampler):
                return table.sample_onward(state[None], among=self.policy[None], key=key)[0]
        policies, states = self._everyone(state)
        return self.sampler.onward(policies, horizon, states, key=key)[self.policy]

    def _everyone(self, state: Numbers) -> tuple[tuple[int, ...], Array]:
        return tuple(range(self.num_policies)), jnp.broadcast_to(state, (self.num_policies, *state.shape))


class Own(eqx.Module):
    """The models of one policy: policy 0 of a stack of one."""

    sampler: Any

    def act(self, state: Numbers, *, key: Key) -> Array:
        return self.sampler.act((0,), state[None], key=key)[0]

    def jump(self, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        return self.sampler.jump((0,), horizon, state[None], action[None], key=key)[0]

    def onward(self, horizon: float, state: Numbers, *, key: Key) -> Array:
        return self.sampler.onward((0,), horizon, state[None], key=key)[0]


def of_policy(sampler: Sampler, policy: Int[Array, ""], num_policies: int) -> Selected | Own:
    """The Sampler of one policy with a traced index, for states [rows, …]."""
    bank = sampler.bank.alone(policy) if isinstance(sampler, ModelSampler) else None
    if bank is None or not isinstance(sampler, ModelSampler):
        return Selected(sampler, policy, num_policies)
    models = jax.tree.map(lambda leaf: leaf[policy][None], sampler.models)
    return Own(dataclasses.replace(sampler, models=models, bank=bank))


class _Reached(eqx.Module):
    """Chains at the ends of some prefixes [nodes, batch, …]."""

    x: Any
    r: Any
    total: Any


def returns(
    problem: Problem, rows: Int[Array, "n"], level: int, batch: int, *, key: Key
) -> Float[Array, "n batch"]:
    """G of the first `level` segments of some plans, `batch` samples each."""
    plans, reward, state = problem.plans, problem.reward, problem.state
    x = jnp.broadcast_to(state, (1, batch, *state.shape))
    now = jnp.broadcast_to(reward.now(state[None])[:, None], (1, batch))
    reached, slot = _Reached(x, now, jnp.zeros((1, batch))), jnp.zeros(len(rows), jnp.int32)
    for m in range(level):
        number = jnp.asarray(plans.prefix)[rows, m]
        is_new = jnp.concatenate([jnp.zeros(1, jnp.int32), (number[1:] != number[:-1]).astype(jnp.int32)])
        above, slot = slot, jnp.cumsum(is_new)
        lead = jnp.zeros(min(len(rows), plans.sizes[m]), jnp.int32).at[slot].set(jnp.arange(len(rows)))
        reached = _segment(problem, m, rows[lead], reached, above[lead], jax.random.fold_in(key, m))
    ended = reward.has_ended(state[None])
    total = reached.total[slot]
    return total if ended is None else jnp.where(ended, 0.0, total)


def _segment(
    problem: Problem, m: int, rows: Int[Array, "nodes"], reached: _Reached, parent: Array, key: Key
) -> _Reached:
    """The next segment of some plans, each from where its prefix is."""
    plans, reward, w = problem.plans, problem.reward, problem.weights(rows)
    policy, start = jnp.asarray(plans.policies)[rows, m], reached.x[parent]
    x, first, last = _drawn(problem, m, rows, start, key)
    ends = reward(policy, x[:, None], None if last is None else last[:, None])[:, 0]
    starts = reached.r[parent]
    if reward.depends_on_policy:
        starts = reward(policy, start[:, None], None if first is None else first[:, None])[:, 0]
    total = reached.total[parent] + w.start[:, m][:, None] * starts + w.end[:, m][:, None] * ends
    return _Reached(x, ends, total)


def _drawn(
    problem: Problem, m: int, rows: Int[Array, "nodes"], start: Array, key: Key
) -> tuple[Array, Array | None, Array | None]:
    """States at the ends of segments, and the actions at both ends where the reward needs them."""
    plans, sampler, form = problem.plans, problem.sampler, problem.reward.form
    policy, alpha = jnp.asarray(plans.policies)[rows, m], jnp.asarray(plans.alphas)[rows, m]
    keys, count = jax.random.split(key, 3), plans.num_policies
    is_last = m == plans.depth - 1
    found: Any = None
    for one in plans.levels[m]:
        horizon = sampler.gamma if is_last else beta_of(sampler.gamma, one)

        def draw(policy: Array, x: Array, horizon: float = horizon) -> tuple[Array, ...]:
            own = of_policy(sampler, policy, count)
            if form != "state_action":
                end = own.onward(horizon, x, key=keys[1])
                return (stay(sampler.terminal, x[None], end[None])[0],)
            action = own.act(x, key=keys[0])
            end = stay(sampler.terminal, x[None], own.jump(horizon, x, action, key=keys[1])[None])[0]
            return end, action, own.act(end, key=keys[2])

        drawn = jax.vmap(draw)(policy, start)
        is_own = alpha == jnp.asarray(one, alpha.dtype)
        found = drawn if found is None else tuple(map(partial(_either, is_own), drawn, found))
    end, *actions = found
    first, last = actions or (None, None)
    return end, first, last


def _either(flags: Array, one: Array, other: Array) -> Array:
    return jnp.where(flags.reshape(len(flags), *[1] * (one.ndim - 1)), one, other)
