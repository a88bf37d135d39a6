"""Linear and mixed policies, the Gaussian's deviation, and the order of policies in a bank."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.policies import PolicyBank
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP
from ggpi.policies.linear import (
    MixedPolicy,
    direction_policies,
    linear_policy,
    maze_policies,
)

KEY = jax.random.key(0)


def test_linear_policies_by_hand():
    """clip(K x + k + noise · ε), with the ε of the key."""
    one = linear_policy([[1.0, 2.0], [0.5, 0.0]], [0.1, -0.2], [0.3, 0.6], low=-2.0, high=1.5)
    state = np.array([0.3, -0.1], np.float32)
    mean = np.array([0.3 - 0.2 + 0.1, 0.15 - 0.2])
    np.testing.assert_allclose(one.mode(state), mean, atol=1e-6)
    noise = np.asarray(jax.random.normal(KEY, (2,)))
    np.testing.assert_allclose(one.sample(state, key=KEY), mean + noise * [0.3, 0.6], atol=1e-6)
    np.testing.assert_allclose(one.mode(100 * state), [1.5, 1.5])
    assert (np.asarray(one.sample(np.tile(state, (200, 1)) * 100, key=KEY)) <= 1.5).all()


def test_mixed_policies_have_their_probabilities():
    """Each share of 20,000 draws is off by 0.025 with probability below 2 e⁻²⁵ (Hoeffding)."""
    one = MixedPolicy(jnp.array([0.7, 0.1, 0.2]))
    drawn = np.asarray(one.sample(np.zeros((20_000, 4)), key=KEY))
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 20_000, [0.7, 0.1, 0.2], atol=0.025)
    assert one.mode(np.zeros((5, 4))).tolist() == [0] * 5


def test_directions_and_maze_policies_push_their_own_way():
    """A maze's policy accelerates until it has its speed, and brakes above it."""
    ways = {"right": [1, 0], "up": [0, 1], "left": [-1, 0], "down": [0, -1]}
    for one in direction_policies():
        np.testing.assert_allclose(one.mode(np.array([3.0, 4.0, 5.0, 6.0])), ways[one.name])
    for one in maze_policies(speed=2.0, gain=0.3):
        way = np.array(ways[one.name], float)
        for speed in (0.0, 1.0, 2.0, 3.0):
            state = np.concatenate([[7.0, -8.0], speed * way])
            np.testing.assert_allclose(one.mode(state), 0.3 * (2 - speed) * way, atol=1e-6)


def test_the_deviation_of_a_gaussian_policy():
    """noise · (softplus(raw) + min_std), and a network that looks at scaled inputs."""
    network = LayerNormMLP((1, 2), key=KEY)
    weights = (jnp.array([[2.0, 3.0]]),)
    network = eqx.tree_at(
        lambda old: (old.weights, old.biases), network, (weights, (jnp.array([0.5, -1.0]),))
    )
    one = GaussianPolicy(network, "π", (1,), (0.1,), min_std=0.05, noise=0.5)
    mean, std = one.distribution(jnp.array([9.0, 4.0]))
    assert float(mean[0]) == pytest.approx(2 * 0.4 + 0.5)
    assert float(std[0]) == pytest.approx(0.5 * (np.log1p(np.exp(3 * 0.4 - 1)) + 0.05), rel=1e-6)


class Plus(eqx.Module):
    by: jax.Array

    def sample(self, state, *, key):
        return state + self.by


class Times(eqx.Module):
    factor: jax.Array
    other: jax.Array

    def sample(self, state, *, key):
        return state * self.factor * self.other


class Noise(eqx.Module):
    def sample(self, state, *, key):
        return jax.random.normal(key, state.shape)


ONE, MANY = (
    jnp.ones(1),
    [Plus(jnp.ones(1)), Times(jnp.full(1, 2.0), jnp.ones(1)), Noise(), Plus(jnp.full(1, 4.0))],
)


def test_groups_are_put_back_into_the_order_of_policies():
    """Groups (0, 3), (1,), (2,): an order that is not its own inverse."""
    bank = PolicyBank(MANY)
    assert bank.members == ((0, 3), (1,), (2,))
    states = jnp.array([[10.0], [20.0], [30.0], [40.0]])
    each = np.asarray(bank.sample_each(states, key=KEY))[:, 0]
    assert each[[0, 1, 3]].tolist() == [11, 40, 44] and abs(each[2]) < 10
    chosen = np.asarray(bank.sample(np.array([3, 1, 0]), states[:3], key=KEY))[:, 0]
    assert chosen.tolist() == [14, 40, 31]


def test_some_of_a_bank_in_another_order():
    states = jnp.array([[10.0], [20.0], [30.0]])
    some = PolicyBank(MANY).among([3, 0, 1])
    assert np.asarray(some.sample_each(states, key=KEY))[:, 0].tolist() == [14, 21, 60]


def test_states_have_noise_of_their_own():
    bank = PolicyBank([Noise(), Noise()])
    each = np.asarray(bank.sample_each(jnp.zeros((2, 50, 1)), key=KEY))
    one = np.asarray(bank.sample(np.zeros(50, int), jnp.zeros((50, 1)), key=KEY))
    assert len(np.unique(each)) == 100 and len(np.unique(one)) == 50
