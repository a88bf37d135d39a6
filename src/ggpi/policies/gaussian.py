"""Neural policies for continuous actions: a Gaussian whose mean and deviation come from a network.

The network is an MLP with layer normalisation and tanh, as in the paper. `sample` returns what is executed:
the draw clipped to the bounds. So an action has a density inside the bounds and a probability on them, and
`log_prob` is the logarithm of whichever applies, coordinate by coordinate.
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

from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.types import Key


class MLP(eqx.Module):
    """Linear layers, each but the last followed by layer normalisation and tanh."""

    weights: tuple[Float[Array, "m n"], ...]
    biases: tuple[Float[Array, "n"], ...]
    gains: tuple[Float[Array, "n"], ...]
    offsets: tuple[Float[Array, "n"], ...]

    def __init__(self, sizes: Sequence[int], *, last: float = 1.0, key: Key):
        """Layers of the given sizes, input first; the last one's weights are made smaller by `last`."""
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = list(zip(sizes[:-1], sizes[1:], keys, strict=True))
        weights = [jax.random.uniform(k, (m, n), minval=-1, maxval=1) / math.sqrt(m) for m, n, k in pairs]
        self.weights = (*weights[:-1], weights[-1] * last)
        self.biases = tuple(jnp.zeros(n) for n in sizes[1:])
        self.gains = tuple(jnp.ones(n) for n in sizes[1:-1])
        self.offsets = tuple(jnp.zeros(n) for n in sizes[1:-1])

    def __call__(self, x: Float[Array, "m"]) -> Float[Array, "n"]:
        for layer, (gain, offset) in enumerate(zip(self.gains, self.offsets, strict=True)):
            x = x @ self.weights[layer] + self.biases[layer]
            x = (x - x.mean()) * jax.lax.rsqrt(x.var() + 1e-5)
            x = jnp.tanh(x * gain + offset)
        return x @ self.weights[-1] + self.biases[-1]


class AbstractGaussianPolicy(eqx.Module):
    """What all Gaussian policies share; each kind says its mean and deviation in one state."""

    low: eqx.AbstractVar[Any]
    high: eqx.AbstractVar[Any]
    """One number, or one for each coordinate."""

    @abc.abstractmethod
    def distribution(self, state: Float[Array, "D"]) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """Mean and standard deviation before clipping, in one state."""

    def sample(self, state: Any, *, key: Key) -> Float[Array, "*n A"]:
        """The action that is executed, for one state or for leading axes of them."""
        mean, std = over_axes(self.distribution, state)
        return jnp.clip(mean + std * jax.random.normal(key, mean.shape), self.low, self.high)

    def mode(self, state: Any) -> Float[Array, "*n A"]:
        """The most probable action: the mean, clipped."""
        return jnp.clip(over_axes(self.distribution, state)[0], self.low, self.high)

    def log_prob(self, state: Any, action: Any) -> Float[Array, "*n"]:
        """log π(a|x) of an executed action: a density inside the bounds, a probability on them."""
        mean, std = over_axes(self.distribution, state)
        return censored_log_prob(jnp.asarray(action), mean, std, self.low, self.high)


class GaussianPolicy(AbstractGaussianPolicy):
    """π(a|x) = N(mean(x), std(x)²), independent in each coordinate, clipped to [low, high].

    The network sees the numbers `inputs` of the state, times `scale`. `noise` is a factor on the network's
    deviation. `name` is no part of the structure, so policies of one kind can be stacked.
    """

    network: MLP
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
        """The network takes the inputs and gives a mean and a deviation."""
        if not all(0 <= i < 2**31 for i in self.inputs) or self.min_std < 0 or self.noise < 0:
            raise ValueError("inputs, min_std and noise are not negative")
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


def check_bounds(low: Any, high: Any) -> None:
    """Raises unless low ≤ high."""
    if not (np.asarray(low) <= np.asarray(high)).all():
        raise ValueError(f"low is at most high, got {low} and {high}")


def seen(state: Float[Array, "D"], inputs: Sequence[int], scale: Sequence[float]) -> Float[Array, "m"]:
    """The scaled numbers that a network looks at."""
    return state[jnp.array(inputs)] * jnp.array(scale, jnp.float32)


def over_axes(function: Any, state: Any) -> Any:
    """A function of one state on an array of states with any leading axes."""
    state = jnp.asarray(state, jnp.float32)
    for _ in range(state.ndim - 1):
        function = jax.vmap(function)
    return function(state)


def censored_log_prob(
    action: Float[Array, "*n A"],
    mean: Float[Array, "*n A"],
    std: Float[Array, "*n A"],
    low: Any,
    high: Any,
) -> Float[Array, "*n"]:
    """log-likelihood of a Gaussian draw that was clipped: tails are collected on the bounds."""
    inside = norm.logpdf(action, mean, std)
    below, above = norm.logcdf(low, mean, std), norm.logcdf(-high, -mean, std)
    return jnp.where(action <= low, below, jnp.where(action >= high, above, inside)).sum(axis=-1)
