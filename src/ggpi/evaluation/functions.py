"""Functions that users give, such as rewards: their errors without JAX's frames, and indices that JAX would not check.

JAX reads the nearest entry where an index is out of range: `s[9]` of a state with three coordinates is `s[2]`. When a
function is traced, an index in range becomes a plain slice. Where there is anything else, the function is run on two
states with every index checked; one that is out of range in the same way in both does not depend on the state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

INSIDE = tuple(str(Path(str(file)).parent) for file in (Path(__file__).parent, eqx.__file__, jax.__file__))
"""Where frames are not the user's."""
EXAMPLES = (0.0, 2.5)
"""The states that indices are checked on have this number everywhere."""


class UserError(Exception):
    """What a user's function raised, on its way through JAX."""


def guarded(function: Callable[..., Any], untraceable: tuple[type[Exception], ...]) -> Callable[..., Any]:
    """The function as an array; what it raises, but for errors of tracing, is the cause of a `UserError`."""

    def call(*sample: Any) -> Any:
        try:
            return jnp.asarray(function(*sample))
        except untraceable:
            raise
        except Exception as error:
            raise UserError from error

    return call


def blamed(error: BaseException) -> tuple[str, BaseException]:
    """An error in words, with the line of the user's code that raised it, and without the frames of others."""
    frames, part = [], error.__traceback__
    while part is not None:
        if not part.tb_frame.f_code.co_filename.startswith((*INSIDE, "<frozen")):
            frames.append(part)
        part = part.tb_next
    kept = None
    for part in reversed(frames):
        kept = TracebackType(kept, part.tb_frame, part.tb_lasti, part.tb_lineno)
    place = f" in line {frames[-1].tb_lineno} of {frames[-1].tb_frame.f_code.co_filename}" if frames else ""
    return f"{error!r}{place}", error.with_traceback(kept)


def wrong_index(function: Callable[..., Any], jaxpr: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]) -> str:
    """Which index of a traced function is out of range whatever the state is, in words; empty if none is."""
    if not any(name in str(jaxpr) for name in ("dynamic_slice[", "gather[")):
        return ""
    from jax.experimental import checkify

    checked = checkify.checkify(function, errors=checkify.index_checks)
    found = set()
    for number in EXAMPLES:
        try:
            error, _ = checked(*(_example(part, number) for part in shapes))
        except Exception:  # what cannot be checked, such as callbacks, is left alone
            return ""
        found.add((error.get() or "").strip())
    return found.pop() if len(found) == 1 else ""


def _example(part: jax.ShapeDtypeStruct, number: float) -> jax.Array:
    return jnp.full(part.shape, number if jnp.issubdtype(part.dtype, jnp.floating) else 0, part.dtype)
