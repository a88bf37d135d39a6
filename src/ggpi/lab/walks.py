"""A baseline: model-predictive control on a one-step model.

Walks of the base policies, each of which switches once after a geometric time, are unrolled in the model. The walk with
the largest Σ γᵗ ρ(x_{t+1}) gives its first action; ties are broken at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ggpi._jax.jit import fast_jit
from ggpi.ghm.abstract import AbstractGHM
from ggpi.lab.agents import Decide
from ggpi.policies.bank import PolicyBank
from ggpi.types import Key, Policy


@dataclass(frozen=True)
class Walks:
    """Which walks are compared."""

    count: int
    """For each decision."""
    length: int
    """Steps of each."""
    alpha: float
    """The probability of the switch, after each step."""
    gamma: float
    radius: float
    """A state within this distance of the target counts 1."""


def over_walks(model: AbstractGHM, policies: Sequence[Policy], walks: Walks) -> Decide:
    """Decisions from a one-step model."""
    bank = PolicyBank(policies)

    def decide(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        return np.asarray(
            _best_first_action(model, bank, jnp.asarray(states, jnp.float32), jnp.asarray(goals), walks, key)
        )

    return decide


@fast_jit
def _best_first_action(
    model: AbstractGHM, bank: PolicyBank, states: Array, goals: Array, walks: Walks, key: Key
) -> Array:
    """The first action of the best walk from each state [B, D]."""
    turn_key, walk_key = jax.random.split(key)
    shape = (len(states), walks.count)
    first, second = jax.random.randint(turn_key, (2, *shape), 0, len(bank))
    until = jax.random.geometric(jax.random.fold_in(turn_key, 1), walks.alpha, shape)

    def step(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array]:
        x, total = carry
        act_key, move_key = jax.random.split(jax.random.fold_in(walk_key, t))
        a = bank.sample(jnp.where(t < until, first, second), x, key=act_key)
        noise = jax.random.normal(move_key, (*shape, model.noise_size))
        x = jax.vmap(jax.vmap(model.push))(x, a, noise)
        near = jnp.sum((x[..., :2] - goals[:, None]) ** 2, axis=-1) <= walks.radius**2
        return (x, total + walks.gamma**t * near), a

    start = jnp.broadcast_to(states[:, None], (*shape, states.shape[1])), jnp.zeros(shape)
    (_, total), actions = jax.lax.scan(step, start, jnp.arange(walks.length))
    lots = jax.random.uniform(jax.random.fold_in(turn_key, 2), shape)
    best = jnp.where(total == total.max(axis=1, keepdims=True), lots, -1.0).argmax(axis=1)
    return actions[0][jnp.arange(len(states)), best]
