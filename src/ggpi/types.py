"""Array axes and the two protocols of the library.

Axes: S states, A actions, N switching policies, K base policies, D state dimension.
Exact arrays are NumPy float64; sampled and learned ones are JAX float32.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from numbers import Real as RealNumber
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Real

Key = PRNGKeyArray
StateValues = Float[np.ndarray, "S"]
ActionValues = Float[np.ndarray, "S A"]
Mask = Bool[np.ndarray, "S"]
Indices = Int[np.ndarray, "..."]
Scalar = SupportsFloat
"""A real number of Python, NumPy or JAX; `ggpi.mdp.tabular.check_gamma` and its like make a float of it."""
Numbers = Real[np.ndarray, "..."] | Real[Array, "..."]
ArrayLike = npt.ArrayLike | Sequence[object]
"""What `np.asarray` reads; at run time NumPy's own alias does not include tuples."""


@runtime_checkable
class Policy(Protocol):
    """A Markov policy: `sample` returns the action that is executed."""

    @property
    def name(self) -> str: ...

    def sample(self, state: Any, *, key: Key) -> Any: ...

    def mode(self, state: Any) -> Any: ...


@runtime_checkable
class Actor(Protocol):
    """All that collecting, learning and planning need of a policy."""

    def sample(self, state: Any, *, key: Key) -> Any: ...


@runtime_checkable
class GHM(Protocol):
    """A generative model of μ(·|x, a), the state after a geometric time.

    Paper: Def 2.2
    """

    def sample(self, state: Any, action: Any, *, key: Key) -> Any: ...


def real(value: Any, what: str) -> float:
    """One real number as a Python float: a number of Python, NumPy or JAX, or an array without axes."""
    array = _array(value, what)
    if array.ndim or not _is_real(array):
        raise TypeError(f"{what} is one real number, got {_said(value)}")
    return float(array)


def reals(values: Any, what: str) -> np.ndarray:
    """An array of real numbers in float64; complex numbers, words and other objects raise."""
    array = _array(values, what)
    if not _is_real(array):
        raise TypeError(f"{what}: real numbers are expected, got {_said(values)}")
    return array.astype(float, copy=False)


def whole(value: Any, what: str, least: int | None = 1) -> int:
    """One whole number that is at least `least`, as a Python int."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{what} is a whole number, got {_said(value)}") from error
    if least is not None and number < least:
        raise ValueError(f"{what} is at least {least}, got {number}")
    return number


def indices(values: Any, limit: int, what: str) -> np.ndarray:
    """Integers from 0 to limit − 1, of any shape."""
    array = _array(values, what)
    if array.dtype.kind not in "biu":
        raise TypeError(f"{what} are whole numbers from 0 to {limit - 1}, got {_said(values)}")
    if array.size and not (array.min() >= 0 and array.max() < limit):
        raise IndexError(f"{what} run from 0 to {limit - 1}, got {array.min()} to {array.max()}")
    return array.astype(np.intp, copy=False)


def _array(values: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:  # rows of unequal lengths, or an object that is no array
        raise ValueError(f"{what} cannot be read as an array: {error}") from error


def _is_real(array: np.ndarray) -> bool:
    """Bools, integers and floats, JAX's small floats (kind V, such as bfloat16), and objects such as fractions."""
    if array.dtype.kind == "O":
        return all(isinstance(value, RealNumber) for value in array.flat)
    return array.dtype.kind in "biuf" or (array.dtype.kind == "V" and np.can_cast(array.dtype, float))


def _said(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    text = repr(value) if np.ndim(value) == 0 else f"{type(value).__name__} of shape {np.shape(value)}"
    return (text if len(text) <= 60 else text[:57] + "…") + (
        f" with dtype {dtype}" if dtype is not None else ""
    )
