"""`jit` with a bounded cache, and with options for fast matrix products on CPUs.

A program is compiled for the shapes of the arrays and for every argument that is not an array, such as a user's reward
function. When such a function is garbage-collected its programs are dropped, and each compiled function keeps only the
programs that were used last.

On CPUs XLA passes matrix products to one of two libraries. Its default runs at half speed on stacks of small matrices,
as in models of several policies and horizons; `fast_jit` selects the other.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
from jaxtyping import Array

from ggpi._jax.batching import Function
from ggpi._jax.forking import check_process

OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": "512"}
"""Matrix products by Eigen instead of YNNPACK, and the widest vector registers."""
KEPT = 64
"""Programs kept for each compiled function; one program covers all shapes of its arrays."""
Donate = Literal["none", "all-except-first"]


def fast_jit(function: Function, *, donate: Donate = "none") -> Any:
    """`jit` with `OPTIONS`, which apply to calls from Python; inside another compiled function, its options apply."""
    return jit(function, donate=donate, options=_understood)


def jit(
    function: Function,
    *,
    donate: Donate = "none",
    options: Callable[[], dict[str, str]] = dict,
) -> Any:
    """Compiles a function: arrays in its arguments are traced, everything else is part of the program.

    Unlike `eqx.filter_jit` it keeps neither programs nor functions in its arguments alive.

    Args:
        function: Arguments and results are pytrees of arrays and other values.
        donate: "all-except-first" lets XLA reuse the buffers of all arguments but the first.
        options: Returns XLA's compiler options; called once per program.
    """
    programs = _Programs(function, donate, options)
    _ALL.append(weakref.ref(programs, _ALL.remove))

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        check_process()
        return programs.call(args, kwargs)

    call.programs = programs  # pyright: ignore[reportAttributeAccessIssue]
    return call


def forget(but: int) -> None:
    """Frees the programs of every compiled function except for the last used ones, for processes that run for long."""
    for one in list(_ALL):
        if (programs := one()) is not None:
            programs.forget(but)


def num_programs() -> int:
    """How many programs all compiled functions keep together."""
    return sum(len(programs) for one in list(_ALL) if (programs := one()) is not None)


class _Program:
    """A compiled function and its key in the cache."""

    def __init__(self, run: Function):
        self.run = run
        self.key: tuple[Any, ...] = ()


class _Programs:
    """The programs of a function by the arguments that are not arrays; the last used comes last."""

    def __init__(self, function: Function, donate: Donate, options: Callable[[], dict[str, str]]):
        self._function, self._donates, self._options = function, donate != "none", options
        self._held: dict[Any, _Program] = {}
        self._lock = (
            threading.RLock()
        )  # a function in a key may be collected while this thread holds the lock
        self._call = threading.local()

    def __len__(self) -> int:
        return len(self._held)

    def call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        first, rest = _parted(args[:1]), _parted((args[1:], kwargs))
        program = self._program((*first.key(), *rest.key()))
        outer = getattr(self._call, "parts", None)
        self._call.parts = first, rest
        try:
            arrays, others = program.run(first.arrays, rest.arrays)
        finally:
            self._call.parts = outer
        return eqx.combine(arrays, others.value)

    def _program(self, key: tuple[object, ...]) -> _Program:
        with self._lock:
            program = self._held.pop(key, None) or self._new(key)
            self._held[program.key] = program
            if len(self._held) > KEPT:
                del self._held[next(iter(self._held))]
            return program

    def forget(self, but: int) -> None:
        with self._lock:
            for key in list(self._held)[: max(len(self._held) - but, 0)]:
                del self._held[key]

    def _new(self, key: tuple[object, ...]) -> _Program:
        def traced(first: list[Array], rest: list[Array]) -> Any:
            # Values that are not arrays come from the call that is being traced, so the program does not hold them.
            parts = self._call.parts
            args, (more, kwargs) = parts[0].whole(first), parts[1].whole(rest)
            arrays, others = eqx.partition(self._function(*args, *more, **kwargs), eqx.is_array)
            return arrays, _Others(others)

        traced.__name__ = getattr(self._function, "__name__", "function")
        options: Any = {"compiler_options": found} if (found := self._options()) else {}
        program = _Program(jax.jit(traced, donate_argnums=1 if self._donates else (), **options))
        alive = weakref.ref(program)

        def drop(_: object, is_exiting: Callable[[], bool] = sys.is_finalizing) -> None:
            if is_exiting():  # keys can no longer be compared, and modules are gone
                return
            with self._lock:
                if (dropped := alive()) is not None:
                    self._held.pop(dropped.key, None)

        program.key = tuple(_watched(part, drop) for part in key)
        return program


_ALL: list[weakref.ref[_Programs]] = []


class _Others(eqx.Module):
    """Carries results that are not arrays through `jax.jit`."""

    value: Any = eqx.field(static=True)


@dataclass(frozen=True, eq=False)
class _Parts:
    """A pytree of arguments: its arrays, its other leaves, and its structure."""

    arrays: list[Any]
    others: list[Any]
    places: tuple[bool, ...]
    structure: Any

    def key(self) -> tuple[Any, ...]:
        """What a program depends on besides shapes; functions appear as weak references."""
        return self.structure, self.places, tuple(map(type, self.others)), tuple(map(_weak, self.others))

    def whole(self, arrays: list[Array]) -> Any:
        arrays_left, others_left = iter(arrays), iter(self.others)
        leaves = [next(arrays_left if is_array else others_left) for is_array in self.places]
        return jax.tree.unflatten(self.structure, leaves)


def _parted(tree: object) -> _Parts:
    leaves, structure = jax.tree.flatten(tree)
    places = tuple(map(eqx.is_array, leaves))
    arrays = [leaf for leaf, is_array in zip(leaves, places, strict=True) if is_array]
    others = [leaf for leaf, is_array in zip(leaves, places, strict=True) if not is_array]
    return _Parts(arrays, others, places, structure)


def _weak(part: object) -> object:
    """A weak reference to a value that is compared by identity, such as a function; other values unchanged."""
    if type(part).__hash__ is object.__hash__:
        with contextlib.suppress(TypeError):
            return weakref.ref(part)
    return part


def _watched(part: object, drop: Callable[[object], None]) -> object:
    """A part of a key whose weak references call `drop` when their object is collected."""
    if not isinstance(part, tuple):
        return part
    return tuple(weakref.ref(one(), drop) if isinstance(one, weakref.ref) else one for one in part)


@functools.cache
def _understood() -> dict[str, str]:
    """`OPTIONS`, or none where XLA does not support them."""
    try:
        jax.jit(lambda: 0, compiler_options=OPTIONS)()
    except Exception as error:  # XLA's own class of errors is not public
        if "No such compile option" not in str(error):
            raise
        return {}
    return OPTIONS
