"""Networks that PyTorch trained: linear layers with one activation between them, on normalised states.

    h₀ = clip((x − mean) / deviation, ±limit),  hᵢ₊₁ = activation(Wᵢ hᵢ + bᵢ),  no activation after the last

Activations have the constants that PyTorch gives them by default. The mean is kept as a sum of two single
precision numbers, so that a state far from zero loses no digits against double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.shapes import Lead, check_positive, check_result, check_shape, floats
from ggpi.storage.reading import abbreviate

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "CELU": jax.nn.celu,
    "ELU": jax.nn.elu,
    "GELU": lambda x: jax.nn.gelu(x, approximate=False),
    "Hardshrink": lambda x: jnp.where(jnp.abs(x) > 0.5, x, 0),
    "Hardsigmoid": jax.nn.hard_sigmoid,
    "Hardswish": jax.nn.hard_swish,
    "Hardtanh": jax.nn.hard_tanh,
    "Identity": lambda x: x,
    "LeakyReLU": lambda x: jax.nn.leaky_relu(x, 0.01),
    "LogSigmoid": jax.nn.log_sigmoid,
    "Mish": jax.nn.mish,
    "ReLU": jax.nn.relu,
    "ReLU6": jax.nn.relu6,
    "RReLU": lambda x: jax.nn.leaky_relu(x, (1 / 8 + 1 / 3) / 2),
    "SELU": jax.nn.selu,
    "SiLU": jax.nn.silu,
    "Sigmoid": jax.nn.sigmoid,
    "Softplus": jax.nn.softplus,
    "Softshrink": lambda x: jnp.sign(x) * jax.nn.relu(jnp.abs(x) - 0.5),
    "Softsign": jax.nn.soft_sign,
    "Tanh": jnp.tanh,
    "Tanhshrink": lambda x: x - jnp.tanh(x),
}
"""What stands between layers, by PyTorch's name. PReLU is known too: its slopes are learned."""
BOUNDED = {"Hardsigmoid", "Hardtanh", "ReLU6", "Sigmoid", "Softsign", "Tanh"}
"""Activations that stay within ±6."""
ROWS = 256
"""How many rows of a weight are taken to double precision at once."""
LARGEST = 1e30
SMALLEST = 1e-30
"""Magnitudes between which single precision divides and adds without overflow."""


class Normaliser(eqx.Module):
    """Running mean and variance of observations, as VecNormalize applies them."""

    mean: Float[Array, "..."]
    rest: Float[Array, "..."]
    """What the mean lost when it was rounded."""
    deviation: Float[Array, "..."]
    limit: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """Numbers for each input, and positive deviations."""
        for name in ("rest", "deviation"):
            check_shape(name, getattr(self, name), self.mean.shape)
        check_shape("limit", self.limit, ())
        check_positive("deviation", self.deviation)
        check_positive("limit", self.limit)

    def __call__(self, state: Float[Array, "D"]) -> Float[Array, "D"]:
        if state.shape != self.mean.shape:
            raise ValueError(
                f"this policy takes observations of {len(self.mean)} numbers, got shape {state.shape}"
            )
        scaled = ((state - self.mean) - self.rest) / self.deviation
        return jnp.clip(scaled, -self.limit, self.limit)


def normaliser(mean: Any, var: Any, epsilon: float = 1e-8, limit: float = 10.0) -> Normaliser:
    """(x − mean) / √(var + ε), clipped to ±limit."""
    mean, var = np.asarray(mean, np.float64), np.asarray(var, np.float64)
    for field, values, is_right in (
        ("mean", mean, np.abs(mean) < LARGEST),
        ("var", var, (var >= 0) & (var < LARGEST)),
        ("epsilon", epsilon, 0 <= epsilon < LARGEST),
        ("clip_obs", limit, limit > 0),
    ):
        if not np.all(is_right):
            raise ValueError(f"{field} has values that no statistics have: {abbreviate(values)}")
    if np.any(var + epsilon < SMALLEST):
        raise ValueError(f"var + epsilon is below {SMALLEST}: observations cannot be divided by its root")
    rounded = mean.astype(np.float32)
    parts = rounded, mean - rounded, np.sqrt(var + epsilon), limit
    return Normaliser(*(jnp.asarray(part, jnp.float32) for part in parts))


