"""A set of switching policies walked segment by segment: for finite MDPs, where sets grow from call to call.

`tree.draw` draws whole levels, in a program for just this set. That is right for planning, where one set serves many
states. Policy iteration has another set in every iteration, and would compile in each of them. Here a segment is one
call of the same small program, whatever the set and the policy: depth first, so that only one path is in memory.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import ArrayLike

from ggpi._jax.forking import check_process
from ggpi._jax.jit import fast_jit
from ggpi.evaluation.queries import Estimate, summary
from ggpi.evaluation.rewards import SampledReward, sampled_reward
from ggpi.evaluation.tree import Block, Chain, Reached, build_tree, draw_block, earned
from ggpi.ghm.base import GHMs
from ggpi.ghm.samplers import Composing
from ggpi.rewards import Reward
from ggpi.types import Key, Sampler

CHUNK = 2**20
"""Chains that are drawn at a time."""

Part = tuple[Sampler, SampledReward]
"""The Sampler of one policy at one horizon, and the reward for it: arrays of the same shapes for all of them."""


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
        self.ghms, self.reward = ghms, ghms.mdp.checked_reward(reward)
        self.stopping = stopping
        self.part = cache(self._part)
        self.tree, self.places = build_tree(chains, ghms.gamma, self.part(0, 0)[1].form)

    def estimate(
        self, state: Int[np.ndarray, "P"], action: Int[np.ndarray, "P"], num_samples: int, *, key: Key
    ) -> Estimate:
        """Means and standard errors [N, P] of the returns of all chains; equal beginnings share their samples."""
        size = max(1, min(len(state), CHUNK // num_samples))
        parts = []
        for begin in range(0, len(state), size):
            rows = np.minimum(begin + np.arange(size), len(state) - 1)  # equal shapes: one compilation
            now = self.part(0, 0)[1].now(jnp.asarray(state[rows]))
            reached = _begin(state[rows], now, num_samples)
            everyone = range(len(self.places))
            found = self._descend(everyone, 0, reached, action[None, rows], jax.random.fold_in(key, begin))
            parts.append(np.stack([found[i] for i in everyone], axis=1))
        mean, stderr = np.concatenate(parts, axis=2)[:, :, : len(state)].astype(float)
        ended = self.ghms.mdp.terminal[state]
        return Estimate(np.where(ended, 0.0, mean), np.where(ended & (num_samples > 1), 0.0, stderr))

    def _descend(
        self, chains: Iterable[int], m: int, reached: Reached, first: np.ndarray | None, key: Key
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
            one = Block(np.zeros(1, np.int32), *weights, 0.0, (0,), block.is_leaf)
            if block.is_leaf:
                found |= dict.fromkeys(group, _finish(one, own, reached, first, key, turn))
            else:
                after, onward = _advance(one, own, reached, first, key, turn)
                found |= self._descend(group, m + 1, after, None, onward)
        return found

    def _part(self, policy: int, place: int) -> Part:
        ghms = self.ghms
        alone = GHMs((ghms.policies[policy],), ghms.gamma, (), ((ghms.models[place][policy],),))
        sampler = alone.sampler()
        reward = sampled_reward(self.reward, sampler)
        sampler = dataclasses.replace(sampler, gamma=0.0, horizons=(0.0,))
        if self.stopping is not None:
            sampler = Composing(sampler, jnp.asarray(self.stopping), 0.0)
        return sampler, reward


def _begin(state: Int[np.ndarray, "P"], r: Array, num_samples: int) -> Reached:
    shape = (1, len(state), num_samples)
    x, r = (jnp.broadcast_to(part[None, :, None], shape) for part in (jnp.asarray(state), r))
    return Reached(x, r, jnp.zeros(shape, jnp.float32))


def _after(block: Block, part: Part, reached: Reached, first: Array | None, key: Key) -> Reached:
    sampler, reward = part
    return earned(block, reward, reached, draw_block(block, sampler, reached.x, first, reward.form, key))


@fast_jit
def _advance(
    block: Block, part: Part, reached: Reached, first: Array | None, key: Key, turn: Array
) -> tuple[Reached, Key]:
    """Where chains are after a segment, and a key to continue with."""
    here, onward = jax.random.split(jax.random.fold_in(key, turn))
    return _after(block, part, reached, first, here), onward


@fast_jit
def _finish(
    block: Block, part: Part, reached: Reached, first: Array | None, key: Key, turn: Array
) -> Estimate:
    """Mean and standard error [P] of the returns, after the last segment."""
    here = jax.random.fold_in(key, turn)
    return summary(_after(block, part, reached, first, here).total[0])
