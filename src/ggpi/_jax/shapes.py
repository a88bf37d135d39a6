"""Checks of shapes and of what functions of arrays return, without computing anything.

Networks may be stacked: `lead` are the sizes of the axes that stacking put before those of every array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Lead = tuple[int, ...]


def check_shape(name: str, value: Any, expected: tuple[int, ...]) -> None:
    """Raises unless an array has this shape."""
    if np.shape(value) != tuple(expected):
        raise ValueError(f"{name} has shape {np.shape(value)}, expected {tuple(expected)}")


def check_positive(name: str, value: Any) -> None:
    """Raises unless all numbers are above 0."""
    if not (np.asarray(value) > 0).all():
        raise ValueError(f"{name} has numbers that are not positive")


def check_result(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    expected: tuple[tuple[int, ...], str],
    lead: Lead = (),
) -> None:
    """Raises unless a function of arrays gives an array of this shape and kind of numbers; only shapes are computed.

    Stacked modules are the first of what is `given`, with `lead` before the axes of all of it.
    """
    for _ in lead:
        function = jax.vmap(function)
    result = jax.eval_shape(function, *given)
    for array in jax.tree.leaves(result):
        if (array.shape, array.dtype.kind) != ((*lead, *expected[0]), expected[1]):
            raise ValueError(
                f"it answers with shape {array.shape} of {array.dtype}, expected {(*lead, *expected[0])}"
            )


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    """Stands for an array of floats of this shape."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def check_policy(policy: Any, size: int, expected: tuple[tuple[int, ...], str]) -> None:
    """Raises unless a policy takes a state vector of this size and gives actions of this shape and kind."""
    check_result(lambda state: policy.sample(state, key=jax.random.key(0)), (floats(size),), expected)
