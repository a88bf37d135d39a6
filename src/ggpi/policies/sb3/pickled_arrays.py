"""Arrays in a pickle: replacements for NumPy's functions, with every argument checked."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ggpi.storage.reading import abbreviate

AXES = 8
"""The largest number of axes of an array."""
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


class UnreadableError(Exception):
    """A pickle cannot be read; its reader turns this into a `FileError`."""


class Name(NamedTuple):
    """The name of a class or function in a pickle."""

    module: str
    name: str


class Dtype:
    """numpy.dtype("f4", …) and its byte order."""

    def __init__(self, code: object, *_: object):
        if code not in DTYPES:
            raise UnreadableError(f"it holds an array of type {abbreviate(code)}; only numbers are supported")
        self.dtype = np.dtype(str(code))

    def build(self, state: object) -> None:
        """Sets the byte order."""
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "=", "|"):
            raise UnreadableError(f"it holds an array of byte order {abbreviate(order)}")
        self.dtype = self.dtype.newbyteorder(order)


class Array:
    """An array that is filled after construction; until then `values` is None."""

    def __init__(self, *_: object):
        self.values: np.ndarray | None = None

    def build(self, state: object) -> None:
        """Sets shape, type and numbers."""
        if not (isinstance(state, tuple) and len(state) == 5):
            raise UnreadableError("it holds an array without shape, type and numbers")
        _, shape, dtype, is_fortran, content = state
        self.fill(content, dtype, shape, "F" if is_fortran is True else "C")

    def fill(self, content: object, dtype: object, shape: object, order: object) -> Array:
        """Interprets bytes as an array of this type and shape, without a copy."""
        numbers = _numbers(content, dtype)
        shape = checked_sizes("shape", shape)
        if prod(shape) != len(numbers):
            raise UnreadableError(
                f"it holds an array of shape {abbreviate(shape)} with {len(numbers)} numbers"
            )
        self.values = numbers.reshape(shape, order="F" if order == "F" else "C")
        return self


def checked_sizes(what: str, sizes: object) -> tuple[int, ...]:
    """The sizes, if they are a tuple of a few integers from 0; else raises."""
    if isinstance(sizes, tuple) and len(sizes) <= AXES and all(type(n) is int and n >= 0 for n in sizes):
        return sizes
    raise UnreadableError(f"it holds an array with {what} {abbreviate(sizes)}")


def _numbers(content: object, dtype: object) -> np.ndarray:
    if not (isinstance(content, bytes | bytearray) and isinstance(dtype, Dtype)):
        raise UnreadableError("it holds an array without bytes and a type")
    if len(content) % dtype.dtype.itemsize:
        raise UnreadableError(f"it holds an array of {dtype.dtype} in {len(content)} bytes")
    return np.frombuffer(content, dtype.dtype)


def _scalar(dtype: object, content: object) -> object:
    numbers = _numbers(content, dtype)
    if len(numbers) != 1:
        raise UnreadableError(f"it holds {len(numbers)} numbers, expected one")
    return numbers.item()


BUILDERS: dict[Name, Callable[..., Any]] = {
    Name("collections", "OrderedDict"): lambda: {},
    Name("numpy", "dtype"): Dtype,
    Name("numpy", "ndarray"): Array,
    Name("numpy._core.multiarray", "_reconstruct"): Array,
    Name("numpy._core.multiarray", "scalar"): _scalar,
    Name("numpy._core.numeric", "_frombuffer"): lambda *given: Array().fill(*given),
}
"""Replacements for the functions that a pickle calls by these names."""
