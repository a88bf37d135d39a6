"""When two values are equal as far as can be told: the one rule by which ties are judged.

    a is tied with the best   ⟺   Q(x, a) ≥ max_b Q(x, b) − ε(x, a)
    ε(x, a) = tolerance · max(|Q|(x, a), |Q|(x, b*)) + error

|Q| is Q of the absolute rewards, the sum of what was added up: for rewards of one sign |Q(x, a)| itself, which may
be far smaller than the values of other states. A tolerance relative to it changes nothing when rewards are scaled.

How exact is Q? I − βP is an M-matrix with dominant diagonal. Its LU factors add numbers of one sign, except on the
diagonal, and its inverse is not negative: so each value, however small, has an error of some d·ε·|Q|(x), ε = 2⁻⁵²,
with d the number of steps to where the rewards are. What 1/(1−γ) amplifies is one constant for all states, which no
comparison sees. Measured on slippery grids of up to 625 states, dense and sparse, γ from .3 to 1 − 1e-12: true ties
differ by at most 5ε|Q|, symmetric states by 30ε|Q|. RESOLUTION leaves a factor of a hundred.

Krylov iterations (wide sparse graphs of over 2,000 states) bound the largest error instead, the same number for every
state: this is `error`. States whose values are below it, many steps from the rewards, tie all their actions there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

RESOLUTION = 2**12 * float(np.finfo(float).eps)
"""The relative tolerance of values that this library computed exactly: 9e-13."""
TIE_TOLERANCE = 1e-9
"""That of arrays whose origin is not known."""


class Accuracy(NamedTuple):
    """How far values can be told apart: the terms of ε(x, a)."""

    tolerance: float = TIE_TOLERANCE
    error: float = 0.0
    sizes: Callable[[], np.ndarray] | None = None
    """Computes |Q|; None where it is the absolute value of Q."""


UNKNOWN = Accuracy()


def margin(one: np.ndarray, other: np.ndarray, tolerance: float, error: float = 0.0) -> np.ndarray:
    """ε of two values with these |Q|: nothing closer can be told apart."""
    if not tolerance >= 0:
        raise ValueError(f"tolerance is at least 0, got {tolerance}")
    return tolerance * np.maximum(one, other) + error


def is_best(
    values: np.ndarray, sizes: np.ndarray, *, axis: int, tolerance: float, error: float = 0.0
) -> np.ndarray:
    """True where a value is tied with the largest one along an axis; `sizes` are their |Q|."""
    place = values.argmax(axis=axis, keepdims=True)
    best, size = (np.take_along_axis(array, place, axis) for array in (values, sizes))
    return values >= best - margin(sizes, size, tolerance, error)
