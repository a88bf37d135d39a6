"""Horizons of one policy agree: m_γ through a shorter m_β, in finite MDPs, and as weights of a loss."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggpi.ghm import ExactGHM, compose
from ggpi.learning.horizons import consistency_weights
from worlds import worlds

SHARES = st.floats(0.0, 1.0)


@given(worlds(), SHARES)
def test_a_long_horizon_is_made_of_a_step_a_short_one_and_itself(world, share):
    """m_γ = (1−γ) P + γ(1−γ)/(1−β) P^π m_β + γ(γ−β)/(1−β) P^π m_β^π m_γ, for any β ≤ γ."""
    pi, gamma = world.pis[0], world.gamma
    beta = share * gamma
    long, short = (ExactGHM(world.mdp, pi, horizon).dense() for horizon in (gamma, beta))
    step, after = world.P, compose(short, world.P, pi)
    parts = step, after, compose(long, after, pi)
    weights = [float(w) for w in consistency_weights(jnp.float32(gamma), jnp.float32(beta), jnp.array(False))]
    np.testing.assert_allclose(sum(weights), 1.0, atol=1e-5)
    exact = 1 - gamma, gamma * (1 - gamma) / (1 - beta), gamma * (gamma - beta) / (1 - beta)
    np.testing.assert_allclose(weights, exact, atol=1e-5)
    np.testing.assert_allclose(sum(w * part for w, part in zip(exact, parts, strict=True)), long, atol=1e-10)


@given(st.floats(0.0, 0.999), SHARES)
def test_all_mass_stays_where_an_episode_ends(gamma, share):
    weights = consistency_weights(jnp.float32(gamma), jnp.float32(share * gamma), jnp.array(True))
    assert [float(weight) for weight in weights] == [1.0, 0.0, 0.0]
