"""Policies for policy iteration in a maze: a network says which of the four directions to take."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.networks import MLP, mlp
from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.envs.directions import HEADINGS
from ggpi.lab.iteration.policies import taught
from ggpi.policies.linear import LinearPolicy, maze_policies
from ggpi.types import ArrayLike, Key, Policy


class SteeredPolicy(eqx.Module):
    """Acts as the direction policy that a network chooses for the state."""

    network: MLP
    """Scores of the directions."""
    gain: Float[Array, "..."]
    bias: Float[Array, "..."]
    """Of each direction."""
    noise: Float[Array, "..."]
    name: str = "π"

    def check_parts(self, lead: Lead) -> None:
        """K [A, D] and noise [A] of all directions, k [directions, A]."""
        size, state_size = self.gain.shape
        check_shape("bias", self.bias, (len(self.bias), size))
        check_policy(self, state_size, ((size,), "f"))

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """The executed action, for one state or for states with any leading axes."""
        mean = self._mean(state)
        return jnp.clip(mean + self.noise * jax.random.normal(key, mean.shape), -1.0, 1.0)

    def mode(self, state: ArrayLike) -> Array:
        """The mean, clipped."""
        return jnp.clip(self._mean(state), -1.0, 1.0)

    def _mean(self, state: ArrayLike) -> Array:
        state = jnp.asarray(state, jnp.float32)
        return state @ self.gain.T + self.bias[self.network(state).argmax(axis=-1)]


def steered(network: MLP, speed: float) -> SteeredPolicy:
    """A policy of the directions of `maze_policies`."""
    ways: list[LinearPolicy] = maze_policies(speed)
    return SteeredPolicy(network, ways[0].gain, jnp.stack([way.bias for way in ways]), ways[0].noise)


def fitted(states: np.ndarray, best: np.ndarray, steps: int, speed: float, *, key: Key) -> SteeredPolicy:
    """The policy that is taught the best directions [B] in states [B, 4]."""
    network = mlp((4, 64, 64, len(HEADINGS)), key=key)
    x, labels = jnp.asarray(states, jnp.float32), jnp.asarray(best, jnp.int32)
    return steered(taught(network, x, labels, steps), speed)


def directions(policies: Sequence[Policy], chosen: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The direction [B] that each chosen policy takes in its state; the first policies are the directions."""
    taken = [
        np.asarray(policy.network(jnp.asarray(states, jnp.float32)).argmax(axis=-1))
        if isinstance(policy, SteeredPolicy)
        else np.full(len(states), k)
        for k, policy in enumerate(policies)
    ]
    return np.stack(taken)[chosen, np.arange(len(states))]
