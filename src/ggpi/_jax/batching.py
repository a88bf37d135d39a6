"""Functions of one thing, applied to many: stacked modules, and functions over their models or over states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpy.typing import ArrayLike

Module = TypeVar("Module", bound=eqx.Module)


def stack_modules(modules: Sequence[Module]) -> Module:
    """Modules of one structure as one module whose arrays have a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *modules)


def part_of(stacked: Module, rows: int | slice) -> Module:
    """One or some of the modules of a stack."""
    return jax.tree.map(lambda leaf: leaf[rows], stacked)


def over_models(function: Callable[..., Any], models: Module, *batches: Array) -> Any:
    """function(model, …) for each model of a stack and each entry of its batch; batches are arrays [M, B, …]."""
    return jax.vmap(lambda model, *own: jax.vmap(lambda *one: function(model, *one))(*own))(models, *batches)


def over_states(function: Callable[[Array], Any], state: ArrayLike) -> Any:
    """A function of one state, applied over any leading axes; a state is an integer or a vector of floats."""
    state = jnp.asarray(state)
    discrete = jnp.issubdtype(state.dtype, jnp.integer)
    state = state if discrete else state.astype(jnp.float32)
    for _ in range(state.ndim - (0 if discrete else 1)):
        function = jax.vmap(function)
    return function(state)
