"""Network layers whose gradients are fast on a CPU.

`affine` and `silu` are x W + b and x σ(x). By default XLA differentiates them into products of transposed matrices,
which run at half speed, and stores σ. Here the operands are transposed before the products of the backward pass, and σ
is recomputed, by another formula, because XLA would otherwise keep it.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi.types import Key

NARROW = 16
"""Layers with fewer outputs transpose the gradient instead of the input."""


class MLP(eqx.Module):
    """Linear layers with SiLU between them."""

    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]

    def __call__(self, x: Float[Array, "*B i"]) -> Float[Array, "*B o"]:
        """The outputs for one input or for a batch."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = silu(affine(x, weight, bias))
        return affine(x, self.weights[-1], self.biases[-1])


def mlp(sizes: tuple[int, ...], *, key: Key) -> MLP:
    """A network with these layer sizes, inputs first: weights uniform within ±1/√fan-in, biases zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    weights = [linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)]
    return MLP(tuple(weights), tuple(jnp.zeros(size) for size in sizes[1:]))


def linear(fan_in: int, fan_out: int, *, key: Key) -> Float[Array, "i o"]:
    """A weight matrix [fan_in, fan_out], uniform within ±1/√fan_in."""
    bound = max(fan_in, 1) ** -0.5
    return jax.random.uniform(key, (fan_in, fan_out), minval=-bound, maxval=bound)


def affine(
    x: Float[Array, "*B i"], weight: Float[Array, "i o"], bias: Float[Array, "... o"]
) -> Float[Array, "*B o"]:
    """x W + b, for one x or a batch."""
    return (x @ weight if x.ndim == 1 else _product(x, weight)) + bias


@jax.custom_vjp
def _product(x: Array, weight: Array) -> Array:
    return x @ weight


def _product_forward(x: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ weight, (x, weight)


def _product_backward(operands: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, weight = operands
    if weight.shape[1] < NARROW:
        return gradient @ _transposed(weight), (_transposed(gradient) @ x).T
    return gradient @ weight.T, _transposed(x) @ gradient


def _transposed(matrix: Array) -> Array:
    """A transposed copy, which XLA cannot merge into the product."""
    return jax.lax.optimization_barrier(matrix.T)


_product.defvjp(_product_forward, _product_backward)


@jax.custom_vjp
def silu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x σ(x)."""
    return x * (0.5 + 0.5 * jnp.tanh(0.5 * x))


def _silu_backward(x: Array, gradient: Array) -> tuple[Array]:
    sigma = jax.nn.sigmoid(x)
    return (gradient * sigma * (1 + x * (1 - sigma)),)


silu.defvjp(lambda x: (silu(x), x), _silu_backward)
