"""Networks trained with PyTorch: linear layers with an activation between them, on normalised states.

    h₀ = clip((x − mean) / deviation, ±limit),  hᵢ₊₁ = activation(Wᵢ hᵢ + bᵢ),  no activation after the last

Activations have PyTorch's default constants. The mean is stored as a sum of two single-precision numbers, so that
states far from zero are normalised as accurately as in double precision.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.shapes import Lead, check_positive, check_result, check_shape, floats
from ggpi.storage.reading import abbreviate
from ggpi.types import ArrayLike

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "ELU": jax.nn.elu,
    "GELU": lambda x: jax.nn.gelu(x, approximate=False),
    "Identity": lambda x: x,
    "LeakyReLU": lambda x: jax.nn.leaky_relu(x, 0.01),
    "Mish": jax.nn.mish,
    "ReLU": jax.nn.relu,
    "SELU": jax.nn.selu,
    "SiLU": jax.nn.silu,
    "Sigmoid": jax.nn.sigmoid,
    "Softplus": jax.nn.softplus,
    "Tanh": jnp.tanh,
}
"""Activations between layers, by PyTorch's name. PReLU is supported too; its slopes are learned."""
BOUNDED = {"Sigmoid", "Tanh"}
"""Activations that stay within ±1."""
ROWS = 256
"""Rows of a weight matrix that are converted to double precision at once."""
LARGEST = 1e30
SMALLEST = 1e-30
"""Between these magnitudes single precision divides and adds without overflow."""


class Normaliser(eqx.Module):
    """Running mean and variance of observations, as VecNormalize applies them."""

    mean: Float[Array, "..."]
    rest: Float[Array, "..."]
    """The rounding error of the mean."""
    deviation: Float[Array, "..."]
    limit: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """Statistics for each input, with positive deviations."""
        for name in ("rest", "deviation"):
            check_shape(name, getattr(self, name), self.mean.shape)
        check_shape("limit", self.limit, ())
        check_positive("deviation", self.deviation)
        check_positive("limit", self.limit)

    def __call__(self, state: Float[Array, "D"]) -> Float[Array, "D"]:
        if state.shape != self.mean.shape:
            raise ValueError(f"this policy takes observations of shape {self.mean.shape}, got {state.shape}")
        scaled = ((state - self.mean) - self.rest) / self.deviation
        return jnp.clip(scaled, -self.limit, self.limit)


def normaliser(mean: ArrayLike, var: ArrayLike, epsilon: float = 1e-8, limit: float = 10.0) -> Normaliser:
    """(x − mean) / √(var + ε), clipped to ±limit."""
    mean, var = np.asarray(mean, np.float64), np.asarray(var, np.float64)
    for field, values, is_right, rule in (
        ("mean", mean, np.abs(mean) < LARGEST, ""),
        ("var", var, (var >= 0) & (var < LARGEST), " and not negative"),
        ("epsilon", epsilon, 0 <= epsilon < LARGEST, " and not negative"),
        ("clip_obs", limit, limit > 0, " and positive, or infinite"),
    ):
        if not np.all(is_right):
            raise ValueError(f"{field} must be finite{rule}: {abbreviate(values)}")
    if np.any(var + epsilon < SMALLEST):
        raise ValueError(f"var + epsilon must be at least {SMALLEST}, to divide by its root")
    rounded = mean.astype(np.float32)
    parts = rounded, mean - rounded, np.sqrt(var + epsilon), limit
    return Normaliser(*(jnp.asarray(part, jnp.float32) for part in parts))


class Network(eqx.Module):
    """Layers Wᵢ, bᵢ with an activation between them, on normalised states."""

    normalise: Normaliser
    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]
    slopes: tuple[Float[Array, "..."], ...]
    """Learned slopes of PReLU after each layer except the last; empty for other activations."""
    activation: str = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """The sizes of the layers match, and the activation is supported."""
        if self.activation not in (*ACTIVATIONS, "PReLU"):
            raise ValueError(f"activation {self.activation!r:.40} is not supported")
        check_result(self.__call__, (floats(*self.normalise.mean.shape),), (self.biases[-1].shape, "f"))

    def __call__(self, state: Float[Array, "D"]) -> Float[Array, "n"]:
        """The outputs in one state."""
        return self.outputs(self.features(state))

    def features(self, state: Float[Array, "D"]) -> Float[Array, "F"]:
        """The inputs of the last layer."""
        x = self.normalise(state)
        for layer, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            x = self._activate(layer, weight @ x + bias)
        return x

    def outputs(self, features: Float[Array, "F"]) -> Float[Array, "n"]:
        """The outputs of the last layer."""
        return self.weights[-1] @ features + self.biases[-1]

    def _activate(self, layer: int, x: Array) -> Array:
        if self.activation == "PReLU":
            return jnp.where(x >= 0, x, self.slopes[layer] * x)
        return ACTIVATIONS[self.activation](x)