class Network(eqx.Module):
    """Layers Wᵢ, bᵢ with an activation between them, on normalised states."""

    normalise: Normaliser
    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]
    slopes: tuple[Float[Array, "..."], ...]
    """Learned slopes of PReLU after each layer but the last; empty for other activations."""
    activation: str = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """Layers follow each other, and the activation is known."""
        if self.activation not in (*ACTIVATIONS, "PReLU"):
            raise ValueError(f"unknown activation {self.activation!r:.40}")
        check_result(self.__call__, (floats(*self.normalise.mean.shape),), (self.biases[-1].shape, "f"))

    def __call__(self, state: Float[Array, "D"]) -> Float[Array, "n"]:
        return self.outputs(self.features(state))

    def features(self, state: Float[Array, "D"]) -> Float[Array, "F"]:
        """The inputs of the last layer."""
        x = self.normalise(state)
        for layer, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            x = self._activate(layer, weight @ x + bias)
        return x

    def outputs(self, features: Float[Array, "F"]) -> Float[Array, "n"]:
        """The last layer."""
        return self.weights[-1] @ features + self.biases[-1]

    def _activate(self, layer: int, x: Any) -> Any:
        if self.activation == "PReLU":
            return jnp.where(x >= 0, x, self.slopes[layer] * x)
        return ACTIVATIONS[self.activation](x)


def largest_output(network: Network, state: float) -> float:
    """A bound of the outputs' magnitude, and of all numbers on the way, for states within ±`state`.

    Every activation f has |f(x)| ≤ 2|x| + 2, PReLU with its slopes instead of 2.
    """
    normalise = network.normalise
    mean, deviation = (np.asarray(part, np.float64) for part in (normalise.mean, normalise.deviation))
    x = np.minimum((state + np.abs(mean)) / deviation, float(normalise.limit))
    largest = float(x.max())
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        if layer and network.activation in BOUNDED:
            x = np.minimum(2 * x + 2, 6)
        elif layer:
            slope = np.abs(np.asarray(network.slopes[layer - 1], np.float64)) if network.slopes else 0
            x = np.maximum(2, slope) * x + 2
        rows = np.split(np.asarray(weight), range(ROWS, len(weight), ROWS))
        x = np.concatenate([np.abs(part, dtype=np.float64) @ x for part in rows])
        x += np.abs(np.asarray(bias, np.float64))
        largest = max(largest, float(x.max()))
    return largest


class Greedy(eqx.Module):
    """The best of a network's values."""

    network: Network

    def __call__(self, state: Float[Array, "D"]) -> Any:
        return jnp.argmax(self.network(state))


class FixedDeviation(eqx.Module):
    """A network's mean, and a deviation that is the same everywhere."""

    network: Network
    log_std: Float[Array, "..."]

    def __call__(self, state: Float[Array, "D"]) -> Any:
        return self.network(state), jnp.exp(self.log_std)


class MeanAndLogDeviation(eqx.Module):
    """The two halves of a network's output, the second within [−20, 2]."""

    network: Network

    def __call__(self, state: Float[Array, "D"]) -> Any:
        mean, log_std = jnp.split(self.network(state), 2)
        return mean, jnp.clip(log_std, -20.0, 2.0)


class FeatureNoise(eqx.Module):
    """A network's mean within ±limit, and the deviation of noise that is linear in the last layer's inputs φ.

    sⱼ² = Σᵢ φᵢ² σᵢⱼ² + 10⁻⁶
    """

    network: Network
    std: Float[Array, "..."]
    """σ, a row for each input of the last layer."""
    limit: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """A deviation for each input and output of the last layer."""
        check_shape("std", self.std, self.network.weights[-1].shape[::-1])
        check_shape("limit", self.limit, ())
        check_positive("limit", self.limit)

    def __call__(self, state: Float[Array, "D"]) -> Any:
        features = self.network.features(state)
        mean = jnp.clip(self.network.outputs(features), -self.limit, self.limit)
        return mean, jnp.sqrt(features**2 @ self.std**2 + 1e-6)


class FeatureLogNoise(eqx.Module):
    """The same with the logarithm of the deviation."""

    noise: FeatureNoise

    @property
    def network(self) -> Network:
        return self.noise.network

    def __call__(self, state: Float[Array, "D"]) -> Any:
        mean, std = self.noise(state)
        return mean, jnp.log(std)


class Unscaled(eqx.Module):
    """low + (high − low)(tanh(network) + 1)/2."""

    network: Network
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def __call__(self, state: Float[Array, "D"]) -> Any:
        return self.low + 0.5 * (jnp.tanh(self.network(state)) + 1) * (self.high - self.low)
