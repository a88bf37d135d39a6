"""What the learning algorithms share: how the ants act while they practise, and the optimiser."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.scipy.stats import norm
from jaxtyping import PyTree

from ggpi._jax.jit import jit
from ggpi.envs.ant.symmetry import back, canonical
from ggpi.policies.gaussian import GaussianPolicy
from ggpi.types import Key


@jit
def act(
    policy: GaussianPolicy, state: Array, direction: Array, *, key: Key
) -> tuple[Array, Array, Array, Array]:
    """Canonical states, actions in them, the actions as executed in the world, and their log-densities."""
    turned, legs = jax.vmap(canonical)(state, direction)
    mean, std = jax.vmap(policy.distribution)(turned)
    action = mean + std * jax.random.normal(key, mean.shape)
    executed = jax.vmap(back)(jnp.clip(action, policy.low, policy.high), legs)
    return turned, action, executed, norm.logpdf(action, mean, std).sum(axis=-1)


def clipped(gradient: PyTree, longest: float) -> PyTree:
    """The gradient, made no longer than `longest`."""
    return optax.clip_by_global_norm(longest).update(gradient, optax.EmptyState())[0]
