"""Horizons of one policy agree: m_γ through a shorter m_β, in finite MDPs, as weights of a loss, and once trained.

The models of one network on a ring are compared with the closed form of their fields, see `ring_walk.py`, and
with each other, at horizons that are drawn with probability 0.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggpi
from ggpi.data import StateSpec
from ggpi.diagnosis.health import horizon_consistency
from ggpi.diagnosis.truth import Truth
from ggpi.ghm import ExactGHM, compose
from ggpi.ghm.conditioned import over_paths
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.horizons import consistency_weights
from ggpi.learning.preparation import Inputs, new_training
from ggpi.learning.recipe import any_horizon
from ring_walk import FLOW, POINTS, SIZE, Walk, field_error, walk_mu, walks
from worlds import worlds

SHARES = st.floats(0.0, 1.0)
BETA = 3
"""Where β stands in a condition: after the code of the only policy, 1, and u."""


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


@pytest.mark.slow
def test_the_long_model_continues_where_the_short_one_ends(monkeypatch):
    """m_β starts in x′ and m_γ where m_β has led, with the conditions of their own horizons."""
    calls = []

    def recorded(function, models, state, start, *rest):
        calls.append((models.condition, start, over_paths(function, models, state, start, *rest)))
        return calls[-1][2]

    monkeypatch.setattr("ggpi.learning.horizons.over_paths", recorded)
    recipe = any_horizon(ggpi.Recipe(FLOW, TD2CFM(n_step=1)), 0.8, 0.5)
    data = walks()
    spec = StateSpec(tuple(f"x{i}" for i in range(data.state.shape[1])))
    inputs = Inputs([Walk()], data, recipe.loss.horizons, recipe, spec, jax.random.key(0))
    training, state = new_training(inputs)
    recipe.loss.batch(state.models, state.models, training.problem, 32, key=jax.random.key(1))
    (short, first, (_, reached)), (long, second, _) = calls
    assert (short[:, BETA] < long[:, BETA]).all()
    np.testing.assert_array_equal(second, reached)
    assert np.isin(np.asarray(first), np.asarray(training.problem.data.next_state)).all()


@cache
def trained(consistency):
    """One network of the walk at all horizons up to .8, from single steps."""
    return ggpi.fit(
        [Walk()],
        walks(),
        gamma=0.8,
        alpha="any",
        model=FLOW,
        loss=TD2CFM(n_step=1),
        consistency=consistency,
        steps=1000,
        batch_size=128,
        learning_rate=5e-3,
        key=jax.random.key(0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("consistency", [0.0, 0.25, 0.5])
def test_fields_of_all_horizons_are_the_closed_form(consistency):
    """Errors were .053 at β = 0, whose futures are points, and up to .02 at others."""
    for beta in (0.0, 0.3, 0.6, 0.8):
        model = trained(consistency).with_gamma(beta).segment(0, None)
        error = field_error(model, np.maximum(walk_mu(beta), 1e-12))
        print(f"consistency {consistency}, β = {beta}: {error:.4f}")
        assert error < (0.2 if beta == 0 else 0.08)


@pytest.mark.slow
@pytest.mark.parametrize("consistency", [0.0, 0.25])
def test_trained_horizons_agree_with_each_other(consistency):
    """μ_γ = (1−γ)/(1−β) μ_β + (γ−β)/(1−β) μ_γ ⊗ μ_β by samples, for γ and β that no step was taken at."""
    state, action = np.repeat(POINTS, 2, axis=0), np.tile([[0.0], [1.0]], (SIZE, 1)).astype(np.float32)
    future = np.broadcast_to(POINTS, (2 * SIZE, SIZE, 2)).repeat(100, axis=1)
    truth = Truth(state, action, future)
    for gamma, beta in ((0.75, 0.45), (0.5, 0.2)):
        near, far = (trained(consistency).with_gamma(horizon).segment(0, None) for horizon in (beta, gamma))
        found = horizon_consistency(near, far, Walk(), beta, gamma, truth, key=jax.random.key(1))
        print(f"consistency {consistency}, γ = {gamma}, β = {beta}: {found}")
        assert found["consistency"] < 0.03
