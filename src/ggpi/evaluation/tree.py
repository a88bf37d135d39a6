"""All switching policies of a set as one tree of segments, sampled level by level.

Level m holds the m-th segments of all GSPs. A segment that ends in a switch is an inner node: GSPs with a common
prefix share it, and each continues every sample of it once, so that samples within one GSP stay independent. A
segment that never ends is a leaf: each GSP has one. Nodes of a level that share a horizon form a block with an
equal number of places for each of its policies (some may idle): Samplers are called policy by policy.

    draw      the states at the ends of all segments, and actions where the reward depends on them
    returns   the return of every leaf's chains: r at the ends of their segments, weighted as `switching.segments` says
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi.evaluation.rewards import SampledForm, SampledReward, stay
from ggpi.switching import GSPs, Segment
from ggpi.types import Key, Numbers, Sampler

Chain = tuple[Segment, ...]
Weights = np.ndarray | Array


class Block(eqx.Module):
    """Segments of one level and horizon, policy by policy, with an equal number of places for each."""

    parent: Weights
    """[nodes]: the inner node of the level above where a segment starts; idle places have any."""
    start: Weights
    end: Weights
    """[nodes]: the weights of the reward where a segment starts and ends, in units of Q."""
    horizon: float = eqx.field(static=True)
    policies: tuple[int, ...] = eqx.field(static=True)
    is_leaf: bool = eqx.field(static=True)


class Tree(eqx.Module):
    """Levels of blocks, inner ones first, and the place of each GSP among all leaves.

    Paper: Fig 2
    """

    levels: tuple[tuple[Block, ...], ...]
    leaves: Weights

    @property
    def num_nodes(self) -> int:
        """Segments, with places that idle."""
        return sum(len(block.parent) for level in self.levels for block in level)


class Drawn(NamedTuple):
    """Samples of a block: states [nodes, P, n, …] at the ends, and the actions that the reward depends on."""

    x: Numbers
    start_action: Numbers | None = None
    end_action: Numbers | None = None


Places = list[list[tuple[int, int]]]
"""For each GSP the (block, place) of its segments, level by level."""


@lru_cache(maxsize=64)
def tree_of(gsps: GSPs, gamma: float, form: SampledForm) -> tuple[Tree, Places]:
    """The tree of a set of GSPs, and where their segments are."""
    return build_tree([gsp.segments(gamma) for gsp in gsps], gamma, form)


def build_tree(chains: Sequence[Chain], gamma: float, form: SampledForm) -> tuple[Tree, Places]:
    """The tree of chains of segments; equal beginnings of chains are one node."""
    scale = (1.0 if form == "arrival" else gamma) / (1 - gamma)
    levels, found, leaves, parents = [], [[] for _ in chains], np.zeros(len(chains), np.int32), {}
    for m in range(1, max(map(len, chains)) + 1):
        nodes = dict.fromkeys(chain[:m] for chain in chains if len(chain) >= m)
        blocks, places = [], {}
        for alpha in sorted({node[-1].alpha for node in nodes}, key=lambda alpha: (alpha is None, alpha)):
            members = [node for node in nodes if node[-1].alpha == alpha]
            block, where = _block(members, parents, scale, form)
            places |= {node: (len(blocks), place) for node, place in zip(members, where, strict=True)}
            blocks.append(block)
        first = np.cumsum([0, *(len(block.parent) for block in blocks)])
        parents = {node: int(first[b]) + place for node, (b, place) in places.items() if node[-1].alpha}
        before = sum(len(b.parent) for level in levels for b in level if b.is_leaf)
        for i, chain in enumerate(chains):
            if len(chain) >= m:
                found[i].append(places[chain[:m]])
            if len(chain) == m:
                leaves[i] = before + found[i][-1][1]
        levels.append(tuple(blocks))
    return Tree(tuple(levels), leaves), found


def _block(
    members: Sequence[Chain], parents: dict[Chain, int], scale: float, form: SampledForm
) -> tuple[Block, list[int]]:
    """A block of segments, and the place of each member."""
    heads = [chain[-1].policy for chain in members]
    policies = tuple(sorted(set(heads)))
    width = max(map(heads.count, policies))
    free = {policy: row * width for row, policy in enumerate(policies)}
    parent = np.zeros(len(policies) * width, np.int32)
    weights = np.zeros((2, len(parent)), np.float32)
    where = []
    for chain, policy in zip(members, heads, strict=True):
        place = free[policy]
        free[policy] += 1
        where.append(place)
        parent[place] = parents.get(chain[:-1], 0)
        weights[:, place] = scale * chain[-1].start, scale * chain[-1].end
        if len(chain) == 1 and form != "arrival":
            weights[0, place] = 1.0
    last = members[0][-1]
    return Block(parent, weights[0], weights[1], last.horizon, policies, last.alpha is None), where


def draw(
    tree: Tree,
    sampler: Sampler,
    states: Numbers,
    actions: Numbers | None,
    num_samples: int,
    *,
    form: SampledForm,
    key: Key,
) -> list[list[Drawn]]:
    """Samples of every segment's end from P states, in the tree's shape.

    `actions` [K, P, …] are the first actions of each policy; None leaves them to each head, sample by sample.
    """
    x = jnp.broadcast_to(states[None, :, None], (1, len(states), num_samples, *states.shape[1:]))
    drawn = []
    for m, level in enumerate(tree.levels):
        keys = jax.random.split(jax.random.fold_in(key, m), len(level))
        first = actions if m == 0 else None
        drawn.append([draw_block(b, sampler, x, first, form, k) for b, k in zip(level, keys, strict=True)])
        inner = [part.x for block, part in zip(level, drawn[-1], strict=True) if not block.is_leaf]
        if inner:
            x = inner[0] if len(inner) == 1 else jnp.concatenate(inner)
    return drawn


def draw_block(
    block: Block, sampler: Sampler, x: Numbers, first: Numbers | None, form: SampledForm, key: Key
) -> Drawn:
    """Samples of a block's segments, from the ends x [nodes, P, n, …] of those above."""
    action_key, jump_key, end_key = jax.random.split(key, 3)
    shape, event = (len(block.parent), *x.shape[1:3]), x.shape[3:]
    start = x[block.parent].reshape(len(block.policies), -1, *event)
    if first is None and form != "state_action":
        end = sampler.onward(block.policies, block.horizon, start, key=jump_key)
        return Drawn(stay(sampler.terminal, start, end).reshape(*shape, *event))
    if first is None:
        action = sampler.act(block.policies, start, key=action_key)
    else:
        own = first[np.array(block.policies)][:, :, None]
        action = jnp.broadcast_to(own, (*own.shape[:2], shape[2], *own.shape[3:])).reshape(
            *start.shape[:2], *own.shape[3:]
        )
    end = stay(
        sampler.terminal, start, sampler.jump(block.policies, block.horizon, start, action, key=jump_key)
    )
    last = [sampler.act(block.policies, end, key=end_key)] if form == "state_action" else []
    actions = (a.reshape(*shape, *a.shape[2:]) for a in (action, *last))
    return Drawn(end.reshape(*shape, *event), *actions)


