"""All switching policies of a set as one tree of segments, sampled level by level by one program.

Level m holds the m-th segments of all GSPs. A segment that ends in a switch is an inner node: GSPs with a common
prefix share it, and each continues every sample of it once, so that samples within one GSP stay independent. A
segment that never ends is a leaf: each GSP has one. Nodes of a level that share a horizon form a block with an
equal number of places for each of its policies (some may idle): stacked models are asked policy by policy.

    draw    the states at both ends of every segment, and actions there if the reward needs them
    worth   what every leaf's chains earn: r at the ends of their segments, weighed as `segments` says
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi.ghm.base import GHMs
from ggpi.rewards import Form
from ggpi.switching import Segment
from ggpi.types import Key

Prefix = tuple[Segment, ...]


class Block(eqx.Module):
    """Segments of one level and horizon, policy by policy, with an equal number of places for each."""

    parent: Any
    """[nodes]: the inner node of the level above where a segment starts; idle places have any."""
    start: Any
    end: Any
    """[nodes]: what the reward weighs where a segment starts and ends, in units of Q."""
    horizon: float = eqx.field(static=True)
    policies: tuple[int, ...] = eqx.field(static=True)
    is_leaf: bool = eqx.field(static=True)


class Tree(eqx.Module):
    """Levels of blocks, inner ones first, and the place of each GSP among all leaves.

    Paper: Fig 2
    """

    levels: tuple[tuple[Block, ...], ...]
    leaves: Any


class Drawn(NamedTuple):
    """What was drawn for a block: states [nodes, P, n, D] at the ends, and actions where the reward needs them."""

    x: Any
    start_action: Any = None
    end_action: Any = None


def build_tree(
    paths: Sequence[Prefix], ghms: GHMs, form: Form, shared: bool = True
) -> tuple[Tree, list[list[tuple[int, int]]]]:
    """The tree of GSPs, given by their segments, and for each the (block, place) of its segments, level by level.

    Without `shared` every GSP has segments of its own; only to measure what sharing saves.
    """
    own = [() if shared else (i,) for i in range(len(paths))]
    scale = (1.0 if form == "arrival" else ghms.gamma) / (1 - ghms.gamma)
    levels, found, leaves, parents = [], [[] for _ in paths], np.zeros(len(paths), np.int32), {}
    for m in range(1, max(map(len, paths)) + 1):
        nodes = dict.fromkeys((path[:m], own[i]) for i, path in enumerate(paths) if len(path) >= m)
        blocks, places = [], {}
        for alpha in sorted({node[0][-1].alpha for node in nodes}, key=lambda alpha: (alpha is None, alpha)):
            members = [node for node in nodes if node[0][-1].alpha == alpha]
            block, where = _block(members, parents, ghms.horizon(alpha), scale, form)
            places |= {node: (len(blocks), place) for node, place in zip(members, where, strict=True)}
            blocks.append(block)
        first = np.cumsum([0, *(len(block.parent) for block in blocks)])
        parents = {node: first[b] + place for node, (b, place) in places.items() if node[0][-1].alpha}
        before = sum(len(b.parent) for level in levels for b in level if b.is_leaf)
        for i, path in enumerate(paths):
            if len(path) >= m:
                found[i].append(places[path[:m], own[i]])
            if len(path) == m:
                leaves[i] = before + found[i][-1][1]
        levels.append(tuple(blocks))
    return Tree(tuple(levels), leaves), found


def _block(
    members: Sequence[tuple[Prefix, tuple]], parents: dict, horizon: float, scale: float, form: Form
) -> tuple[Block, list[int]]:
    """A block of segments, and the place of each member."""
    heads = [prefix[-1].policy for prefix, _ in members]
    policies = tuple(sorted(set(heads)))
    width = max(map(heads.count, policies))
    free = {policy: row * width for row, policy in enumerate(policies)}
    parent = np.zeros(len(policies) * width, np.int32)
    weights = np.zeros((2, len(parent)), np.float32)
    where = []
    for (prefix, own), policy in zip(members, heads, strict=True):
        place = free[policy]
        free[policy] += 1
        where.append(place)
        parent[place] = parents.get((prefix[:-1], own), 0)
        weights[:, place] = scale * prefix[-1].start, scale * prefix[-1].end
        if len(prefix) == 1 and form != "arrival":
            weights[0, place] = 1.0
    is_leaf = members[0][0][-1].alpha is None
    return Block(parent, weights[0], weights[1], horizon, policies, is_leaf), where


def draw(
    tree: Tree, world: Any, states: Any, first: Any, num_samples: int, *, form: Form, key: Key
) -> list[list[Drawn]]:
    """Samples of every segment's end from P states, in the tree's shape.

    `world` acts and moves: `act(block, x, key=)` gives actions of the block's policies for x [rows, n, D],
    `move(block, x, a, key=)` the ends of its segments. `first` [K, P, …] are first actions; None leaves them to
    each head, sample by sample.
    """
    x = jnp.broadcast_to(states[None, :, None], (1, len(states), num_samples, *states.shape[1:]))
    drawn = []
    for m, level in enumerate(tree.levels):
        keys = jax.random.split(jax.random.fold_in(key, m), len(level))
        given = first if m == 0 else None
        drawn.append([_draw_block(b, world, x, given, form, k) for b, k in zip(level, keys, strict=True)])
        inner = [part.x for block, part in zip(level, drawn[-1], strict=True) if not block.is_leaf]
        x = inner[0] if len(inner) == 1 else jnp.concatenate(inner) if inner else None
    return drawn


def _draw_block(block: Block, world: Any, x, first, form: Form, key: Key) -> Drawn:
    action_key, model_key, end_key = jax.random.split(key, 3)
    shape = (len(block.parent), *x.shape[1:3])
    event = x.shape[3:]
    start = x[block.parent].reshape(len(block.policies), -1, *event)
    if first is None:
        action = world.act(block, start, key=action_key)
    else:
        own = first[np.array(block.policies)][:, :, None]
        action = jnp.broadcast_to(own, (*own.shape[:2], shape[2], *own.shape[3:])).reshape(
            *start.shape[:2], *own.shape[3:]
        )
    end = world.move(block, start, action, key=model_key)
    if form != "state_action":
        return Drawn(end.reshape(*shape, *event))
    last = world.act(block, end, key=end_key)
    actions = (a.reshape(*shape, *a.shape[2:]) for a in (action, last))
    return Drawn(end.reshape(*shape, *event), *actions)


def worth(
    tree: Tree, pay: Callable[..., Any], states: Any, drawn: list[list[Drawn]], *, form: Form
) -> Float[Array, "N P n"]:
    """What every GSP's chains earn; `pay(x)` or `pay(x, a)` is the reward of many states at once."""
    num_samples = drawn[0][0].x.shape[2]
    x = jnp.broadcast_to(states[None, :, None], (1, len(states), num_samples, *states.shape[1:]))
    r: Any = pay(states[None, :, None]) if form == "state" else jnp.zeros((1, len(states), 1))
    total, leaves = jnp.zeros((1, 1, 1)), []
    for level, parts in zip(tree.levels, drawn, strict=True):
        ended = []
        for block, part in zip(level, parts, strict=True):
            if form == "state_action":
                starts, ends = pay(x[block.parent], part.start_action), pay(part.x, part.end_action)
            else:
                starts, ends = r[block.parent], pay(part.x)
            summed = total[block.parent] + _spread(block.start) * starts + _spread(block.end) * ends
            ended.append((block, part.x, ends, summed))
        leaves += [summed for block, _, _, summed in ended if block.is_leaf]
        inner = [
            jnp.concatenate(column)
            for column in zip(*[e[1:] for e in ended if not e[0].is_leaf], strict=True)
        ]
        if inner:
            x, r, total = inner
    return jnp.concatenate([jnp.broadcast_to(leaf, (len(leaf), *leaves[0].shape[1:])) for leaf in leaves])[
        tree.leaves
    ]


def _spread(weights):
    return weights[:, None, None]
