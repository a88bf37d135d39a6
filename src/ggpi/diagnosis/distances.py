"""Distances between two clouds of points, each an equally weighted sample of a distribution.

    energy:        2 E|X − Y| − E|X − X′| − E|Y − Y′|          0 only for equal distributions
    Wasserstein:   min over matchings of the mean |x − y|      of the clouds themselves

Both are in the clouds' units: scale the numbers of a state first, if they are of different kinds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist


def energy_distance(x: ArrayLike, y: ArrayLike) -> float:
    """The energy distance of clouds [n, D] and [m, D]; unbiased, so it may fall a little below 0.

    A point's distance to itself does not count in the means within a cloud.
    """
    x, y = _clouds(x, y)
    return float(2 * cdist(x, y).mean() - _within(x) - _within(y))


def wasserstein(x: ArrayLike, y: ArrayLike) -> float:
    """The mean distance under the best matching of two clouds [n, D] of one size; O(n³).

    Two clouds of one distribution are apart as well, by less the larger they are.
    """
    x, y = _clouds(x, y)
    if len(x) != len(y):
        raise ValueError(f"a matching needs clouds of one size, got {len(x)} and {len(y)} points")
    apart = cdist(x, y)
    return float(apart[linear_sum_assignment(apart)].mean())


def _within(x: np.ndarray) -> float:
    return float(cdist(x, x).sum() / (len(x) * (len(x) - 1)))


def _clouds(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or min(len(x), len(y)) < 2:
        raise ValueError(f"clouds have shapes [n, D] and [m, D], n, m ≥ 2, got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a cloud has numbers that are not finite")
    return x, y
