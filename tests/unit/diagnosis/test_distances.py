"""Distances of clouds, against closed forms and other code."""

import numpy as np
import pytest
import scipy.stats

from ggpi.diagnosis.distances import energy_distance, wasserstein

RNG = np.random.default_rng(0)


def test_on_a_line_both_agree_with_scipy():
    x, y = RNG.normal(size=40), RNG.normal(1, 2, 40)
    assert wasserstein(x[:, None], y[:, None]) == pytest.approx(scipy.stats.wasserstein_distance(x, y))
    biased = scipy.stats.energy_distance(x, y) ** 2
    within = sum(np.abs(z[:, None] - z).mean() / 39 for z in (x, y))
    assert energy_distance(x[:, None], y[:, None]) == pytest.approx(biased - within)


def test_a_shift_is_its_length():
    x = RNG.normal(size=(30, 3))
    assert wasserstein(x, x[::-1]) == 0
    assert wasserstein(x, x + np.array([3, 0, 4])) == pytest.approx(5)


def test_the_energy_distance_is_unbiased():
    """Within 6.5 standard errors of 2000 draws: beyond with a probability below 1e-8, skewed as they are."""
    n = 2000
    draws = [energy_distance(*RNG.normal(size=(2, 25, 2))) for _ in range(n)]
    assert abs(np.mean(draws)) < 6.5 * np.std(draws) / n**0.5
    apart = [energy_distance(RNG.normal(size=(25, 1)), RNG.normal(1, 1, (25, 1))) for _ in range(n)]
    # E|N(m, 2)| = 2/√π · exp(−m²/4) + m·erf(m/2)
    far = 2 / np.sqrt(np.pi) * np.exp(-1 / 4) + scipy.special.erf(1 / 2)
    exact = 2 * far - 4 / np.sqrt(np.pi)
    assert abs(np.mean(apart) - exact) < 6.5 * np.std(apart) / n**0.5


def test_bad_input():
    with pytest.raises(ValueError, match="one size"):
        wasserstein(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="shapes"):
        energy_distance(np.zeros((3, 2)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="not finite"):
        energy_distance(np.zeros((3, 1)), np.full((3, 1), np.nan))
