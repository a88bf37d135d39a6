"""Landmarks: states of the data that cover it, and how other states are expressed by the nearest of them.

Distances are measured in units of the data: each coordinate is divided by its standard deviation, positions
(`StateSpec.relative` and `StateSpec.places`) by a common one. Positions come first: where there are some, all
other coordinates together weigh a tenth of one position, so that the neighbours of a state are near in space and alike
otherwise, not the other way round. Where no positions are declared and the data are recorded in their order, each
coordinate weighs as much as the state after one jump depends on it (`influence`). Numbered states of a finite MDP are
one coordinate with unit 1.

Landmarks are chosen in rounds (k-means‖, Bahmani et al. 2012): each round draws states with a probability that is
proportional to the squared distance to the landmarks so far. Rare places are covered too, and no state twice.

A value at x is interpolated from the m nearest landmarks with weights ∝ 1/distance², so it is exact at a landmark. The
*reach* of the landmarks is the distance within which 99.9% of the data have one. A jump that ends farther away ends
where no data is, such as inside a wall: it is left out, unless all jumps do, when the nearest counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Real
from scipy.spatial import KDTree

from ggpi.data.transitions import Transitions
from ggpi.types import Numbers

NOT_POSITIONS = 0.1
"""What all other coordinates together weigh where there are positions."""
SMALLEST_UNIT = 1e-3
"""A coordinate that hardly varies in the data is not blown up."""
CANDIDATES = 10
"""States of the data that are looked at, for each landmark."""
ROUNDS = 8
WITHIN = 0.999
"""The share of the data that lies within reach."""
LEAST_INFLUENCE = 0.02
"""What is measured of a coordinate that means nothing: its noise."""
RIDGE = 1e-3
"""Of the regression, in variances of a coordinate: combinations of coordinates that hardly vary are shrunk."""
FEWEST, MOST_PAIRS = 100, 100_000
"""Pairs of states to measure what coordinates do: at least so many for each, and at most for all."""
FAR = 1e9
"""The unit of coordinates that do not count."""
AT_ONCE = 2**20
"""Distances that are held at a time in a compiled search."""

Points = Float[np.ndarray, "N d"]
States = Real[np.ndarray, "N *x"]


def units_of(states: States, positions: Sequence[int]) -> Float[np.ndarray, "d"]:
    """What counts as a difference of 1, in each coordinate.

    Args:
        states: the data.
        positions: the coordinates that are positions.
    """
    if states.ndim == 1:
        return np.ones(1)
    units = np.maximum(states.std(axis=0, dtype=float), SMALLEST_UNIT)
    others = [i for i in range(len(units)) if i not in positions]
    if len(positions):
        units[list(positions)] = np.sqrt(np.mean(units[list(positions)] ** 2))
        units[others] *= np.sqrt(len(others)) / NOT_POSITIONS
    return units


def influence(data: Transitions, steps: int) -> Float[np.ndarray, "d"]:
    """How much the state after so many steps depends on each coordinate, by linear regression over the record.

    x_{t+h} ≈ B x_t, both in standard deviations; of coordinate i it is the norm of column i of B, and at least 0.02:
    about 1 for a place that is kept, or for one of two coordinates that turn into each other; 0.02 for one that is
    redrawn within a jump. 1 for all where the record is too short to tell.

    Args:
        data: transitions, of which stretches in their order count.
        steps: h, the mean length of a jump.
    """
    first = np.flatnonzero(~np.append(False, data.is_followed[:-1]))
    last = np.repeat(np.append(first[1:], len(data)) - 1, np.diff(np.append(first, len(data))))
    rows, size = np.flatnonzero(np.arange(len(data)) + steps - 1 <= last), data.state.shape[1]
    if len(rows) < FEWEST * size:
        return np.ones(size)
    rows = rows[:: -(-len(rows) // MOST_PAIRS)]
    before, after = (np.asarray(x, float) for x in (data.state[rows], data.next_state[rows + steps - 1]))
    deviation = np.maximum(before.std(axis=0), SMALLEST_UNIT)
    before, after = ((x - x.mean(axis=0)) / deviation for x in (before, after))
    found = np.linalg.solve(before.T @ before + RIDGE * len(rows) * np.eye(size), before.T @ after)
    return np.maximum(np.linalg.norm(found, axis=1), LEAST_INFLUENCE)


def points_of(states: Numbers, units: Float[np.ndarray, "d"]) -> Points:
    """States [N, …] in units of the data."""
    return np.asarray(states, float).reshape(-1, len(units)) / units


def choose(points: Points, count: int, rng: np.random.Generator) -> Int[np.ndarray, "M"]:
    """The rows of `count` landmarks among points that are all different."""
    step = -(-count // ROUNDS)
    chosen, apart = rng.choice(len(points), step, replace=False), np.full(len(points), np.inf)
    while len(chosen) < count:
        apart = np.minimum(apart, KDTree(points[chosen[-step:]]).query(points, workers=-1)[0])
        with np.errstate(divide="ignore"):
            waiting = rng.exponential(size=len(points)) / apart**2
        size = min(step, count - len(chosen))
        chosen = np.append(chosen, np.argpartition(waiting, size - 1)[:size])
    return chosen


def reach_of(points: Points, landmarks: Float[np.ndarray, "M d"]) -> float:
    """The distance within which 99.9% of the points have a landmark other than themselves."""
    apart = KDTree(landmarks).query(points, k=min(2, len(landmarks)), workers=-1)[0].reshape(len(points), -1)
    return float(np.quantile(np.where(apart[:, 0] > 0, apart[:, 0], apart[:, -1]), WITHIN))


def interpolation(distance: Float[Array, "*b m"]) -> Float[Array, "*b m"]:
    """The weights of the nearest landmarks, whose distances ascend: ∝ 1/distance²; at a landmark, its own is 1."""
    ratio = jnp.where(distance > 0, distance[..., :1] / jnp.where(distance > 0, distance, 1.0), 1.0) ** 2
    return ratio / ratio.sum(axis=-1, keepdims=True)


def shares(distance: Float[Array, "*b n"], reach: Float[Array, ""] | float) -> Float[Array, "*b n"]:
    """What each of n jumps counts, by its distance to a landmark: those within reach alike, the others nothing."""
    near = distance <= jnp.maximum(reach, distance.min(axis=-1, keepdims=True))
    return near / near.sum(axis=-1, keepdims=True)


class Atlas(eqx.Module):
    """Landmarks as compiled programs search them: by looking at all of them."""

    points: Float[Array, "M d"]
    centre: Float[Array, "d"]
    units: Float[Array, "d"]
    reach: Float[Array, ""]
    num_neighbours: int = eqx.field(static=True)
    anchor: Int[Array, "M"] | None = None
    """Of each landmark, where recorded ways are known: see `ggpi.planning.ways`."""
    connected: Bool[Array, "A A"] | None = None

    def nearest(self, states: Numbers) -> tuple[Int[Array, "N m"], Float[Array, "N m"]]:
        """The nearest landmarks of states [N, …], and their distances."""
        sizes = (self.points**2).sum(axis=1)

        def one(state: Array) -> tuple[Array, Array]:
            point = (jnp.atleast_1d(state).astype(jnp.float32) - self.centre) / self.units
            _, rows = jax.lax.top_k(2 * self.points @ point - sizes, self.num_neighbours)
            apart = jnp.sqrt(((self.points[rows] - point) ** 2).sum(axis=1))
            order = jnp.argsort(apart)  # the distances of the products are rounded
            return rows[order], apart[order]

        return jax.lax.map(one, jnp.asarray(states), batch_size=max(AT_ONCE // len(self.points), 1))


def atlas_of(landmarks: States, units: Float[np.ndarray, "d"], reach: float, num_neighbours: int) -> Atlas:
    """The landmarks for compiled programs; they are centred, so that single precision loses nothing."""
    states = np.asarray(landmarks, float).reshape(len(landmarks), -1)
    centre = np.round(states.mean(axis=0)) if landmarks.ndim == 1 else states.mean(axis=0)
    points, middle, unit, within = (
        jnp.asarray(part, jnp.float32) for part in ((states - centre) / units, centre, units, reach)
    )
    return Atlas(points, middle, unit, within, num_neighbours)
