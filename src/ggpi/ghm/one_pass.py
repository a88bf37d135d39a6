"""One forward pass per sample: a network that maps noise to where a solver would have carried it.

    x′ = frame.restore(x, g(ε|x, a)),   ε ∼ N(0, I)

g is the field of a straight path at time 0, taken to the end in one step. `ggpi.distil` regresses it on the samples of
a finished flow-matching or diffusion model from the same noise. Such a model has no density.
"""

from __future__ import annotations

from typing import Never

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi.ghm.coordinates import Frame
from ggpi.ghm.paths import AbstractPathGHM, Field, PathName, Times, Vectors
from ggpi.ghm.velocity import FieldNetwork


class OnePass(AbstractPathGHM):
    """A student of a model that follows a path."""

    frame: Frame
    network: FieldNetwork
    num_steps: int = eqx.field(static=True, default=1)
    path: PathName = eqx.field(static=True, default="straight")

    def aim(self, t: Times, target: Float[Array, "..."], noise: Float[Array, "..."]) -> Float[Array, "..."]:
        return target - noise

    def advance(self, field: Field, y: Vectors, t: Array, until: Array) -> tuple[Vectors, Vectors]:
        there = field(y, t)
        return y + (until - t) * there, there

    def log_prob(self, target: object, state: object, action: object) -> Never:
        """Raises: there is no density."""
        raise TypeError(
            "a model of ggpi.distil can be sampled, but has no density: use its teacher, a flow-matching model"
        )


def student_of(teacher: AbstractPathGHM) -> OnePass:
    """A student that starts from its teacher's weights, in arrays of its own."""
    return OnePass(*jax.tree.map(jnp.array, (teacher.frame, teacher.network)))
