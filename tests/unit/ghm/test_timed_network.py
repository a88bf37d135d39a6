"""The network of models that draw the time first, beside the same computation in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from ggpi.ghm.timed_network import LIMIT, timed_network

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
WIDTH, DEPTH, LATENT, SIZE, INPUTS = 6, 2, 3, 5, 4


def random_network():
    """One whose biases are not zero and whose scales reach their bound."""
    network = timed_network(SIZE, INPUTS, WIDTH, DEPTH, LATENT, key=KEY)
    return jax.tree.map(lambda leaf: jnp.asarray(3 * RNG.normal(size=leaf.shape), jnp.float32), network)


NETWORK = random_network()


def silu(x):
    return x * expit(x)


def by_hand(network, noise, inputs, t):
    """One state in float64."""
    n = jax.tree.map(lambda leaf: np.asarray(leaf, float), network)
    seen = silu(inputs @ n.first + n.first_bias) @ n.second + n.second_bias
    angles = np.pi * t * np.arange(1, 9)
    time = silu(
        np.concatenate([[t], np.sin(angles), np.cos(angles)]) @ n.clock.weights[0] + n.clock.biases[0]
    )
    time = time @ n.clock.weights[1] + n.clock.biases[1]
    modulation = (silu(seen + time) @ n.modulation + n.modulation_bias).reshape(DEPTH, 2, WIDTH)
    h = noise @ n.inner + n.inner_bias
    for (scale, shift), weight, bias in zip(modulation, n.weights, n.biases, strict=True):
        h = h + silu(h * (1 + np.clip(scale, -LIMIT, LIMIT)) + shift) @ weight + bias
    return silu(h) @ n.outer + n.outer_bias


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0])
def test_the_network_by_hand(t):
    noise, inputs = RNG.normal(size=LATENT), RNG.normal(size=INPUTS)
    found = NETWORK(
        jnp.asarray(noise), NETWORK.encode(jnp.asarray(inputs)), NETWORK.encode_time(jnp.asarray(t))
    )
    np.testing.assert_allclose(found, by_hand(NETWORK, noise, inputs, t), rtol=1e-3, atol=1e-2)


def test_what_samples_share_is_broadcast():
    """Codes [B, 1], times [B, n] and noise [m, B, n] give each sample the state that it has alone."""
    noise, inputs = RNG.normal(size=(2, 3, 4, LATENT)), RNG.normal(size=(3, INPUTS))
    t = RNG.uniform(size=(3, 4))
    code, time = NETWORK.encode(jnp.asarray(inputs))[:, None], NETWORK.encode_time(jnp.asarray(t))
    found = NETWORK(jnp.asarray(noise), code, time)
    for m, b, n in np.ndindex(2, 3, 4):
        alone = NETWORK(jnp.asarray(noise[m, b, n]), code[b, 0], time[b, n])
        np.testing.assert_allclose(found[m, b, n], alone, rtol=1e-4, atol=1e-3)


def test_sizes():
    assert NETWORK.noise_size == LATENT
    code = NETWORK.encode(jnp.zeros((7, INPUTS)))
    assert NETWORK(jnp.zeros((7, LATENT)), code, NETWORK.encode_time(jnp.zeros(7))).shape == (7, SIZE)
