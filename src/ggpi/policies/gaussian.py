"""Neural policies for continuous actions: a Gaussian whose mean and standard deviation come from a network.

The network is an MLP with layer normalisation and tanh, as in the paper. `sample` returns the executed action, which is
the draw clipped to the bounds. So an action has a density inside the bounds and a probability on them; `log_prob`
uses whichever applies, coordinate by coordinate.
"""

import abc
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from ggpi._jax.batching import over_vectors
from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.types import ArrayLike, Key


class LayerNormMLP(eqx.Module):
    """Linear layers, each but the last followed by layer normalisation and tanh."""

    weights: tuple[Float[Array, "m n"], ...]
    biases: tuple[Float[Array, "n"], ...]
    gains: tuple[Float[Array, "n"], ...]
    offsets: tuple[Float[Array, "n"], ...]

    def __init__(self, sizes: Sequence[int], *, last: float = 1.0, key: Key):
        """Layers of these sizes, inputs first; the weights of the last layer are scaled by `last`."""
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = list(zip(sizes[:-1], sizes[1:], keys, strict=True))
        weights = [jax.random.uniform(k, (m, n), minval=-1, maxval=1) / math.sqrt(m) for m, n, k in pairs]
        self.weights = (*weights[:-1], weights[-1] * last)
        self.biases = tuple(jnp.zeros(n) for n in sizes[1:])
        self.gains = tuple(jnp.ones(n) for n in sizes[1:-1])
        self.offsets = tuple(jnp.zeros(n) for n in sizes[1:-1])

    def __call__(self, x: Float[Array, "m"]) -> Float[Array, "n"]:
        """The outputs for one input."""
        for layer, (gain, offset) in enumerate(zip(self.gains, self.offsets, strict=True)):
            x = x @ self.weights[layer] + self.biases[layer]
            x = (x - x.mean()) * jax.lax.rsqrt(x.var() + 1e-5)
            x = jnp.tanh(x * gain + offset)
        return x @ self.weights[-1] + self.biases[-1]


class AbstractGaussianPolicy(eqx.Module):
    """Base of Gaussian policies; a subclass defines the mean and the standard deviation in one state."""

    low: eqx.AbstractVar[Any]
    high: eqx.AbstractVar[Any]
    """One number, or one for each coordinate."""

    @abc.abstractmethod
    def distribution(self, state: Float[Array, "D"]) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """Mean and standard deviation before clipping, in one state."""

    def sample(self, state: ArrayLike, *, key: Key) -> Float[Array, "*n A"]:
        """The executed action, for one state or for states with any leading axes."""
        mean, std = over_vectors(self.distribution, state)
        return jnp.clip(mean + std * jax.random.normal(key, mean.shape), self.low, self.high)

    def mode(self, state: ArrayLike) -> Float[Array, "*n A"]:
        """The most probable action: the mean, clipped."""
        return jnp.clip(over_vectors(self.distribution, state)[0], self.low, self.high)

    def log_prob(self, state: ArrayLike, action: ArrayLike) -> Float[Array, "*n"]:
        """log π(a|x) of an executed action: a density inside the bounds, a probability on them."""
        mean, std = over_vectors(self.distribution, state)
        return censored_log_prob(jnp.asarray(action), mean, std, self.low, self.high)


class GaussianPolicy(AbstractGaussianPolicy):
    """π(a|x) = N(mean(x), std(x)²), independent in each coordinate, clipped to [low, high].

    The network sees the state dimensions `inputs`, times `scale`. `noise` multiplies the standard deviation. Names do
    not matter for stacking: policies that differ only in weights and name can be stacked.
    """

    network: LayerNormMLP
    name: str
    inputs: tuple[int, ...] = eqx.field(static=True)
    scale: tuple[float, ...] = eqx.field(static=True)
    low: float = eqx.field(static=True, default=-1.0)
    high: float = eqx.field(static=True, default=1.0)
    min_std: float = eqx.field(static=True, default=0.01)
    noise: float = eqx.field(static=True, default=1.0)

    @property
    def action_size(self) -> int:
        return self.network.biases[-1].shape[-1] // 2

    def check_parts(self, lead: Lead) -> None:
        """The network maps the inputs to a mean and a standard deviation."""
        if not all(0 <= i < 2**31 for i in self.inputs) or self.min_std < 0 or self.noise < 0:
            raise ValueError("inputs, min_std and noise must not be negative")
        check_shape(
            "network.weights[0]", self.network.weights[0], (len(self.inputs), *self.network.biases[0].shape)
        )
        check_shape("scale", self.scale, (len(self.inputs),))
        check_bounds(self.low, self.high)
        check_policy(self, 1 + max(self.inputs), ((self.action_size,), "f"))

    def distribution(self, state: Float[Array, "D"]) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """Mean and standard deviation before clipping, in one state."""
        mean, raw = jnp.split(self.network(seen(state, self.inputs, self.scale)), 2)
        return mean, self.noise * (jax.nn.softplus(raw) + self.min_std)


def check_bounds(low: ArrayLike, high: ArrayLike) -> None:
    """Raises unless low ≤ high."""
    if not (np.asarray(low) <= np.asarray(high)).all():
        raise ValueError(f"low is at most high, got {low} and {high}")


def seen(state: Float[Array, "D"], inputs: Sequence[int], scale: Sequence[float]) -> Float[Array, "m"]:
    """The scaled state dimensions that a network sees."""
    return state[jnp.array(inputs)] * jnp.array(scale, jnp.float32)


def censored_log_prob(
    action: Float[Array, "*n A"],
    mean: Float[Array, "*n A"],
    std: Float[Array, "*n A"],
    low: float | Array,
    high: float | Array,
) -> Float[Array, "*n"]:
    """Log-likelihood of a clipped Gaussian draw; the tails are probabilities on the bounds."""
    inside = norm.logpdf(action, mean, std)
    below, above = norm.logcdf(low, mean, std), norm.logcdf(-high, -mean, std)
    return jnp.where(action <= low, below, jnp.where(action >= high, above, inside)).sum(axis=-1)
