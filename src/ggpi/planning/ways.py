"""What recorded transitions connect: a jump that no record could have made was made up by a model.

Landmarks are gathered around some of them, the *anchors*. A stretch of record leads from the anchor of its first state
to that of its last one, and chains of stretches connect anchors. Moves among the states of one anchor are not counted,
so a chain is rather shorter than the way. A jump of μ_β has at most

    L = ⌈log 0.001 / log β⌉

steps, but for one in a thousand. Where no chain of L steps leads, it ends at the nearest landmark to which one does:
before a wall, not in it. A model blurs: where two rooms meet at a corner, it jumps from one to the other now and then,
and the maximum over policies prefers such jumps to the true way around. To leave these out instead would favour
whatever is blurred less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Bool, Float, Int
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from ggpi._jax.jit import fast_jit
from ggpi.data.transitions import Transitions
from ggpi.planning.landmarks import FAR, Atlas, States, choose, points_of
from ggpi.types import Numbers

RARE = 1e-3
"""The share of jumps that are longer than L."""
MOST_ANCHORS = 4_096
"""Memory is the square of this, whatever the number of landmarks."""
AT_ONCE = 512
"""Anchors whose chains are searched by one call."""
MOVED_AT_ONCE = 2**14
"""Ends that are moved by one call."""
ENTRIES = 2**20
"""Distances that are held at a time."""


@dataclass(frozen=True, eq=False)
class Ways:
    """Which landmarks recorded chains connect."""

    anchor: Int[np.ndarray, "M"]
    """Of each landmark."""
    connected: Bool[np.ndarray, "A A"]
    """Whether a chain of at most L steps leads from an anchor to another."""

    def check(self, num_landmarks: int) -> None:
        """Raises unless every landmark has an anchor that exists."""
        count = len(self.connected)
        if self.connected.shape != (count, count) or self.anchor.shape != (num_landmarks,):
            raise ValueError(f"ways are not of {num_landmarks} landmarks")
        if not (self.anchor.min() >= 0 and self.anchor.max() < count):
            raise ValueError(f"anchors are not numbers from 0 to {count - 1}")


Rows = Int[np.ndarray, "E"]


def longest_jump(beta: float) -> int:
    """L: a jump has more steps with a probability of at most 0.001."""
    return max(1, math.ceil(math.log(RARE) / math.log(beta))) if beta > 0 else 1


def recorded_edges(data: Transitions, longest: int) -> tuple[Rows, Rows, Int[np.ndarray, "E"]]:
    """First and last rows of the stretches of record that chains are made of, and their steps.

    Stretches have ⌈L/7⌉ steps, the mean of a jump; episodes with fewer are taken whole.

    Args:
        data: the transitions.
        longest: L.
    """
    most = -(-longest // 7)
    first = np.flatnonzero(~np.append(False, data.is_followed[:-1]))
    length = np.diff(np.append(first, len(data)))
    stretch = np.repeat(np.minimum(length, most), length)
    left = np.repeat(first + length, length) - np.arange(len(data))
    rows = np.flatnonzero(left >= stretch)
    return rows, rows + stretch[rows] - 1, stretch[rows]


def ways_of(
    points: Float[np.ndarray, "M d"],
    begin: Int[np.ndarray, "E"],
    end: Int[np.ndarray, "E"],
    steps: Int[np.ndarray, "E"],
    longest: int,
) -> Ways:
    """The ways that recorded stretches make.

    Args:
        points: the landmarks.
        begin: the landmark that is nearest to where each stretch begins.
        end: the landmark that is nearest to where it ends.
        steps: its steps.
        longest: L.
    """
    count = min(len(points), MOST_ANCHORS)
    anchors = np.arange(count)
    if count < len(points):
        anchors = np.sort(choose(points, count, np.random.default_rng(0)))
    anchor = np.asarray(KDTree(points[anchors]).query(points, workers=-1)[1]).astype(np.int32)
    order = np.argsort(steps, kind="stable")  # of several stretches the first counts
    pair, row = np.unique(
        anchor[begin[order]].astype(np.int64) * count + anchor[end[order]], return_index=True
    )
    edges = scipy.sparse.csr_array((steps[order][row].astype(float), np.divmod(pair, count)), (count, count))
    blocks = (np.arange(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE))
    search = (dijkstra(edges, indices=block, limit=longest) for block in blocks)
    return Ways(anchor, np.concatenate([np.isfinite(found) for found in search]))


def led(atlas: Atlas, landmarks: KDTree, end: States, ended: Bool[np.ndarray, "K M n"]) -> States:
    """The ends [K, M, n, …] of jumps from all landmarks, `moved` where no recorded way leads; terminal ones stay.

    Args:
        atlas: the landmarks with their ways.
        landmarks: the same for a quick search.
        end: where the jumps end.
        ended: whether the end is a terminal state.
    """
    flat = end.reshape(-1, *end.shape[3:])
    origin = np.broadcast_to(np.arange(ended.shape[1])[:, None], ended.shape).ravel()
    apart, row = landmarks.query(points_of(flat, np.asarray(atlas.units, float)), workers=-1)
    anchor, connected = np.asarray(atlas.anchor), np.asarray(atlas.connected)
    lost = ~(connected[anchor[origin], anchor[row]] & (apart <= float(atlas.reach))) & ~ended.ravel()
    rows, found = np.flatnonzero(lost), flat.copy()
    for some in np.split(rows, range(MOVED_AT_ONCE, len(rows), MOVED_AT_ONCE)):
        padded = np.resize(some, MOVED_AT_ONCE) if len(some) else some
        found[some] = np.asarray(_moved(atlas, flat[padded], origin[padded]))[: len(some)]
    return found.reshape(end.shape)


def moved(atlas: Atlas, states: Numbers, origin: Int[Array, "N"]) -> Numbers:
    """Ends of jumps [N, …]; those out of reach, or where no recorded way leads, move to the nearest landmark where one
    does.

    Coordinates that do not count stay.

    Args:
        atlas: the landmarks with their ways.
        states: where the jumps end.
        origin: the landmark that each began at, or near.
    """
    anchor, connected = atlas.anchor, atlas.connected
    if anchor is None or connected is None:
        raise ValueError("recorded ways are not known: graph.along(data)")
    sizes, count = (atlas.points**2).sum(axis=1), atlas.units < FAR

    def one(state: Array, origin: Array) -> Array:
        point = (jnp.atleast_1d(state).astype(jnp.float32) - atlas.centre) / atlas.units
        near = 2 * atlas.points @ point - sizes
        there = connected[anchor[origin]][anchor]
        first, led = near.argmax(), jnp.where(there, near, -jnp.inf).argmax()
        stays = there[first] & (((atlas.points[first] - point) ** 2).sum() <= atlas.reach**2)
        landmark = (atlas.points[led] * atlas.units + atlas.centre).reshape(state.shape).astype(state.dtype)
        return jnp.where(stays | ~count.reshape(state.shape), state, landmark)

    at_once = max(ENTRIES // len(atlas.points), 1)
    return jax.lax.map(lambda pair: one(*pair), (jnp.asarray(states), origin), batch_size=at_once)


_moved = fast_jit(moved)
