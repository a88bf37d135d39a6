"""A baseline: model-predictive control on a one-step model, with as much time as depth-2 GGPI takes.

The one-step model is the same VAE at β = 0: it learns x′ from (x, a), for any behaviour policy. Walks of the base
policies, each switching once after a geometric time, are unrolled in the model; the walk with the largest
Σ γᵗ ρ(x_{t+1}) gives its first action. The number of walks is chosen so that a decision takes as long as one of GGPI.
"""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ggpi._jax.jit import fast_jit
from ggpi.ghm.base import AbstractGHM
from ggpi.lab.agents import Decide
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import FitConfig, learn
from ggpi.lab.cache import kept
from ggpi.learning.losses import CETD
from ggpi.policies.bank import PolicyBank
from ggpi.storage.pretrained import pretrained
from ggpi.types import Key

LENGTH = 40
"""Steps of a walk: γ⁴⁰ = .015."""
WALKS = 32
"""Walks for each decision: as long as a depth-2 plan of 16 × 100 samples takes, see `benchmarks/planning.py`."""


@functools.cache
def one_step_model(config: FitConfig) -> AbstractGHM:
    """The model of x′ given (x, a), trained as long as the GHMs are."""
    one_step = replace(config, recipe=replace(config.recipe, loss=CETD(n_step=1)))
    policy = pretrained("ant-policies")[:1]
    ghms = learn(one_step, policy, 0.0, (), kept(config, "ant-ghms") / "one-step")
    return ghms.segment(0, None)


def mpc(config: FitConfig, radius: float, num_walks: int = WALKS) -> Decide:
    """Model-predictive control over walks of the base policies."""
    return over_walks(one_step_model(config), radius, num_walks)


def over_walks(model: AbstractGHM, radius: float, num_walks: int) -> Decide:
    """Decisions from a one-step model."""
    bank = PolicyBank(pretrained("ant-policies"))

    def decide(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        return np.asarray(
            _best_first_action(model, bank, jnp.asarray(states), jnp.asarray(goals), radius, num_walks, key)
        )

    return decide


@fast_jit
def _best_first_action(
    model: AbstractGHM, bank: PolicyBank, states: Array, goals: Array, radius: float, num_walks: int, key: Key
) -> Array:
    """The first action of the best of `num_walks` walks from each state [B, 8]."""
    turn_key, walk_key = jax.random.split(key)
    shape = (len(states), num_walks)
    first, second = jax.random.randint(turn_key, (2, *shape), 0, len(bank))
    until = jax.random.geometric(jax.random.fold_in(turn_key, 1), ant.ALPHA, shape)

    def step(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array]:
        x, total = carry
        act_key, move_key = jax.random.split(jax.random.fold_in(walk_key, t))
        a = bank.sample(jnp.where(t < until, first, second), x, key=act_key)
        noise = jax.random.normal(move_key, (*shape, model.noise_size))
        x = jax.vmap(jax.vmap(model.push))(x, a, noise)
        near = jnp.sum((x[..., :2] - goals[:, None]) ** 2, axis=-1) <= radius**2
        return (x, total + ant.GAMMA**t * near), a

    start = jnp.broadcast_to(states[:, None], (*shape, states.shape[1])), jnp.zeros(shape)
    (_, total), actions = jax.lax.scan(step, start, jnp.arange(LENGTH))
    lots = jax.random.uniform(jax.random.fold_in(turn_key, 2), shape)
    best = jnp.where(total == total.max(axis=1, keepdims=True), lots, -1.0).argmax(axis=1)
    return actions[0][jnp.arange(len(states)), best]
