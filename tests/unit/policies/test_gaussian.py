"""Gaussian policies: what is executed, how likely it was, and that four of them stack."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import ggpi
import ggpi.policies.gaussian
from chance import is_share
from ggpi.policies import PolicyBank
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP
from ggpi.policies.symmetric import four_directions
from ggpi.types import Policy

KEY = jax.random.key(0)


def policy(key=KEY, inputs=(0, 2), size=1, name="wide", bias=0.0):
    network = LayerNormMLP((len(inputs), 16, 16, 2 * size), key=key)
    network = eqx.tree_at(lambda net: net.biases[-1], network, network.biases[-1] + bias)
    return GaussianPolicy(network=network, name=name, inputs=inputs, scale=(1.0,) * len(inputs))


def test_it_is_a_policy():
    assert (
        isinstance(policy(), Policy)
        and policy().name == "wide"
        and ggpi.policies.gaussian.GaussianPolicy is GaussianPolicy
    )


def test_layers_are_normalised_and_bounded():
    net = LayerNormMLP((3, 64, 64, 2), key=KEY)
    for x in np.random.default_rng(0).normal(size=(5, 3)) * [[1], [10], [100], [1e3], [1e4]]:
        hidden = x.astype(np.float32)
        for i in range(2):
            hidden = hidden @ np.asarray(net.weights[i]) + np.asarray(net.biases[i])
            hidden = np.tanh((hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5))
        wanted = hidden @ np.asarray(net.weights[2]) + np.asarray(net.biases[2])
        np.testing.assert_allclose(net(jnp.asarray(x, jnp.float32)), wanted, rtol=2e-4, atol=2e-4)


def test_only_the_inputs_are_seen():
    one = policy(inputs=(0, 2))
    a, b = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 9.0, 3.0])
    np.testing.assert_array_equal(one.mode(a), one.mode(b))
    assert (one.mode(a) != one.mode(jnp.array([2.0, 2.0, 3.0]))).any()


def test_executed_actions_are_clipped_and_have_leading_axes():
    wild = policy(size=8, bias=1.0)
    states = np.random.default_rng(0).normal(size=(50, 4, 3))
    actions = wild.sample(states, key=KEY)
    assert actions.shape == (50, 4, 8) and (abs(actions) <= 1).all() and (abs(actions) == 1).any()
    assert wild.mode(states).shape == (50, 4, 8) and wild.log_prob(states, actions).shape == (50, 4)
    np.testing.assert_allclose(wild.mode(states)[3, 1], wild.mode(states[3, 1]), rtol=1e-5)


def test_probabilities_add_up_to_one():
    """A density inside, and what was clipped sits on the bounds."""
    one, state = policy(), jnp.array([0.3, 0.0, -0.2])
    grid = np.linspace(-1, 1, 4001)[1:-1, None]
    inside = np.exp(one.log_prob(jnp.tile(state, (len(grid), 1)), grid)).sum() * (grid[1] - grid[0])
    ends = np.exp([one.log_prob(state, jnp.array([end])) for end in (-1.0, 1.0)])
    assert inside.item() + ends.sum() == pytest.approx(1, abs=1e-3) and (ends > 0.01).all()


def test_samples_follow_the_distribution():
    one, state = policy(), jnp.array([0.3, 0.0, -0.2])
    mean, std = (float(part[0]) for part in one.distribution(state))
    actions = np.asarray(one.sample(jnp.tile(state, (4000, 1)), key=KEY))[:, 0]
    for bound in (-0.9, -0.3, 0.0, 0.5, 0.95):
        share = stats.norm.cdf(bound, mean, std)
        assert is_share(actions <= bound, share, comparisons=5)


def test_four_directions_are_one_group_and_survive_saving(tmp_path):
    base = policy(inputs=tuple(range(2, 31)), size=8)
    four = four_directions(base)
    assert [each.name for each in four] == ["right", "up", "left", "down"]
    assert all(isinstance(each, Policy) for each in four)
    assert PolicyBank(four).members == ((0, 1, 2, 3),)
    ggpi.save(tmp_path / "four", four)
    again = ggpi.load(tmp_path / "four")
    assert eqx.tree_equal(again, four) and [each.name for each in again] == ["right", "up", "left", "down"]


@pytest.mark.slow
def test_symmetric_states_get_symmetric_actions():
    from ggpi.envs.ant.symmetry import back, forth, rename_legs, turn_world

    four = four_directions(policy(inputs=tuple(range(2, 31)), size=8))
    state = np.random.default_rng(1).normal(size=35).astype(np.float32)
    state[3:9] = 1, 0.2, 0, 0, 0, 1
    state = jnp.asarray(state).at[3:5].set(jnp.array([1, 0.2]) / np.sqrt(1.04))
    action = four[0].mode(state)
    assert float(abs(back(action, 1) - forth(action, 1)).max()) > 0.01
    for direction in range(4):
        for legs in range(4):
            seen = rename_legs(turn_world(state, direction), legs)
            np.testing.assert_allclose(four[direction].mode(seen), forth(action, legs), atol=1e-5)
            there = four[direction].log_prob(seen, forth(0.9 * action, legs))
            np.testing.assert_allclose(there, four[0].log_prob(state, 0.9 * action), rtol=1e-4)
