"""The network of flow-matching and diffusion models: residual layers over y, modulated by (x, a) and by the time t.

    h ← h + W silu(h ⊙ (1 + scale) + shift)                                                (FiLM)
    scale = b(A e(x, a)) + b(B e(t)),   shift = A′ e(x, a) + B′ e(t),   b(z) = 4 tanh(z/4)

The modulation is a sum, so a solver computes the part of (x, a) once, and that of a time once for all rows. Scales are
bounded, and so is how fast the field changes with y, over all (x, a): samples stay finite far outside the data. Times
are seen as sin πkt and cos πkt, k = 1, …, 8: a period of 1 would take t = 0 for t = 1.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi._jax.batching import by_rows
from ggpi._jax.networks import MLP, affine, linear, mlp, silu
from ggpi.types import Key

FREQUENCIES = 8
"""Pairs of sine and cosine that a time is seen as."""
LIMIT = 4.0
"""Bound of the scales from (x, a), and of those from a time; a bound of 1 makes fields a quarter less accurate."""


class FieldNetwork(eqx.Module):
    """A vector field over y, given codes of (x, a) and of t."""

    inner: Float[Array, "..."]
    inner_bias: Float[Array, "..."]
    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]
    outer: Float[Array, "..."]
    outer_bias: Float[Array, "..."]
    context: MLP
    clock: MLP

    def encode(self, inputs: Float[Array, "*b i"]) -> Float[Array, "*b m"]:
        """The part of all modulations that comes from (x, a)."""
        return self._bounded(by_rows(self.context, inputs))

    def encode_time(self, t: Float[Array, "*n"]) -> Float[Array, "*n m"]:
        """The part of all modulations that comes from the time."""
        angles = jnp.pi * t[..., None] * jnp.arange(1, FREQUENCIES + 1)
        return self._bounded(
            by_rows(self.clock, jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1))
        )

    def __call__(
        self, y: Float[Array, "*b D"], code: Float[Array, "..."], time: Float[Array, "..."]
    ) -> Float[Array, "*b D"]:
        """The field at y; codes have one row for all y, or axes that broadcast with those of y."""
        width = self.inner.shape[-1]
        h = _dense(y, self.inner, self.inner_bias)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            first, second = (slice(i * width, (i + 1) * width) for i in (2 * k, 2 * k + 1))
            scale = code[..., first] + time[..., first]
            shift = code[..., second] + time[..., second]
            h = h + _dense(silu(h * (1 + scale) + shift), weight, bias)
        return _dense(silu(h), self.outer, self.outer_bias)

    def _bounded(self, code: Float[Array, "*b m"]) -> Float[Array, "*b m"]:
        """The modulations with bounded scales; a scale and a shift follow one another, layer by layer."""
        width = self.inner.shape[-1]
        parts = [code[..., i : i + width] for i in range(0, code.shape[-1], width)]
        parts[::2] = [LIMIT * jnp.tanh(scale / LIMIT) for scale in parts[::2]]
        return jnp.concatenate(parts, axis=-1)


def field_network(size: int, inputs: int, width: int, depth: int, *, key: Key) -> FieldNetwork:
    """A network with fresh weights, whose field is 0 everywhere.

    Args:
        size: the dimension of y.
        inputs: the number of inputs that (x, a) has.
        width: the units of each layer.
        depth: residual layers.
        key: the source of the weights.
    """
    inner, context, clock, *layers = jax.random.split(key, 3 + depth)
    modulation = 2 * width * depth
    return FieldNetwork(
        linear(size, width, key=inner),
        jnp.zeros(width),
        tuple(linear(width, width, key=layer) for layer in layers),
        tuple(jnp.zeros(width) for _ in layers),
        jnp.zeros((width, size)),
        jnp.zeros(size),
        mlp((inputs, width, width, modulation), key=context),
        mlp((2 * FREQUENCIES, width, modulation), key=clock),
    )


def _dense(
    x: Float[Array, "*b i"], weight: Float[Array, "i o"], bias: Float[Array, "o"]
) -> Float[Array, "*b o"]:
    return by_rows(lambda rows: affine(rows, weight, bias), x)
