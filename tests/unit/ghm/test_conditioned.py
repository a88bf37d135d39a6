"""One network for all policies and horizons: its models are ordinary ones, and stay within what was trained."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.data import StateSpec
from ggpi.ghm.base import GHMs, joined_ghms
from ggpi.ghm.conditioned import conditioned, horizon_features, over_paths
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.policies.family import policy_family
from ggpi.policies.linear import linear_policy

KEY = jax.random.key(0)
ABC = tuple(linear_policy([[gain, 0.0]], [0.0], 0.3, name) for gain, name in ((1, "a"), (2, "b"), (3, "c")))
STATE, ACTION = jnp.array([0.3, -1.0]), jnp.array([0.5])


def fresh_model(config):
    rng = np.random.default_rng(0)
    states, actions, moves = rng.normal(size=(50, 2)), rng.normal(size=(50, 1)), rng.normal(1, 1, (50, 2))
    return config.build(fit_frame(states, actions, states + moves, StateSpec(("x", "y")), None), key=KEY)


def network(codes=None, num_models=6):
    """A network whose field is not 0 everywhere, as that of fresh weights."""
    model = fresh_model(ggpi.FlowMatchingConfig(width=16, depth=2))
    noisy = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(KEY, leaf.shape), model.network)
    model = eqx.tree_at(lambda model: model.network, model, noisy)
    codes = jnp.eye(3) if codes is None else jnp.asarray(codes)
    return conditioned(model, codes, 0.95, num_models, key=KEY)


@pytest.mark.slow
def test_models_of_a_horizon_are_those_of_their_conditions():
    shared, noise = network(), jax.random.normal(KEY, (2,))
    stacked = shared.at_horizon(0.7).stacked()
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


@pytest.mark.slow
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
    return GHMs(ABC, 0.95, (), (shared.at_horizon(0.95),))


def test_other_alphas_and_discounts():
    found = ghms().with_alpha([0.1, 0.5]).with_gamma(0.9)
    assert found.horizons == pytest.approx((0.9, 0.81, 0.45))
    assert found.supporting({0.1, 0.5}) is found
    assert found.supporting({0.2, 0.1}).alphas == (0.1, 0.5, 0.2)


def test_segments_are_those_of_stacked_models():
    """One policy at a time, or all at once as planners have them."""
    found, noise = ghms().with_alpha(0.5), jax.random.normal(KEY, (2,))
    for alpha, stacked in zip((None, 0.5), found.sampler().models, strict=True):
        for k in range(3):
            one = found.segment(k, alpha).push(STATE, ACTION, noise)
            other = jax.tree.map(lambda leaf: leaf[k], stacked).push(STATE, ACTION, noise)  # noqa: B023
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_the_model_of_any_policy_is_none_of_the_policies():
    found, noise = ghms().with_alpha(0.5), jax.random.normal(KEY, (2,))
    samples = [found.segment(k, 0.5).push(STATE, ACTION, noise) for k in range(3)]
    samples.append(found.of_any_policy(0.5).push(STATE, ACTION, noise))
    assert len(np.unique(np.asarray(samples)[:, 0])) == 4


def test_horizons_outside_the_trained_range():
    with pytest.raises(ValueError, match=r"trained for horizons from 0 to 0\.95, got 0\.99"):
        ghms().with_gamma(0.99)
    with pytest.raises(ValueError, match=r"fit with gamma=0\.99"):
        network().of_any_policy(0.99)
    with pytest.raises(ValueError, match="α"):
        ghms().with_alpha(1.5)


def test_models_that_were_trained_apart_have_their_own_horizons_only():
    apart = GHMs(ABC, 0.95, (), (network().at_horizon(0.95).stacked(),))
    assert apart.network is None and apart.supporting({0.1}) is apart
    for call, given in (
        (apart.with_alpha, 0.5),
        (apart.with_gamma, 0.5),
        (apart.with_policies, ABC),
        (apart.of_any_policy, None),
    ):
        with pytest.raises(ValueError, match=r'trained apart, at the horizons \[0.95\] only.*alpha="any"'):
            call(given)


def test_joined_models_are_stacks():
    """Networks of their own cannot be joined into one."""
    joined = joined_ghms([ghms(), ghms()])
    assert joined.network is None and len(joined.policies) == 6
    noise = jnp.ones(2)
    for k in range(6):
        np.testing.assert_allclose(
            joined.segment(k, None).push(STATE, ACTION, noise),
            ghms().segment(k % 3, None).push(STATE, ACTION, noise),
            atol=1e-6,
        )


def test_policies_that_the_network_was_not_trained_for():
    with pytest.raises(ValueError, match="models of 3 policies with codes of size 3, got 2 policies"):
        GHMs(ABC[:2], 0.95, (), (network().at_horizon(0.95),))
    with pytest.raises(ValueError, match="tells its 3 policies apart by their numbers"):
        ghms().with_policies(ABC[:2])


CODES = np.array([[0.5, 1.0], [-0.5, 1.0], [0.1, 0.2]], np.float32)


def scaled(state, z):
    return z[:1] * state[:1]


def family(codes):
    return policy_family(scaled, codes, ([-1.0], [1.0]))


def family_ghms():
    models = tuple(map(network(CODES).at_horizon, (0.95, 0.475)))
    return GHMs(family(CODES), 0.95, (0.5,), models)


def test_other_members_of_a_family():
    found, order = family_ghms(), [2, 0]
    others = found.with_policies(family(CODES[order]))
    assert others.names == ["z = 0.1, 0.2", "z = 0.5, 1"] and others.alphas == (0.5,)
    for alpha in (None, 0.5):
        for i, k in enumerate(order):
            one, other = (
                model.push(STATE, ACTION, jnp.ones(2))
                for model in (others.segment(i, alpha), found.segment(k, alpha))
            )
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_policies_outside_the_family():
    with pytest.raises(ValueError, match="codes of size 2, got codes of size 1"):
        family_ghms().with_policies(family(CODES[:, :1]))
    with pytest.raises(ValueError, match="codes of size 2, got policies without codes"):
        family_ghms().with_policies(ABC)
    with pytest.raises(ValueError, match=r"got 3 policies with other codes .*with_policies"):
        GHMs(family(CODES[::-1]), 0.95, (), family_ghms().models[:1])


def test_policies_of_another_family():
    def turned(state, z):
        return -z[:1] * state[:1]

    others = policy_family(turned, CODES, ([-1.0], [1.0]))
    with pytest.raises(ValueError, match="on the family of scaled, got policies of the family of turned"):
        family_ghms().with_policies(others)

    def wide(state, z):
        return z

    models = replace(family_ghms(), policies=policy_family(wide, CODES, ([-1.0, -1.0], [1.0, 1.0])))
    with pytest.raises(ValueError, match=r"returns shape \(2,\) of float32, expected \(1,\)"):
        models.with_policies(models.policies)


def test_no_policies():
    with pytest.raises(ValueError, match="at least one policy"):
        family_ghms().with_policies([])


@pytest.mark.parametrize("policy", [-1, 3])
def test_policies_that_there_are_no_models_of(policy):
    with pytest.raises(IndexError, match=rf"models of policies 0 to 2, .*; got {policy}"):
        family_ghms().segment(policy, None)


def test_an_alpha_that_there_are_no_models_for():
    with pytest.raises(ValueError, match=r"for α in \[0.5\], none for α = 0.2; use ghms.with_alpha\(0.2\)"):
        family_ghms().segment(0, 0.2)


def test_conditions_of_another_network():
    """Such as that of another teacher: the sizes of their codes differ."""
    others = network().at_horizon(0.5).condition
    for call, given in ((network(CODES).among, others), (network(CODES).at, others[0])):
        with pytest.raises(
            ValueError, match="codes have size 2, have size 13, got 14; make them with its own"
        ):
            call(given)


def test_models_of_two_networks_of_one_size():
    own, other = ghms().with_alpha(0.5), network()
    other = eqx.tree_at(lambda one: one.shifts.weights[0], other, 2 * other.shifts.weights[0])
    with pytest.raises(ValueError, match=r"models of two networks: those at the horizons 0\.95 and 0\.475"):
        replace(own, models=(own.models[0], other.at_horizon(0.475)))
    with pytest.raises(ValueError, match="models of two networks"):
        replace(own, models=(own.models[0], replace(own.models[1], largest=0.96)))
    with pytest.raises(ValueError, match="trained apart do not go together"):
        replace(own, models=(own.models[0], own.models[1].stacked()))
    copy = jax.tree.map(jnp.array, own.models[1])
    assert replace(own, models=(own.models[0], copy)).models[1] is copy


def test_conditions_of_other_horizons_or_policies(tmp_path):
    own = ghms().with_alpha(0.5)
    exchanged = eqx.tree_at(lambda one: one.condition, own.models[1], own.models[1].condition[::-1])
    for models in (own.models[::-1], (own.models[0], own.models[0]), (own.models[0], exchanged)):
        with pytest.raises(ValueError, match="the conditions of other policies or horizons"):
            replace(own, models=models)
    with pytest.raises(ValueError, match=r"1 models, expected those of horizons \[0\.95, 0\.475\]"):
        replace(own, models=own.models[:1])
    damaged = object.__new__(GHMs)
    damaged.__dict__.update(vars(own) | {"models": own.models[::-1]})
    ggpi.save(tmp_path, damaged)
    with pytest.raises(ggpi.FileError, match="the conditions of other policies or horizons"):
        ggpi.load(tmp_path)


def test_models_of_a_network_may_be_traced():
    """Then nothing is known of their arrays, but that they are the same."""
    own = ghms()

    @jax.jit
    def sample(weights):
        shared = eqx.tree_at(lambda one: one.shifts, own.network, weights)
        traced = replace(own, models=(shared.at_horizon(0.95),)).with_alpha(0.5)
        copies = jax.tree.map(lambda leaf: 1 * leaf, traced.models[1])
        traced = replace(traced, models=(traced.models[0], copies))
        return traced.segment(0, 0.5).push(STATE, ACTION, jnp.ones(2))

    expected = own.with_alpha(0.5).segment(0, 0.5).push(STATE, ACTION, jnp.ones(2))
    np.testing.assert_allclose(sample(own.network.shifts), expected, atol=1e-5)


def test_saved_once_for_all_horizons(tmp_path):
    """All horizons share the arrays of the network, in memory and on disk."""
    found = ghms().with_alpha([0.1, 0.5, 0.9])
    ggpi.save(tmp_path, found)
    (file,) = tmp_path.glob("*.safetensors")
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(network()))
    assert file.stat().st_size < 1.5 * size + 10_000
    loaded = ggpi.load(tmp_path)
    assert loaded.models[0].model.network.outer is loaded.models[1].model.network.outer
    for one, other in zip(
        *(jax.tree.leaves(each.with_gamma(0.6).models) for each in (found, loaded)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_only_models_that_follow_a_path_share_a_network():
    with pytest.raises(TypeError, match="VAE does not have"):
        over_paths(lambda model: model, fresh_model(VAEConfig(width=8)))


def test_a_condition_reaches_every_layer():
    """Policy and horizon shift the first layer that sees (x, a), and all modulations."""
    shared = network()
    one, other = (
        shared.at(shared.condition_of(jnp.array(0), jnp.array(b))).network.context for b in (0.3, 0.9)
    )
    changed = [not np.allclose(a, b) for a, b in zip(one.biases, other.biases, strict=True)]
    assert changed == [True, False, True]
    assert np.abs(np.asarray(one.biases[-1] - other.biases[-1])).min() > 0