class Reached(NamedTuple):
    """Where chains are after a segment [nodes, P, n, …]: the state, the reward there, and the return so far."""

    x: Numbers
    r: Numbers
    total: Numbers


def earned(block: Block, reward: SampledReward, reached: Reached, part: Drawn) -> Reached:
    """Where the segments of a block end that start where chains are."""
    x, r, total = reached
    ends = reward(block.policies, part.x, part.end_action)
    starts = (
        reward(block.policies, x[block.parent], part.start_action)
        if reward.depends_on_policy
        else r[block.parent]
    )
    return Reached(
        part.x, ends, total[block.parent] + _spread(block.start) * starts + _spread(block.end) * ends
    )


def returns(
    tree: Tree, reward: SampledReward, states: Numbers, drawn: list[list[Drawn]]
) -> Float[Array, "N P n"]:
    """The returns of every GSP's chains from P states."""
    shape = drawn[0][0].x.shape[1:3]
    x = jnp.broadcast_to(states[None, :, None], (1, *shape, *states.shape[1:]))
    reached, leaves = Reached(x, reward.now(states)[None, :, None], jnp.zeros((1, 1, 1))), []
    for level, parts in zip(tree.levels, drawn, strict=True):
        ended = [(b, earned(b, reward, reached, part)) for b, part in zip(level, parts, strict=True)]
        leaves += [after.total for block, after in ended if block.is_leaf]
        inner = [after for block, after in ended if not block.is_leaf]
        if inner:
            reached = Reached(*map(jnp.concatenate, zip(*inner, strict=True)))
    summed = jnp.concatenate([jnp.broadcast_to(leaf, (len(leaf), *shape)) for leaf in leaves])[tree.leaves]
    ended = reward.has_ended(states)
    return summed if ended is None else jnp.where(ended[:, None], 0.0, summed)


def _spread(weights: Weights) -> Weights:
    return weights[:, None, None]
