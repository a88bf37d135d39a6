"""One network for all policies and horizons: its models are ordinary ones, and stay within what was trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.data import StateSpec
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import conditioned, horizon_features, over_paths
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig

KEY = jax.random.key(0)
STATE, ACTION = jnp.array([0.3, -1.0]), jnp.array([0.5])


def fresh_model(config):
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    return config.build(fit_frame(states, actions, states + 1, StateSpec(("x", "y")), None), key=KEY)


def network(num_policies=3, num_models=6):
    """A network whose field is not 0 everywhere, as that of fresh weights."""
    model = fresh_model(ggpi.FlowMatchingConfig(width=16, depth=2))
    model = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(KEY, leaf.shape), model)
    return conditioned(model, jnp.eye(num_policies), 0.95, num_models, key=KEY)


def test_models_of_a_horizon_are_those_of_their_conditions():
    shared, noise = network(), jax.random.normal(KEY, (2,))
    stacked = shared.models(0.7)
    conditions = shared.condition_of(jnp.arange(3), jnp.full(3, 0.7))
    expected = over_paths(lambda model: model.push(STATE, ACTION, noise), shared.among(conditions))
    found = jax.vmap(lambda model: model.push(STATE, ACTION, noise))(stacked)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(np.unique(np.asarray(found)[:, 0])) == 3


def test_horizons_policies_and_ignorance_are_told_apart():
    shared, noise = network(), jax.random.normal(KEY, (2,))

    def sample(policy, beta, known=1.0):
        condition = shared.condition_of(jnp.asarray(policy), jnp.asarray(beta), known)
        return np.asarray(shared.at(condition).push(STATE, ACTION, noise))

    for other in (sample(1, 0.5), sample(0, 0.9), sample(0, 0.5, 0.0)):
        assert np.abs(sample(0, 0.5) - other).max() > 1e-3
    np.testing.assert_array_equal(sample(0, 0.5, 0.0), sample(1, 0.5, 0.0))


def test_horizon_features_are_spread_over_the_range():
    features = np.asarray(horizon_features(jnp.array([0.0, 0.99]), 0.99))
    np.testing.assert_allclose(features[:, 0], [-1, 1], atol=1e-6)
    assert np.isfinite(features).all()
    assert np.abs(features).max() <= 1 + 1e-6


def test_no_gradient_reaches_conditions():
    shared = network()
    shared = shared.among(shared.condition_of(jnp.arange(3), jnp.full(3, 0.7)))

    def total(shared):
        return over_paths(lambda model: model.push(STATE, ACTION, jnp.ones(2)).sum(), shared).sum()

    gradient = jax.grad(total)(shared)
    assert not np.asarray(gradient.condition).any()
    assert np.asarray(gradient.shifts.weights[0]).any()


def ghms():
    shared = network()
    return GHMs(("a", "b", "c"), 0.95, (), (shared.models(0.95),), network=shared)


def test_other_alphas_and_discounts():
    found = ghms().with_alpha([0.1, 0.5]).with_gamma(0.9)
    assert found.horizons == pytest.approx((0.9, 0.81, 0.45))
    assert found.supporting(ggpi.compositions(3, 2, 0.1)) is found
    assert found.supporting(ggpi.compositions(3, 2, 0.2)).alphas == (0.1, 0.5, 0.2)


def test_horizons_outside_the_trained_range():
    with pytest.raises(ValueError, match=r"trained for horizons from 0 to 0\.95, got 0\.99"):
        ghms().with_gamma(0.99)
    with pytest.raises(ValueError, match="α"):
        ghms().with_alpha(1.5)


def test_models_that_were_trained_apart_have_their_own_horizons_only():
    apart = GHMs(("a", "b", "c"), 0.95, (), (network().models(0.95),))
    with pytest.raises(ValueError, match='alpha="any"'):
        apart.with_alpha(0.1)


def test_only_models_that_follow_a_path_share_a_network():
    with pytest.raises(TypeError, match="VAE does not have"):
        over_paths(lambda model: model, fresh_model(VAEConfig(width=8)))
