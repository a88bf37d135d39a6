"""Checks a loaded object against the annotations of its class, without computing anything.

    types      every field has the type of its annotation, arrays their dtype
    numbers    networks hold finite numbers; bounds may be infinite
    own checks `__post_init__` changes nothing, and the class's `check_parts(lead)` passes

Networks may be stacked: `lead` are the sizes of the leading axes that stacking added to all arrays, and a class's
`lead_of(field)` gives those of a field that is stacked further. `check_parts` evaluates functions on shapes only.
"""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
import functools
import itertools
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.shapes import Lead
from ggpi.storage.errors import FileError
from ggpi.storage.reading import short
from ggpi.types import Numbers

BOUNDS = ("low", "high", "limit")
"""Fields of networks that may hold infinite numbers."""


class PartError(ValueError):
    """A part of an object does not match its class."""

    def __init__(self, field: str, problem: str):
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field, self.problem = field, problem


def verify(value: object, where: str = "", lead: Lead = ()) -> None:
    """Raises `PartError` for the first part that does not match its class."""
    if isinstance(value, tuple | list):
        for i, part in enumerate(value):
            verify(part, f"{where}.{i}".lstrip("."), lead)
    elif isinstance(value, dict):
        for name, part in value.items():
            verify(part, f"{where}.{short(name, 40)}".lstrip("."), lead)
    elif dataclasses.is_dataclass(value):
        _verify_object(value, where, lead)


def _verify_object(value: Any, where: str, lead: Lead) -> None:
    hints, is_network = _hints(type(value)), isinstance(value, eqx.Module)
    for field in dataclasses.fields(value):
        name, part = f"{where}.{field.name}".lstrip("."), getattr(value, field.name)
        if not fits(part, hints[field.name], with_axes=not is_network):
            raise PartError(name, f"expected {_called(hints[field.name])}, got {_described(part)}")
        if is_network and not _is_sound(part, field.name in BOUNDS):
            raise PartError(name, "contains NaN or infinity")
    try:
        if not getattr(value, "checks_its_parts", False):
            for field in dataclasses.fields(value):
                inner = value.lead_of(field.name) if hasattr(value, "lead_of") else lead
                verify(getattr(value, field.name), f"{where}.{field.name}".lstrip("."), inner)
        if hasattr(value, "__post_init__"):
            _check_constructed(value)
        if hasattr(value, "check_parts"):
            value.check_parts(lead)
    except PartError:
        raise
    except Exception as error:  # checks of a class may fail in any way on wrong parts
        raise PartError(where, f"{type(value).__name__}: {short(error)}") from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields; `Any` where a user's class has annotations that only exist for type checkers."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {field.name: Any for field in dataclasses.fields(kind)}


def _check_constructed(value: Any) -> None:
    """Raises unless `__post_init__` accepts the fields and keeps their types and shapes; it may round numbers."""
    again = copy.copy(value)
    type(value).__post_init__(again)
    for field in dataclasses.fields(value):
        old, new = getattr(value, field.name), getattr(again, field.name)
        if isinstance(new, np.ndarray):
            same = isinstance(old, np.ndarray) and (old.shape, old.dtype) == (new.shape, new.dtype)
        else:
            same = old is new or (type(old) is type(new) and old == new)
        if not same:
            raise ValueError(
                f"{field.name} is {_described(old)}, the constructor turns it into {_described(new)}"
            )


def fits(value: object, hint: Any, *, with_axes: bool = False) -> bool:
    """Whether a value matches an annotation; shapes of arrays are compared if `with_axes`."""
    again = functools.partial(fits, with_axes=with_axes)
    if hint is Any or getattr(hint, "_is_protocol", False):  # of protocols, the class itself checks more
        return True
    if hasattr(hint, "dtypes"):  # an array of jaxtyping
        if not isinstance(value, np.ndarray | jax.Array) or str(value.dtype) not in hint.dtypes:
            return False
        return not with_axes or isinstance(value, hint)
    kind, of = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        return any(again(value, one) for one in of)
    if kind is Literal:
        return any(type(value) is type(one) and value == one for one in of)
    if kind is tuple:
        if not isinstance(value, tuple):
            return False
        parts = of[:1] * len(value) if of[1:] == (...,) else of
        return len(parts) == len(value) and all(map(again, value, parts))
    if kind in (list, collections.abc.Sequence):
        return isinstance(value, tuple | list) and all(again(part, of[0]) for part in value)
    if kind in (dict, collections.abc.Mapping):
        return isinstance(value, dict) and all(
            again(name, of[0]) and again(part, of[1]) for name, part in value.items()
        )
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    if hint is None:
        return value is None
    return isinstance(value, hint) if isinstance(hint, type) else True


def _is_sound(value: object, may_be_infinite: bool) -> bool:
    """Whether floats are finite, or at least not NaN."""
    if isinstance(value, tuple):
        return all(_is_sound(part, may_be_infinite) for part in value)
    if not isinstance(value, float) and getattr(value, "dtype", np.dtype(int)).kind != "f":
        return True
    numbers = np.asarray(value)
    return not np.isnan(numbers).any() if may_be_infinite else bool(np.isfinite(numbers).all())


def _called(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else short(hint, 80)


def _described(value: object) -> str:
    if isinstance(value, np.ndarray | jax.Array):
        return f"an array {list(value.shape)} of {value.dtype}"
    if isinstance(value, bool | int | float | str):
        return f"{type(value).__name__} {short(value, 40)}"
    return type(value).__name__


def matching(expected: Sequence[Numbers], found: Sequence[Numbers], path: str | Path) -> list[jax.Array]:
    """The arrays that a file holds, if they have the shapes and dtypes of the expected ones."""
    forms = [[(array.shape, str(array.dtype)) for array in arrays] for arrays in (expected, found)]
    for i, (one, other) in enumerate(itertools.zip_longest(*forms, fillvalue="nothing")):
        if one != other:
            raise FileError(path, f"expected {one}, got {other}", field=f"array {i}")
    return [jnp.asarray(array) for array in found]