def largest_output(network: Network, state: float) -> float:
    """A bound of the magnitude of outputs and hidden units, for states within ±`state`.

    Every activation f has |f(x)| ≤ 2|x| + 2; PReLU has its slopes instead of 2.
    """
    normalise = network.normalise
    mean, deviation = (np.asarray(part, np.float64) for part in (normalise.mean, normalise.deviation))
    x = np.minimum((state + np.abs(mean)) / deviation, float(normalise.limit))
    largest = float(x.max())
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        if layer and network.activation in BOUNDED:
            x = np.minimum(2 * x + 2, 1)
        elif layer:
            slope = np.abs(np.asarray(network.slopes[layer - 1], np.float64)) if network.slopes else 0
            x = np.maximum(2, slope) * x + 2
        rows = np.split(np.asarray(weight), range(ROWS, len(weight), ROWS))
        x = np.concatenate([np.abs(part, dtype=np.float64) @ x for part in rows])
        x += np.abs(np.asarray(bias, np.float64))
        largest = max(largest, float(x.max()))
    return largest


class Greedy(eqx.Module):
    """The index of the largest output."""

    network: Network

    def __call__(self, state: Float[Array, "D"]) -> Array:
        return jnp.argmax(self.network(state))


class FixedDeviation(eqx.Module):
    """The mean of a network, and a standard deviation that does not depend on the state."""

    network: Network
    log_std: Float[Array, "..."]

    def __call__(self, state: Float[Array, "D"]) -> tuple[Array, Array]:
        return self.network(state), jnp.exp(self.log_std)


class MeanAndLogDeviation(eqx.Module):
    """The two halves of a network's output; the log standard deviation is clipped to [−20, 2]."""

    network: Network

    def __call__(self, state: Float[Array, "D"]) -> tuple[Array, Array]:
        mean, log_std = jnp.split(self.network(state), 2)
        return mean, jnp.clip(log_std, -20.0, 2.0)


class FeatureNoise(eqx.Module):
    """The mean of a network, clipped to ±limit, and the standard deviation of noise that is linear in the features φ.

    sⱼ² = Σᵢ φᵢ² σᵢⱼ² + 10⁻⁶
    """

    network: Network
    std: Float[Array, "..."]
    """σ, a row for each feature, which is an input of the last layer."""
    limit: Float[Array, "..."]

    def check_parts(self, lead: Lead) -> None:
        """A standard deviation for each input and output of the last layer."""
        check_shape("std", self.std, self.network.weights[-1].shape[::-1])
        check_shape("limit", self.limit, ())
        check_positive("limit", self.limit)

    def __call__(self, state: Float[Array, "D"]) -> tuple[Array, Array]:
        features = self.network.features(state)
        mean = jnp.clip(self.network.outputs(features), -self.limit, self.limit)
        return mean, jnp.sqrt(features**2 @ self.std**2 + 1e-6)


class FeatureLogNoise(eqx.Module):
    """The same with the log standard deviation."""

    noise: FeatureNoise

    @property
    def network(self) -> Network:
        return self.noise.network

    def __call__(self, state: Float[Array, "D"]) -> tuple[Array, Array]:
        mean, std = self.noise(state)
        return mean, jnp.log(std)


class Unscaled(eqx.Module):
    """low + (high − low)(tanh(network) + 1)/2."""

    network: Network
    low: Float[Array, "..."]
    high: Float[Array, "..."]

    def __call__(self, state: Float[Array, "D"]) -> Array:
        return self.low + 0.5 * (jnp.tanh(self.network(state)) + 1) * (self.high - self.low)
