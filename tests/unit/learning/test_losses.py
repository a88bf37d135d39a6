"""Losses on data that are hard for them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from ggpi.data import Transitions
from ggpi.ghm.base import AbstractDensityGHM
from ggpi.learning.losses import LL2TD, Problem
from ggpi.policies.bank import PolicyBank

KEY = jax.random.key(0)


class Near(AbstractDensityGHM):
    """N(x, 1), whatever the action."""

    frame: Any
    centre: jax.Array

    @property
    def noise_size(self):
        return 2

    def push(self, state, action, noise):
        return state + self.centre + noise

    def log_prob(self, target, state, action):
        return norm.logpdf(target, state + self.centre).sum()


class Still(eqx.Module):
    def sample(self, state, *, key):
        return jnp.zeros(1)


def test_ll2td_of_a_number_that_never_changes_is_finite():
    rng = np.random.default_rng(0)
    state = np.stack([rng.normal(size=50), np.full(50, 0.1)], axis=1).astype(np.float32)
    moved = state + np.array([1, 0], np.float32) * rng.normal(size=(50, 1)).astype(np.float32)
    none, rows = np.zeros(50, bool), np.arange(50)
    data = Transitions(state, np.zeros((50, 1), np.float32), moved, none, none, 0 * rows, rows, 0 * rows)
    models, bank = Near(None, jnp.zeros((1, 2))), PolicyBank([Still()])
    loss = LL2TD()
    problem = Problem(loss.dataset(data, 1, [0.9]), bank, jnp.array([0.9]))
    batch = eqx.filter_jit(loss.batch)
    losses, _ = batch(models, models, problem, 16, key=KEY)
    assert np.isfinite(losses).all()
