"""What recorded transitions connect: a jump that no record could have made was made up by a model.

Landmarks are gathered around some of them, the *anchors*. A recorded step leads from the anchor of its state to that of
its next state, and chains of steps connect anchors. Steps between states of the same anchor are not counted, so a chain
is shorter than the way, and what it cannot connect the record does not. A jump of μ_β has at most

    L = ⌈log 0.001 / log β⌉

steps, but for one in a thousand. A neighbour to which no chain of L steps leads counts as if it were far away. A model
blurs: where two rooms meet at a corner, it jumps from one to the other now and then, and the maximum over policies
prefers such jumps to the true way around.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Bool, Float, Int
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from ggpi.planning.landmarks import choose

RARE = 1e-3
"""The share of jumps that are longer than L."""
MOST_ANCHORS = 4_096
"""Memory is the square of this, whatever the number of landmarks."""
AT_ONCE = 512
"""Anchors whose chains are searched by one call."""
FAR = 1e6
"""Added to the distance of a neighbour to which no chain leads."""


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


def longest_jump(beta: float) -> int:
    """L: a jump has more steps with a probability of at most 0.001."""
    return max(1, math.ceil(math.log(RARE) / math.log(beta))) if beta > 0 else 1


def ways_of(
    points: Float[np.ndarray, "M d"],
    begin: Int[np.ndarray, "N"],
    end: Int[np.ndarray, "N"],
    longest: int,
) -> Ways:
    """The ways that recorded steps make.

    Args:
        points: the landmarks.
        begin: the landmark that is nearest to the state of each step.
        end: the landmark that is nearest to its next state.
        longest: L.
    """
    count = min(len(points), MOST_ANCHORS)
    anchors = np.arange(count)
    if count < len(points):
        anchors = np.sort(choose(points, count, np.random.default_rng(0)))
    anchor = np.asarray(KDTree(points[anchors]).query(points, workers=-1)[1]).astype(np.int32)
    pairs = np.unique(anchor[begin].astype(np.int64) * count + anchor[end])
    steps = scipy.sparse.csr_array((np.ones(len(pairs)), np.divmod(pairs, count)), (count, count))
    blocks = (np.arange(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE))
    search = (dijkstra(steps, indices=block, unweighted=True, limit=longest) for block in blocks)
    return Ways(anchor, np.concatenate([np.isfinite(found) for found in search]))


def by_ways(
    anchor: Int[Array, "M"],
    connected: Bool[Array, "A A"],
    origin: Int[Array, "..."],
    rows: Int[Array, "*b m"],
    apart: Float[Array, "*b m"],
) -> tuple[Int[Array, "*b m"], Float[Array, "*b m"]]:
    """Neighbours and their distances in ascending order, those to which no chain leads far away.

    Args:
        anchor: as in `Ways`.
        connected: as in `Ways`.
        origin: the landmark nearest to where each jump began; broadcasts with the neighbours.
        rows: the neighbours of the ends.
        apart: their distances.
    """
    apart = jnp.where(connected[anchor[origin], anchor[rows]], apart, apart + FAR)
    order = jnp.argsort(apart, axis=-1)
    return jnp.take_along_axis(rows, order, axis=-1), jnp.take_along_axis(apart, order, axis=-1)
