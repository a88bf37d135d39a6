"""Models that draw the time first: the law of the time, the energy score, and one network for all horizons."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from ggpi.data import StateSpec
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.timed import TimedConfig, energy_score, geometric_time

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
STATE, ACTION = RNG.normal(size=(2, 50, 3)), RNG.normal(size=(50, 2))
SPEC = StateSpec(("x", "y", "speed"), relative=(0, 1))


def model(spec=SPEC, **shape):
    frame = fit_frame(STATE[0], ACTION, STATE[0] + 2 * STATE[1] + 1, spec, None)
    return TimedConfig(width=8, depth=1, **shape).build(frame, key=KEY)


def test_times_are_geometric():
    """Of a fine grid of uniform numbers, the share of each time is its probability, up to one part of the grid."""
    grid = (np.arange(100_000) + 0.5) / 100_000
    found = np.asarray(geometric_time(jnp.asarray(grid), jnp.float32(0.8), 12))
    shares = np.bincount(found, minlength=13)[1:] / len(grid)
    expected = 0.2 * 0.8 ** np.arange(12)
    expected[-1] = 0.8**11  # and all that lies beyond
    np.testing.assert_allclose(shares, expected, atol=2e-5)
    assert (np.asarray(geometric_time(jnp.asarray(grid), jnp.float32(0.0), 12)) == 1).all()
    assert int(geometric_time(jnp.float32(0.0), jnp.float32(0.9), 50)) == 50


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_energy_score_by_hand(count):
    drawn, target = RNG.normal(size=(count, 4, 3)), RNG.normal(size=(4, 3))
    apart = np.linalg.norm(drawn - target, axis=-1).mean(axis=0)
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    between = np.mean([np.linalg.norm(drawn[i] - drawn[j], axis=-1) for i, j in pairs], axis=0)
    found = energy_score(jnp.asarray(drawn), jnp.asarray(target))
    np.testing.assert_allclose(found, apart - between / 2, rtol=1e-5)


def test_the_truth_has_the_best_expected_score():
    """Of normal distributions, for standard normal targets: E|m + s Z| is known, and scores agree with a quadrature."""

    def expected(mean, scale):
        def absolute(mean, scale):  # E|mean + scale Z|
            return scale * np.sqrt(2 / np.pi) * np.exp(-0.5 * (mean / scale) ** 2) + mean * (
                1 - 2 * norm.cdf(-mean / scale)
            )

        return absolute(mean, np.hypot(1, scale)) - absolute(0.0, np.sqrt(2) * scale) / 2

    quantiles = norm.ppf((np.arange(40) + 0.5) / 40)
    first, second, target = (part.reshape(-1, 1) for part in np.meshgrid(quantiles, quantiles, quantiles))
    for mean, scale in ((0.0, 1.0), (0.5, 1.0), (0.0, 0.6), (0.0, 1.5)):
        drawn = mean + scale * np.stack([first, second])
        found = np.mean(energy_score(jnp.asarray(drawn), jnp.asarray(target)))
        assert found == pytest.approx(expected(mean, scale), abs=0.02)
    assert expected(0.0, 1.0) < min(expected(0.1, 1.0), expected(0.0, 0.9), expected(0.0, 1.1))


def test_a_sample_is_the_state_after_the_time_that_its_noise_says():
    ghm = model(longest=60).at_horizon(0.7)
    noise, x, a = (jnp.asarray(part) for part in (RNG.normal(size=ghm.noise_size), STATE[0, 0], ACTION[0]))
    time = 1 + int(np.floor(np.log(norm.cdf(noise[0])) / np.log(0.7)))
    y = ghm.after(jnp.array(time), ghm.encode(x, a), noise[1:])
    np.testing.assert_allclose(ghm.push(x, a, noise), ghm.frame.restore(x, y), rtol=1e-5)
    other = ghm.after(jnp.array(time + 1), ghm.encode(x, a), noise[1:])
    assert not np.allclose(y, other), "times differ"
    quiet = eqx.tree_at(lambda ghm: ghm.beta, ghm, jnp.float32(0.0))
    first = ghm.frame.restore(x, ghm.after(jnp.array(1), ghm.encode(x, a), noise[1:]))
    np.testing.assert_allclose(quiet.push(x, a, noise), first, rtol=1e-5)


@pytest.mark.parametrize("weight", [1.0, 3.0, 0.0])
def test_the_loss_is_the_score_of_two_samples(weight):
    """In the frame's units: all coordinates, and the two positions once more, with their weight."""
    ghm, batch = model(longest=60, places=weight).at_horizon(0.7), 5
    x, a, target = (jnp.asarray(part[:batch]) for part in (STATE[0], ACTION, STATE[1]))
    noise = jnp.asarray(RNG.normal(size=(batch, ghm.loss_noise_size)))
    y = np.asarray(ghm.frame.change(x, target))
    drawn = np.stack(
        [
            [ghm.frame.change(x[i], ghm.push(x[i], a[i], part)) for part in jnp.split(noise[i], 2)]
            for i in range(batch)
        ]
    )
    expected = 0.0
    for places, factor in ((slice(0, 3), 1.0), (slice(0, 2), weight)):
        apart = np.linalg.norm(drawn[..., places] - y[:, None, places], axis=-1).mean(axis=1)
        between = np.linalg.norm(drawn[:, 0, places] - drawn[:, 1, places], axis=-1)
        expected = expected + factor * (apart - between / 2)
    np.testing.assert_allclose(ghm.loss(x, a, target, noise), expected, rtol=1e-4)


def test_without_positions_nothing_is_counted_twice():
    drawn, y = jnp.asarray(RNG.normal(size=(2, 4, 3))), jnp.asarray(RNG.normal(size=(4, 3)))
    plain = model(spec=StateSpec(SPEC.names))
    np.testing.assert_allclose(plain.score(drawn, y), energy_score(drawn, y))


def test_horizons_beyond_the_longest_time_raise():
    ghm = model(longest=60)
    with pytest.raises(
        ValueError, match=r"times up to 60, horizons are from 0 to 0\.891, got 0\.9; .*longest"
    ):
        ghm.at_horizon(0.9)
    with pytest.raises(ValueError, match=r"got -0\.1"):
        ghm.at_horizon(-0.1)
    with pytest.raises(ValueError, match="longest is at least 2"):
        TimedConfig(longest=1)
    with pytest.raises(ValueError, match="latent is at least 1"):
        TimedConfig(latent=0)
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="places is a weight from 0"):
            TimedConfig(places=weight)
