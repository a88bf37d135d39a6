"""Numbers at the boundary: whatever real type they have, exact computations see Python floats and float64 arrays.

A single-precision γ would otherwise compute everything after it in single precision (NumPy keeps the type of an
array that meets a Python float, but not that of one that meets an `np.float32`), a complex P would lose its
imaginary part with no more than a warning, and a word would fail somewhere far below.
"""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

import numpy as np


def real(value: Any, what: str) -> float:
    """One real number as a Python float: a number of Python, NumPy or JAX, or an array without axes.

    Beyond the paper: clear errors
    """
    array = _array(value, what)
    if array.ndim or not _is_real(array):
        raise TypeError(f"{what} is one real number, got {_said(value)}")
    return float(array)


def reals(values: Any, what: str) -> np.ndarray:
    """An array of real numbers in float64; complex numbers, words and other objects raise.

    Beyond the paper: clear errors
    """
    array = _array(values, what)
    if not _is_real(array):
        raise TypeError(f"{what}: real numbers are expected, got {_said(values)}")
    return array.astype(float, copy=False)


def whole(value: Any, what: str, least: int | None = 1) -> int:
    """One whole number that is at least `least`, as a Python int.

    Beyond the paper: clear errors
    """
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{what} is a whole number, got {_said(value)}") from error
    if least is not None and number < least:
        raise ValueError(f"{what} is at least {least}, got {number}")
    return number


def indices(values: Any, limit: int, what: str) -> np.ndarray:
    """Integers from 0 to limit − 1, of any shape.

    Beyond the paper: NumPy would count negative ones from the end
    """
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
        return all(isinstance(value, Real) for value in array.flat)
    return array.dtype.kind in "biuf" or (array.dtype.kind == "V" and np.can_cast(array.dtype, float))


def _said(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    text = repr(value) if np.ndim(value) == 0 else f"{type(value).__name__} of shape {np.shape(value)}"
    return (text if len(text) <= 60 else text[:57] + "…") + (
        f" with dtype {dtype}" if dtype is not None else ""
    )
