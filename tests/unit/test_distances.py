"""Distances between clouds, where they are known."""

import numpy as np
import pytest

from ggpi.distances import energy_distance, wasserstein_distance


def test_on_a_line_they_are_those_of_scipy():
    from scipy.stats import energy_distance as root, wasserstein_distance as wasserstein

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), 0.5 + 2 * rng.normal(size=300)
    biased = root(x, y) ** 2
    within = sum(np.abs(cloud[:, None] - cloud).mean() for cloud in (x, y)) / 299
    assert energy_distance(x[:, None], y[:, None]) == pytest.approx(biased - within)
    assert wasserstein_distance(x[:, None], y[:, None]) == pytest.approx(wasserstein(x, y))


def test_clouds_of_one_distribution_have_no_energy_distance_on_average():
    rng = np.random.default_rng(1)
    found = [energy_distance(*rng.normal(size=(2, 50, 3))) for _ in range(400)]
    assert abs(np.mean(found)) < 4 * np.std(found) / 20


def test_a_shift_is_seen():
    x = np.random.default_rng(2).normal(size=(100, 3))
    far = np.array([100.0, 0.0, 0.0])
    assert wasserstein_distance(x, x[::-1] + far) == pytest.approx(100, rel=1e-3)
    assert energy_distance(x, x + far) == pytest.approx(200 - 2 * 2.26, rel=0.02)


def test_bad_input():
    with pytest.raises(ValueError, match=r"\[n, D\] and \[m, D\].*\(3,\)"):
        energy_distance(np.zeros(3), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="one size, got 3 and 4"):
        wasserstein_distance(np.zeros((3, 1)), np.zeros((4, 1)))
    with pytest.raises(ValueError, match="not finite"):
        energy_distance(np.full((3, 1), np.nan), np.zeros((3, 1)))
