"""Small policies: linear feedback with noise, and actions that ignore the state."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.envs.directions import DIAGONALS, DIRECTIONS
from ggpi.policies.gaussian import check_bounds
from ggpi.types import ArrayLike, Key


class LinearPolicy(eqx.Module):
    """a = clip(K x + k + noise · ε) with ε ∼ N(0, I)."""

    gain: Float[Array, "..."]
    bias: Float[Array, "..."]
    noise: Float[Array, "..."]
    name: str = "linear"
    low: float = eqx.field(static=True, default=-1.0)
    high: float = eqx.field(static=True, default=1.0)

    def check_parts(self, lead: Lead) -> None:
        """K [A, D], k [A] and noise [A]."""
        size, state_size = self.gain.shape
        check_shape("bias", self.bias, (size,))
        check_shape("noise", self.noise, (size,))
        check_bounds(self.low, self.high)
        check_policy(self, state_size, ((size,), "f"))

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """The executed action, for one state or for states with any leading axes."""
        mean = self._mean(state)
        return jnp.clip(mean + self.noise * jax.random.normal(key, mean.shape), self.low, self.high)

    def mode(self, state: ArrayLike) -> Array:
        """The mean, clipped."""
        return jnp.clip(self._mean(state), self.low, self.high)

    def _mean(self, state: ArrayLike) -> Array:
        return jnp.asarray(state, jnp.float32) @ self.gain.T + self.bias


class MixedPolicy(eqx.Module):
    """Discrete actions with the same probabilities in every state."""

    probabilities: Float[Array, "..."]
    name: str = "mixed"

    def check_parts(self, lead: Lead) -> None:
        """The probabilities are a distribution."""
        chances = np.asarray(self.probabilities)
        if chances.ndim != 1 or (chances < 0).any() or abs(chances.sum() - 1) > 1e-3:
            raise ValueError("probabilities are not a distribution over actions")

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """An action for one state vector, or for states with any leading axes."""
        return jax.random.categorical(key, jnp.log(self.probabilities), shape=jnp.asarray(state).shape[:-1])

    def mode(self, state: ArrayLike) -> Array:
        """The most probable action."""
        return jnp.broadcast_to(jnp.argmax(self.probabilities), jnp.asarray(state).shape[:-1])


def linear_policy(
    gain: ArrayLike,
    bias: ArrayLike,
    noise: ArrayLike,
    name: str = "linear",
    low: float = -1.0,
    high: float = 1.0,
) -> LinearPolicy:
    """The policy of a gain K [A, D], a bias k [A] and a standard deviation, one or [A]; bounds may be infinite."""
    gain = np.atleast_2d(np.asarray(gain, np.float32))
    size = len(gain)
    k, scale = (jnp.asarray(np.broadcast_to(np.asarray(each, np.float32), (size,))) for each in (bias, noise))
    return LinearPolicy(jnp.asarray(gain), k, scale, name, low, high)


def direction_policies(noise: float = 0.3) -> list[LinearPolicy]:
    """Four policies for the point mass: push towards +x, +y, −x, −y."""
    return [linear_policy(np.zeros((2, 4)), push, noise, name) for name, push in DIRECTIONS.items()]


def maze_policies(
    speed: float = 2.0,
    gain: float = 0.3,
    noise: float = 0.2,
    directions: Mapping[str, tuple[float, float]] = DIRECTIONS,
) -> list[LinearPolicy]:
    """Policies for a `PointMaze`: a = gain · (v* − v) + noise · ε, with v* of this speed, one for each direction.

    Each moves straight until a wall stops it. Speed is in cells per second.
    """
    brake = np.concatenate([np.zeros((2, 2)), -gain * np.eye(2)], axis=1)
    return [
        linear_policy(brake, gain * speed * np.array(side), noise, name) for name, side in directions.items()
    ]


def ogbench_policies(noise: float = 0.2) -> list[LinearPolicy]:
    """Eight policies for an `OGBenchMaze`, whose ball moves by the action: right, up, left, down, and in between."""
    ways = DIRECTIONS | DIAGONALS
    return [linear_policy(np.zeros((2, 2)), way, noise, name) for name, way in ways.items()]


def pendulum_policies(noise: float = 0.5) -> list[LinearPolicy]:
    """Four policies for Gymnasium's Pendulum with observations (cos θ, sin θ, θ̇): pump, brake, hold, turn.

    Pump pushes along the motion and so swings up; brake pushes against it; hold balances at the top; turn always pushes
    in one direction.
    """
    gains = {"pump": (0, 0, 2), "brake": (0, 0, -1), "hold": (0, -8, -2), "turn": (0, 0, 0)}
    biases = {"turn": 1.5}
    return [
        linear_policy([gain], biases.get(name, 0.0), noise, name, -2.0, 2.0) for name, gain in gains.items()
    ]
