"""Batches: modules stacked along a leading axis, and functions of one thing applied to many.

stack         modules of one structure → one module whose arrays have a leading axis
part_of       one or some of the modules of a stack
over_axes     vectorises a function over a number of leading axes of all its arguments
over_vectors  a function of one state vector → states with any leading axes
over_states   the same, where integers are states of a finite MDP
by_rows       a function of rows, with all leading axes as one
over_models   a function of one model and one entry → stacked models, each with a batch of its own
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ggpi.types import ArrayLike, Numbers

T = TypeVar("T")
Function = Callable[..., Any]


def stack(modules: Sequence[T]) -> T:
    """Modules of one structure as one module with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *modules)


def part_of(stacked: T, rows: int | slice) -> T:
    """One or some of the modules of a stack."""
    return jax.tree.map(lambda leaf: leaf[rows], stacked)


def over_axes(function: Function, count: int) -> Function:
    """The function, vectorised over the first `count` axes of all its arguments."""
    for _ in range(count):
        function = jax.vmap(function)
    return function


def over_vectors(function: Function, state: ArrayLike) -> Any:
    """Applies a function of one state vector to states with any leading axes."""
    vectors = jnp.asarray(state, jnp.float32)
    return over_axes(function, vectors.ndim - 1)(vectors)


def over_states(function: Function, state: ArrayLike) -> Any:
    """Applies a function of one state, an integer or a vector of floats, to states with any leading axes."""
    states = jnp.asarray(state)
    if not jnp.issubdtype(states.dtype, jnp.integer):
        return over_vectors(function, states)
    return over_axes(function, states.ndim)(states)


def by_rows(function: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    """A function of rows [n, i], with all leading axes of x as one."""
    if x.ndim < 3:
        return function(x)
    return function(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


def over_models(function: Function, models: eqx.Module, *arguments: Numbers) -> Any:
    """function(model, …) for each of the stacked models and each entry of its batch, arguments [models, batch, …]."""
    return jax.vmap(lambda model, *batch: jax.vmap(lambda *one: function(model, *one))(*batch))(
        models, *arguments
    )
