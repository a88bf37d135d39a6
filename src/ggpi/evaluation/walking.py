"""A set of switching policies walked segment by segment: for finite MDPs, where sets grow from call to call.

`tree.draw` draws whole levels, in a program for just this set. That is right for planning, where one set serves many
states. Policy iteration has another set in every iteration, and would compile in each of them. Here a segment is one
call of the same small program, whatever the set and the policy: depth first, so that only one path is in memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import ArrayLike

from ggpi._jax.alias import AliasTable
from ggpi._jax.forking import check_process
from ggpi.evaluation.queries import Estimate, summary
from ggpi.evaluation.rewards import PolicyReward, SampledReward
from ggpi.evaluation.tree import Block, Chain, Reached, build_tree, draw_block, earned
from ggpi.ghm.base import GHMs
from ggpi.ghm.exact import Simulator, TabularSampler
from ggpi.ghm.samplers import Composing, Policies, Table, Terminal
from ggpi.rewards import Reward
from ggpi.types import Key, Numbers, Sampler

CHUNK = 2**20
"""Chains that are drawn at a time."""

Part = tuple[Sampler, SampledReward]
"""The Sampler of one policy at one horizon, and the reward for it: arrays of the same shapes for all of them."""

Weights = tuple[Numbers, Numbers]
"""Those of the reward where a segment starts and where it ends, [1] each."""


class OneTable(eqx.Module):
    """One model of a finite MDP as a Sampler: quicker to make than a stack of them."""

    table: TabularSampler | Simulator
    policy: AliasTable | None
    """Of segments that are composed: whoever continues acts."""
    terminal: Terminal | None

    @property
    def gamma(self) -> float:
        """Unknown: weights and rewards have it, so that one program serves every γ."""
        return math.nan

    def act(self, policies: Policies, state: Numbers, *, key: Key) -> Array:
        return cast(AliasTable, self.policy).sample(jnp.asarray(state), key=key)

    def jump(self, policies: Policies, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        return self.table.sample(state, action, key=key)

    def onward(self, policies: Policies, horizon: float, state: Numbers, *, key: Key) -> Array:
        return self.table.sample_onward(state, key=key)


class Walk:
    """The chains of a set, and what their segments need.

    With `stopping`, each segment is composed of several: after each of them it ends with that probability.
    """

    def __init__(
        self,
        chains: Sequence[Chain],
        ghms: GHMs,
        reward: Reward | ArrayLike,
        stopping: float | None = None,
    ):
        check_process()
        self.ghms, self.stopping = ghms, stopping
        self.terminal = Table(jnp.asarray(ghms.mdp.terminal)) if ghms.mdp.terminal.any() else None
        self.reward_of = _rewards(ghms, ghms.mdp.checked_reward(reward), self.terminal)
        self.part = cache(self._part)
        self.tree, self.places = build_tree(chains, ghms.gamma, self.reward_of(0).form)

    def estimate(
        self, state: Int[np.ndarray, "P"], action: Int[np.ndarray, "P"], num_samples: int, *, key: Key
    ) -> Estimate:
        """Means and standard errors [N, P] of the returns of all chains; equal beginnings share their samples."""
        size = max(1, min(len(state), CHUNK // num_samples))
        parts = []
        for begin in range(0, len(state), size):
            rows = np.minimum(begin + np.arange(size), len(state) - 1)  # equal shapes: one compilation
            starts = _begin(self.reward_of(0), state[rows], action[rows], key, begin, num_samples)
            everyone = range(len(self.places))
            found = self._descend(everyone, 0, *starts)
            parts.append(np.stack([found[i] for i in everyone], axis=1))
        mean, stderr = np.concatenate(parts, axis=2)[:, :, : len(state)].astype(float)
        ended = self.ghms.mdp.terminal[state]
        return Estimate(np.where(ended, 0.0, mean), np.where(ended & (num_samples > 1), 0.0, stderr))

    def _descend(
        self, chains: Iterable[int], m: int, reached: Reached, first: Array | None, key: Key
    ) -> dict[int, tuple[Array, Array]]:
        """The estimates of chains that agree up to level m."""
        groups, found = defaultdict(list), {}
        for i in chains:
            groups[self.places[i][m]].append(i)
        for number, ((place, row), group) in enumerate(groups.items()):
            turn, block = np.array(number, np.uint32), self.tree.levels[m][place]
            policy = block.policies[row * len(block.policies) // len(block.parent)]
            own = self.part(policy, self.ghms.horizons.index(block.horizon))
            weights = block.start[row : row + 1], block.end[row : row + 1]
            if block.is_leaf:
                found |= dict.fromkeys(group, _finish(weights, own, reached, first, key, turn))
            else:
                after, onward = _advance(weights, own, reached, first, key, turn)
                found |= self._descend(group, m + 1, after, None, onward)
        return found

    def _part(self, policy: int, place: int) -> Part:
        reward = self.reward_of(policy)
        acting = None if self.stopping is None else self.ghms.policies[policy].table
        sampler = OneTable(self.ghms.models[place][policy].sampler, acting, self.terminal)
        if self.stopping is None:
            return sampler, reward
        return Composing(sampler, jnp.asarray(self.stopping), 0.0), reward


def _rewards(ghms: GHMs, reward: Reward, terminal: Terminal | None) -> Callable[[int], SampledReward]:
    """The reward as each policy collects it: of r(x, a) the mean over its actions is known."""
    arriving, table = np.asarray(1 - ghms.gamma, np.float32), jnp.asarray(reward.table, jnp.float32)
    if reward.form != "state_action":
        shared = SampledReward(Table(table), reward.form, arriving, terminal)
        return lambda policy: shared

    def of_policy(policy: int) -> SampledReward:
        r_pi = (np.asarray(ghms.policies[policy]) * reward.table).sum(axis=1)
        values = PolicyReward(table, jnp.asarray(r_pi[None], jnp.float32))
        return SampledReward(values, "policy", arriving, terminal)

    return of_policy


@partial(jax.jit, static_argnames="num_samples")
def _begin(
    reward: SampledReward,
    state: Int[Array, "P"],
    action: Int[Array, "P"],
    key: Key,
    begin: int | Array,
    num_samples: int,
) -> tuple[Reached, Array, Key]:
    """Where chains start, their first actions [1, P], and the key of this part of the pairs."""
    shape = (1, len(state), num_samples)
    x, r = (jnp.broadcast_to(part[None, :, None], shape) for part in (state, reward.now(state)))
    return Reached(x, r, jnp.zeros(shape, jnp.float32)), action[None], jax.random.fold_in(key, begin)


def _after(weights: Weights, part: Part, reached: Reached, first: Array | None, key: Key) -> Reached:
    sampler, reward = part
    block = Block(np.zeros(1, np.int32), *weights, 0.0, (0,), False)
    return earned(block, reward, reached, draw_block(block, sampler, reached.x, first, reward.form, key))


@jax.jit
def _advance(
    weights: Weights, part: Part, reached: Reached, first: Array | None, key: Key, turn: Array
) -> tuple[Reached, Key]:
    """Where chains are after a segment, and a key to continue with."""
    here, onward = jax.random.split(jax.random.fold_in(key, turn))
    return _after(weights, part, reached, first, here), onward


@jax.jit
def _finish(
    weights: Weights, part: Part, reached: Reached, first: Array | None, key: Key, turn: Array
) -> Estimate:
    """Mean and standard error [P] of the returns, after the last segment."""
    here = jax.random.fold_in(key, turn)
    return summary(_after(weights, part, reached, first, here).total[0])
