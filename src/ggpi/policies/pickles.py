"""Reads pickles without executing any of them.

A pickle is a little program: it names functions and calls them. Here every name has to be on a list, and what
is on the list is not the real thing but a stand-in that only writes down what it was given: arrays come out as
arrays, objects as a `Record` of their class, arguments and state. A name that is not on the list is refused
before anything is called, so a hostile file can do nothing but fail to load.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np

StandIns = Callable[[str, str], Any]
"""From a module and a name in it to what stands in for it; None refuses it."""


def read_pickle(
    content: bytes, source: str, stand_ins: StandIns, outside: Callable[[Any], Any] | None = None
) -> Any:
    """What a pickle describes; `source` names it in errors, `outside` gives what it keeps elsewhere.

    Beyond the paper: files of other people's policies are data, not programs
    """
    try:
        return _Reader(content, stand_ins, outside).load()
    except _RefusedError as error:
        raise ValueError(f"{source}: {error}; nothing of it was executed") from None
    except Exception as error:
        raise ValueError(f"{source} is damaged or no pickle: {type(error).__name__}: {error}") from error


class Record:
    """Stands for an object of a class that is not loaded: the class's name, arguments and state.

    Beyond the paper: what a pickle says about an object, without the object
    """

    module: str = ""
    name: str = ""

    def __new__(cls, *args: Any, **_: Any) -> Record:
        record = object.__new__(cls)
        record.args, record.state = args, {}
        return record

    def __init__(self, *args: Any, **_: Any):
        self.args: tuple[Any, ...]
        self.state: Any

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def get(self, field: str, default: Any = None) -> Any:
        """A field of the state."""
        return self.state.get(field, default) if isinstance(self.state, dict) else default


def record_of(module: str, name: str) -> type[Record]:
    """The stand-in for the class of this name.

    Beyond the paper: what a pickle says about an object, without the object
    """
    return type("Record", (Record,), {"module": module, "name": name})


def numpy_and_dicts(module: str, name: str) -> Any:
    """Stand-ins for what arrays, scalars and ordered dictionaries are made of; None for all else.

    Beyond the paper: the part of a list that all files share
    """
    if module == "numpy.core" or module.startswith("numpy.core."):  # before NumPy 2
        module = module.replace("numpy.core", "numpy._core", 1)
    return _KNOWN.get((module, name))


class _RefusedError(pickle.UnpicklingError):
    pass


class _Reader(pickle.Unpickler):
    def __init__(self, content: bytes, stand_ins: StandIns, outside: Callable[[Any], Any] | None):
        super().__init__(io.BytesIO(content))
        self._stand_ins, self._outside = stand_ins, outside

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        found = self._stand_ins(module_name, global_name)
        if found is None:
            raise _RefusedError(f"it names {module_name}.{global_name}, which this reader does not admit")
        return found

    def persistent_load(self, pid: Any) -> Any:
        if self._outside is None:
            raise _RefusedError("it refers to something outside of the file")
        return self._outside(pid)


class _Dtype:
    """numpy.dtype("f4", …) and its byte order."""

    def __init__(self, code: str, *_: Any):
        if not re.fullmatch(r"[biuf]\d{1,2}", code):
            raise _RefusedError(f"it holds an array of type {code!r}: only numbers are read")
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "=", "|"):
            raise _RefusedError(f"it holds an array of byte order {state[1]!r}")
        self.order = state[1]

    def dtype(self) -> np.dtype:
        return np.dtype(self.order + self.code)


class _Array:
    """An array that is filled after it was made; `np.asarray` takes it."""

    def __init__(self, *_: Any):
        self._values = np.zeros(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, content = state
        self.fill(content, dtype, shape, "F" if is_fortran else "C")

    def fill(self, content: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> _Array:
        values = np.frombuffer(bytes(content), dtype.dtype())
        self._values = values.reshape(shape, order="F" if order == "F" else "C")
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._values, dtype=dtype, copy=copy)


class _Dict(dict):
    """A dictionary that forgets attributes set on it."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        pass


def _from_buffer(content: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> _Array:
    return _Array().fill(content, dtype, shape, order)


def _scalar(dtype: _Dtype, content: Any) -> Any:
    return np.frombuffer(bytes(content), dtype.dtype())[0].item()


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): _Dict,
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): record_of("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
}
