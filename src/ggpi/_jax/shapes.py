"""Checks of array shapes and of the shapes that functions return, without computing values.

Networks may be stacked: `lead` are the sizes of the leading axes that stacking added to every array.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.batching import Function, over_axes
from ggpi.types import Actor

Lead = tuple[int, ...]


def check_shape(name: str, value: object, expected: tuple[int, ...]) -> None:
    """Raises unless an array has this shape."""
    shape = np.asarray(value).shape
    if shape != tuple(expected):
        raise ValueError(f"{name} has shape {shape}, expected {tuple(expected)}")


def check_positive(name: str, value: object) -> None:
    """Raises unless all elements are above 0."""
    if not (np.asarray(value) > 0).all():
        raise ValueError(f"{name} must be positive")


def check_result(
    function: Function,
    arguments: tuple[object, ...],
    expected: tuple[tuple[int, ...], str],
    lead: Lead = (),
) -> None:
    """Raises unless a function returns arrays of the expected shape and kind of dtype; only shapes are computed.

    Args:
        function: Takes and returns arrays.
        arguments: Arrays, shapes of arrays (`floats`) or modules; with `lead`, all have these leading axes.
        expected: The shape without `lead`, and the kind of dtype, such as "f".
        lead: Leading axes over which the function is vectorised.
    """
    result = jax.eval_shape(over_axes(function, len(lead)), *arguments)
    for array in jax.tree.leaves(result):
        if (array.shape, array.dtype.kind) != ((*lead, *expected[0]), expected[1]):
            raise ValueError(
                f"returns shape {array.shape} of {array.dtype}, expected {(*lead, *expected[0])}"
            )


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    """The shape of an array of floats, in place of the array."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def check_policy(policy: Actor, size: int, expected: tuple[tuple[int, ...], str]) -> None:
    """Raises unless a policy maps state vectors of this size to actions of the expected shape and kind of dtype."""
    check_result(lambda state: policy.sample(state, key=jax.random.key(0)), (floats(size),), expected)
