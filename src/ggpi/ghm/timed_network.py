"""The network of models that draw the time first: residual layers over the noise, modulated by (x, a) at a time.

    c = silu(B silu(A e(x, a)) + b(T))                                            the condition: (x, a) at time T
    h ← h + W silu(h ⊙ (1 + scale(c)) + shift(c))                                 (FiLM), from h = V ε

The time joins before the last layer that sees (x, a), so that the modulations depend on both together; what they are
made of before is shared by all times of one (x, a). Times are seen as log T / log T_max, and as its sines and cosines.
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
"""Bound of the scales."""
CLOCK = 64
"""Units of the layer between the features of a time and its part of the condition."""


class TimedNetwork(eqx.Module):
    """A map from noise to states, given codes of (x, a) and of T."""

    first: Float[Array, "..."]
    first_bias: Float[Array, "..."]
    second: Float[Array, "..."]
    second_bias: Float[Array, "..."]
    clock: MLP
    modulation: Float[Array, "..."]
    modulation_bias: Float[Array, "..."]
    inner: Float[Array, "..."]
    inner_bias: Float[Array, "..."]
    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]
    outer: Float[Array, "..."]
    outer_bias: Float[Array, "..."]

    @property
    def noise_size(self) -> int:
        """How many standard normal numbers are mapped to one state."""
        return self.inner.shape[-2]

    def encode(self, inputs: Float[Array, "*b i"]) -> Float[Array, "*b m"]:
        """The part of the condition that comes from (x, a)."""
        return _dense(silu(_dense(inputs, self.first, self.first_bias)), self.second, self.second_bias)

    def encode_time(self, t: Float[Array, "*n"]) -> Float[Array, "*n m"]:
        """The part of the condition that comes from the time, from 0 for the shortest to 1 for the longest one."""
        angles = jnp.pi * t[..., None] * jnp.arange(1, FREQUENCIES + 1)
        return by_rows(self.clock, jnp.concatenate([t[..., None], jnp.sin(angles), jnp.cos(angles)], axis=-1))

    def __call__(
        self, noise: Float[Array, "*b n"], code: Float[Array, "..."], time: Float[Array, "..."]
    ) -> Float[Array, "*b D"]:
        """States; codes and times broadcast with the noise, and what they share is computed once."""
        width = self.inner.shape[-1]
        modulation = _dense(silu(code + time), self.modulation, self.modulation_bias)
        h = _dense(noise, self.inner, self.inner_bias)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            scale, shift = (modulation[..., i * width : (i + 1) * width] for i in (2 * k, 2 * k + 1))
            h = h + _dense(silu(h * (1 + jnp.clip(scale, -LIMIT, LIMIT)) + shift), weight, bias)
        return _dense(silu(h), self.outer, self.outer_bias)


def timed_network(size: int, inputs: int, width: int, depth: int, latent: int, *, key: Key) -> TimedNetwork:
    """A network with fresh weights.

    Args:
        size: the dimension of a state.
        inputs: the number of inputs that (x, a) has.
        width: the units of each layer.
        depth: residual layers.
        latent: the dimension of the noise.
        key: the source of the weights.
    """
    first, second, clock, modulation, inner, outer, *layers = jax.random.split(key, 6 + depth)
    return TimedNetwork(
        linear(inputs, width, key=first),
        jnp.zeros(width),
        linear(width, width, key=second),
        jnp.zeros(width),
        mlp((1 + 2 * FREQUENCIES, CLOCK, width), key=clock),
        linear(width, 2 * width * depth, key=modulation),
        jnp.zeros(2 * width * depth),
        linear(latent, width, key=inner),
        jnp.zeros(width),
        tuple(linear(width, width, key=layer) for layer in layers),
        tuple(jnp.zeros(width) for _ in layers),
        linear(width, size, key=outer),
        jnp.zeros(size),
    )


def _dense(
    x: Float[Array, "*b i"], weight: Float[Array, "i o"], bias: Float[Array, "o"]
) -> Float[Array, "*b o"]:
    return by_rows(lambda rows: affine(rows, weight, bias), x)
