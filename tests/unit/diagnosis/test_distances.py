"""Distances of clouds, against closed forms and other code."""

import itertools

import numpy as np
import pytest
import scipy.stats

from ggpi.diagnosis.distances import emd, energy_distance, mean_energy, nearest, share_beyond

RNG = np.random.default_rng(0)


def test_on_a_line_both_agree_with_scipy():
    x, y = RNG.normal(size=40), RNG.normal(1, 2, 40)
    assert emd(x[:, None], y[:, None]) == pytest.approx(scipy.stats.wasserstein_distance(x, y))
    biased = scipy.stats.energy_distance(x, y) ** 2
    within = sum(np.abs(z[:, None] - z).mean() / 39 for z in (x, y))
    assert energy_distance(x[:, None], y[:, None]) == pytest.approx(biased - within)


def test_a_shift_is_its_length():
    x = RNG.normal(size=(30, 3))
    assert emd(x, x[::-1]) == 0
    assert emd(x, x + np.array([3, 0, 4])) == pytest.approx(5)


@pytest.mark.parametrize("n", range(2, 8))
def test_the_emd_is_the_least_over_all_permutations(n):
    x, y = RNG.normal(size=(n, 3)), RNG.normal(0.5, 2, (n, 3))
    costs = [np.linalg.norm(x - y[list(order)], axis=1).mean() for order in itertools.permutations(range(n))]
    assert emd(x, y) == pytest.approx(min(costs))


def test_the_emd_on_a_line_matches_sorted_points():
    x, y = RNG.normal(size=512), RNG.exponential(size=512)
    assert emd(x[:, None], y[:, None]) == pytest.approx(np.abs(np.sort(x) - np.sort(y)).mean())


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
        emd(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="shapes"):
        energy_distance(np.zeros((3, 2)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="not finite"):
        energy_distance(np.zeros((3, 1)), np.full((3, 1), np.nan))


def test_clouds_of_pairs_are_compared_pair_by_pair():
    x, y = RNG.normal(size=(3, 20, 2)), RNG.normal(size=(3, 30, 2))
    scale = np.array([2.0, 0.5])
    wanted = np.mean([energy_distance(a / scale, b / scale) for a, b in zip(x, y, strict=True)])
    assert mean_energy(x, y, scale) == pytest.approx(wanted)
    assert mean_energy(x, y) == pytest.approx(
        np.mean([energy_distance(a, b) for a, b in zip(x, y, strict=True)])
    )


def test_the_share_of_points_that_are_far_from_all_others_of_their_pair():
    x = np.array([[[0.0], [1.0]], [[10.0], [11.0]]])
    y = np.array([[[0.1], [1.6], [10.0]], [[10.4], [0.0], [11.0]]])
    assert share_beyond(x, y, 0.5) == pytest.approx(3 / 6)


def test_the_nearest_state_of_a_path_and_its_time():
    path = np.arange(8.0).reshape(1, 2, 4, 1)
    distances, times = nearest(np.array([[[0.2], [6.9], [np.nan]]]), path)
    np.testing.assert_allclose(distances[0, :2], [0.2, 0.1])
    assert times[0, :2].tolist() == [1, 4] and distances[0, 2] > 900
