"""NumPy's arrays in a pickle: what takes the place of NumPy's own functions there, with every argument checked."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ggpi.storage.reading import abbreviate

AXES = 8
"""The most axes of an array."""
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


class UnreadableError(Exception):
    """What is wrong with a pickle, from inside of its reader."""


class Name(NamedTuple):
    """A class or function that a pickle names."""

    module: str
    name: str


class Dtype:
    """numpy.dtype("f4", …) and its byte order."""

    def __init__(self, code: Any, *_: Any):
        if code not in DTYPES:
            raise UnreadableError(f"it holds an array of type {abbreviate(code)}: only numbers are read")
        self.dtype = np.dtype(code)

    def build(self, state: Any) -> None:
        """Takes the byte order."""
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "=", "|"):
            raise UnreadableError(f"it holds an array of byte order {abbreviate(order)}")
        self.dtype = self.dtype.newbyteorder(order)


class Array:
    """An array that is filled after it was made; until then `values` is None."""

    def __init__(self, *_: Any):
        self.values: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Takes shape, type and numbers."""
        if not (isinstance(state, tuple) and len(state) == 5):
            raise UnreadableError("it holds an array without shape, type and numbers")
        _, shape, dtype, is_fortran, content = state
        self.fill(content, dtype, shape, "F" if is_fortran is True else "C")

    def fill(self, content: Any, dtype: Any, shape: Any, order: Any) -> Array:
        """Takes bytes as numbers of this type and shape, without a copy."""
        numbers = _numbers(content, dtype)
        check_sizes("shape", shape)
        if prod(shape) != len(numbers):
            raise UnreadableError(
                f"it holds an array of shape {abbreviate(shape)} with {len(numbers)} numbers"
            )
        self.values = numbers.reshape(shape, order="F" if order == "F" else "C")
        return self


def check_sizes(what: str, sizes: Any) -> None:
    """Raises unless these are a tuple of a few integers from 0."""
    if not (
        isinstance(sizes, tuple) and len(sizes) <= AXES and all(type(n) is int and n >= 0 for n in sizes)
    ):
        raise UnreadableError(f"it holds an array with {what} {abbreviate(sizes)}")


def _numbers(content: Any, dtype: Any) -> np.ndarray:
    if not (isinstance(content, bytes | bytearray) and isinstance(dtype, Dtype)):
        raise UnreadableError("it holds an array that is not made of bytes and a type")
    if len(content) % dtype.dtype.itemsize:
        raise UnreadableError(f"it holds an array of {dtype.dtype} in {len(content)} bytes")
    return np.frombuffer(content, dtype.dtype)


def _scalar(dtype: Any, content: Any) -> Any:
    numbers = _numbers(content, dtype)
    if len(numbers) != 1:
        raise UnreadableError(f"it holds {len(numbers)} numbers where one was expected")
    return numbers.item()


BUILDERS: dict[Name, Callable[..., Any]] = {
    Name("collections", "OrderedDict"): lambda: {},
    Name("numpy", "dtype"): Dtype,
    Name("numpy", "ndarray"): Array,
    Name("numpy._core.multiarray", "_reconstruct"): Array,
    Name("numpy._core.multiarray", "scalar"): _scalar,
    Name("numpy._core.numeric", "_frombuffer"): lambda *given: Array().fill(*given),
}
"""What our functions make of the arguments that a pickle gives to functions of these names."""
