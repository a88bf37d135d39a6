"""Batch normalisation as an invertible map: z = (y − mean)/√(variance + ε), with running statistics.

Density and samples both use the running statistics, so a model is one distribution whatever the batch.
`observe` moves them towards a batch's; gradients do not reach them.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi._jax.shapes import Lead, check_positive

EPSILON = 1e-5
"""Added to variances."""


class BatchNorm(eqx.Module):
    """Running mean and variance of the inputs."""

    mean: Float[Array, "..."]
    variance: Float[Array, "..."]
    momentum: float = eqx.field(static=True)
    """The weight of the newest batch in the running statistics."""

    def check_parts(self, lead: Lead) -> None:
        """A variance is not negative."""
        check_positive("variance + ε", self.variance + EPSILON)

    def forward(self, y: Float[Array, "D"]) -> tuple[Float[Array, "D"], Float[Array, ""]]:
        """z and log |dz/dy|."""
        mean, log_scale = self._fixed()
        return (y - mean) * jnp.exp(-log_scale), -log_scale.sum()

    def inverse(self, z: Float[Array, "D"]) -> Float[Array, "D"]:
        """The y of a z."""
        mean, log_scale = self._fixed()
        return mean + jnp.exp(log_scale) * z

    def observe(self, ys: Float[Array, "B D"]) -> BatchNorm:
        """With statistics moved towards those of a batch [B, D]."""
        ys, (mean, variance) = jax.lax.stop_gradient((ys, (self.mean, self.variance)))
        mean = mean + self.momentum * (ys.mean(axis=0) - mean)
        variance = variance + self.momentum * (ys.var(axis=0) - variance)
        return BatchNorm(mean, variance, self.momentum)

    def _fixed(self) -> tuple[Float[Array, "D"], Float[Array, "D"]]:
        mean, variance = jax.lax.stop_gradient((self.mean, self.variance))
        return mean, 0.5 * jnp.log(variance + EPSILON)


def batch_norm(size: int, momentum: float) -> BatchNorm:
    """Nearly the identity, before the first batch."""
    return BatchNorm(jnp.zeros(size), jnp.ones(size), momentum)
