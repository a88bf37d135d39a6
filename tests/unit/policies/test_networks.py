"""Networks that PyTorch trained, layer by layer, and what is made of their outputs."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.policies.networks import (
    FeatureLogNoise,
    FeatureNoise,
    FixedDeviation,
    Greedy,
    MeanAndLogDeviation,
    Network,
    Unscaled,
    normaliser,
)

STATE = jnp.array([0.5, -2.0])


def network(sizes=(2, 3, 4), activation="ReLU", slopes=(), bias=0.0):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(b, a)) for a, b in itertools.pairwise(sizes)]
    biases = [rng.normal(size=b) for b in sizes[1:]]
    biases[-1] = biases[-1] + bias
    as_jax = [tuple(jnp.asarray(part, jnp.float32) for part in parts) for parts in (weights, biases, slopes)]
    return Network(normaliser([1.0, 3.0], [4.0, 0.25], limit=8.0), *as_jax, activation), weights, biases


def constant(outputs):
    """A network that says the same of every state."""
    outputs = jnp.asarray(outputs, jnp.float32)
    return Network(
        normaliser([0.0, 0.0], [1.0, 1.0]), (jnp.zeros((len(outputs), 2)),), (outputs,), (), "ReLU"
    )


@pytest.mark.parametrize("sizes", [(2, 4), (2, 3, 4), (2, 3, 5, 4)])
def test_layers_by_hand(sizes):
    """Normalised and clipped first; an activation between layers, none after the last."""
    net, weights, biases = network(sizes, bias=np.array([-1e3, 0, 0, 1e3]))
    hidden = np.clip((np.array([0.5, -2.0]) - [1, 3]) / [2, 0.5], -8, 8)
    assert hidden[1] == -8
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        hidden = weight @ (hidden if layer == 0 else np.maximum(hidden, 0)) + bias
    np.testing.assert_allclose(net(STATE), hidden, rtol=1e-5)
    assert hidden[0] < 0 < hidden[-1]


def test_learned_slopes_are_those_of_their_layer():
    slopes = [np.array([0.1, 0.2, 0.3]), np.array([0.7])]
    net, weights, biases = network((2, 3, 5, 4), "PReLU", slopes)
    hidden = weights[0] @ np.array([-0.25, -8.0]) + biases[0]
    for slope, weight, bias in zip(slopes, weights[1:], biases[1:], strict=True):
        hidden = weight @ np.where(hidden >= 0, hidden, slope * hidden) + bias
    np.testing.assert_allclose(net(STATE), hidden, rtol=1e-5)


def test_far_states_lose_no_digits():
    """The mean 1e6 + 0.03 is not a number of single precision, its distance to 1e6 + 0.5 is."""
    scaled = normaliser([1e6 + 0.03], [1.0], 0.0)(jnp.array([1e6 + 0.5]))
    assert float(scaled[0]) == pytest.approx(0.47, abs=1e-6)


def test_epsilon_is_added_to_the_variance():
    assert float(normaliser([0.0], [0.0], 0.25)(jnp.array([1.0]))[0]) == pytest.approx(2.0)


def test_sac_limits_its_log_deviation():
    """[−20, 2], as Stable-Baselines3 has it: exp(50) would be infinite noise. Means have no limits."""
    mean, log_std = MeanAndLogDeviation(constant([-70.0, 0.5, 70.0, -70.0, 1.5, 70.0]))(STATE)
    np.testing.assert_allclose(mean, [-70, 0.5, 70])
    np.testing.assert_allclose(log_std, [-20, 1.5, 2])


def test_noise_of_features_has_the_marginal_deviation():
    """φᵀE with independent Eᵢⱼ ∼ N(0, σᵢⱼ²) has the variance Σᵢ φᵢ² σᵢⱼ²; means are limited, deviations are not."""
    whole, weights, biases = network((2, 3, 2), "Tanh")
    features = np.tanh(weights[0] @ np.clip((np.asarray(STATE) - [1, 3]) / [2, 0.5], -8, 8) + biases[0])
    std = np.array([[0.5, 2.0], [1.0, 30.0], [0.1, 0.0]])
    means = weights[1] @ features + biases[1]
    limit = np.abs(means).mean()
    assert np.abs(means).min() < limit < np.abs(means).max()
    noise = FeatureNoise(whole, jnp.asarray(std, jnp.float32), jnp.float32(limit))
    mean, deviation = noise(STATE)
    np.testing.assert_allclose(mean, np.clip(means, -limit, limit), rtol=1e-5)
    wanted = np.sqrt([sum((features[i] * std[i, j]) ** 2 for i in range(3)) + 1e-6 for j in range(2)])
    np.testing.assert_allclose(deviation, wanted, rtol=1e-5)
    again, log = FeatureLogNoise(noise)(STATE)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_allclose(log, np.log(wanted), rtol=1e-5, atol=1e-6)


def test_what_the_heads_make_of_outputs():
    assert int(Greedy(constant([0.1, 0.9, -3.0]))(STATE)) == 1
    mean, std = FixedDeviation(constant([0.1, 0.9]), jnp.log(jnp.array([2.0, 0.5])))(STATE)
    np.testing.assert_allclose(mean, [0.1, 0.9])
    np.testing.assert_allclose(std, [2, 0.5], rtol=1e-6)
    bounds = jnp.array([-2.0, 1.0]), jnp.array([4.0, 3.0])
    np.testing.assert_allclose(Unscaled(constant([0.0, 0.0]), *bounds)(STATE), [1, 2], rtol=1e-6)
    np.testing.assert_allclose(Unscaled(constant([9.0, -9.0]), *bounds)(STATE), [4, 1], rtol=1e-6)
    half = np.arctanh(0.5)
    np.testing.assert_allclose(Unscaled(constant([half, half]), *bounds)(STATE), [2.5, 2.5], rtol=1e-6)
