"""Densities of vectors."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def log_normal(
    x: Float[Array, "*#b D"], mean: Float[Array, "*#b D"], scale: Float[Array, "*#b D"]
) -> Float[Array, "*b"]:
    """log N(x; mean, scale²) of independent coordinates, summed over the last axis."""
    return (-0.5 * ((x - mean) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)).sum(-1)
