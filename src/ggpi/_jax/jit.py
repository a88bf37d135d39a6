"""Compiled functions that forget what is no longer needed, and for a CPU's matrix products.

A program is compiled for the arrays' shapes and for everything in the arguments that is no array, such as a function
that a user gave as a reward. A function that is dropped takes its programs with it; and of the programs of one compiled
function only the latest are kept.

XLA hands products of matrices to one of two libraries. The one that it prefers loses half of the machine's rate
on stacks of small matrices, as models of several policies and horizons are; `fast_jit` asks for the other.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax

from ggpi._jax.forking import check_process

OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": "512"}
"""No products by YNNPACK, they go to Eigen; and the widest registers that the CPU has."""
KEPT = 64
"""Programs of one compiled function that are kept, each with all the shapes that it was called with."""
Donate = Literal["none", "all-except-first"]


def fast_jit(function: Callable[..., Any], *, donate: Donate = "none") -> Any:
    """`jit` with these options, for calls from Python (a function that is compiled as a part of another one has that
    one's options).
    """
    return jit(function, donate=donate, options=_understood)


def jit(
    function: Callable[..., Any],
    *,
    donate: Donate = "none",
    options: Callable[[], dict[str, str]] = dict,
) -> Any:
    """The compiled function: arrays in its arguments are traced, everything else is a part of the program.

    Unlike `eqx.filter_jit` it keeps neither programs nor functions in its arguments alive for ever.
    """
    programs = _Programs(function, donate, options)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_process()
        return programs.call(args, kwargs)

    call.programs = programs  # pyright: ignore[reportAttributeAccessIssue]
    return call


class _Program:
    """A compiled function, and the key under which it is held."""

    def __init__(self, run: Any):
        self.run = run
        self.key: tuple[Any, ...] = ()


class _Programs:
    """The programs of a function by what is no array in its arguments, the latest used last."""

    def __init__(self, function: Callable[..., Any], donate: Donate, options: Callable[[], dict[str, str]]):
        self._function, self._donates, self._options = function, donate != "none", options
        self._held: dict[Any, _Program] = {}
        self._lock = threading.RLock()  # a function in a key may die while this thread holds the lock
        self._given = threading.local()

    def __len__(self) -> int:
        return len(self._held)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first, rest = _parted(args[:1]), _parted((args[1:], kwargs))
        program = self._program((*first.key(), *rest.key()))
        outer = getattr(self._given, "parts", None)
        self._given.parts = first, rest
        try:
            arrays, others = program.run(first.arrays, rest.arrays)
        finally:
            self._given.parts = outer
        return eqx.combine(arrays, others.value)

    def _program(self, key: tuple[Any, ...]) -> _Program:
        with self._lock:
            program = self._held.pop(key, None) or self._new(key)
            self._held[program.key] = program
            if len(self._held) > KEPT:
                del self._held[next(iter(self._held))]
            return program

    def _new(self, key: tuple[Any, ...]) -> _Program:
        def traced(first: list[Any], rest: list[Any]) -> Any:
            # What is no array comes from the call that is being traced: the program holds none of it.
            parts = self._given.parts
            args, (more, kwargs) = parts[0].whole(first), parts[1].whole(rest)
            arrays, others = eqx.partition(self._function(*args, *more, **kwargs), eqx.is_array)
            return arrays, _Others(others)

        traced.__name__ = getattr(self._function, "__name__", "function")
        options: Any = {"compiler_options": found} if (found := self._options()) else {}
        program = _Program(jax.jit(traced, donate_argnums=1 if self._donates else (), **options))
        alive = weakref.ref(program)

        def drop(_: Any) -> None:
            with self._lock:
                if (dropped := alive()) is not None:
                    self._held.pop(dropped.key, None)

        program.key = tuple(_watched(part, drop) for part in key)
        return program


class _Others(eqx.Module):
    """What a function returned that is no array, through `jax.jit`."""

    value: Any = eqx.field(static=True)


@dataclass(frozen=True, eq=False)
class _Parts:
    """A tree of arguments: its arrays, everything else, and how they go together."""

    arrays: list[Any]
    others: list[Any]
    places: tuple[bool, ...]
    structure: Any

    def key(self) -> tuple[Any, ...]:
        """What a program depends on, but for shapes. Functions are in it as weak references."""
        return self.structure, self.places, tuple(map(type, self.others)), tuple(map(_weak, self.others))

    def whole(self, arrays: list[Any]) -> Any:
        arrays_left, others_left = iter(arrays), iter(self.others)
        leaves = [next(arrays_left if is_array else others_left) for is_array in self.places]
        return jax.tree.unflatten(self.structure, leaves)


def _parted(tree: Any) -> _Parts:
    leaves, structure = jax.tree.flatten(tree)
    places = tuple(map(eqx.is_array, leaves))
    arrays = [leaf for leaf, is_array in zip(leaves, places, strict=True) if is_array]
    others = [leaf for leaf, is_array in zip(leaves, places, strict=True) if not is_array]
    return _Parts(arrays, others, places, structure)


def _weak(part: Any) -> Any:
    """A weak reference to what is only equal to itself, such as a function; anything else as it is."""
    if type(part).__hash__ is object.__hash__:
        with contextlib.suppress(TypeError):
            return weakref.ref(part)
    return part


def _watched(part: Any, drop: Callable[[Any], None]) -> Any:
    """A part of a key whose weak references call `drop` when what they refer to is gone."""
    if not isinstance(part, tuple):
        return part
    return tuple(weakref.ref(one(), drop) if isinstance(one, weakref.ref) else one for one in part)


@functools.cache
def _understood() -> dict[str, str]:
    """The options, or none of them where XLA does not know them."""
    try:
        jax.jit(lambda: 0, compiler_options=OPTIONS)()
    except Exception as error:  # XLA's own class of errors is not public
        if "No such compile option" not in str(error):
            raise
        return {}
    return OPTIONS
