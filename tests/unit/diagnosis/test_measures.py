"""Measures of samples against true futures, by hand and by closed forms."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from ggpi.diagnosis import Truth, true_futures
from ggpi.diagnosis.distances import energy_distance
from ggpi.diagnosis.health import (
    impossible,
)
from ggpi.diagnosis.measures import (
    clouds,
    displacement,
    distances,
    measure,
    moments,
    reward_features,
    summary,
    value_errors,
    value_mse,
)
from ggpi.diagnosis.truth import scales
from ggpi.envs import Pendulum, PointMass
from ggpi.ghm.abstract import AbstractDensityGHM
from ggpi.policies.linear import direction_policies, pendulum_policies
from truths import pairs

KEY = jax.random.key(0)


class Near(AbstractDensityGHM):
    """N(x, 1)."""

    frame: Any
    noise_size = 2

    def push(self, state, action, noise):
        return state + noise

    def log_prob(self, target, state, action):
        return jax.scipy.stats.norm.logpdf(target, state).sum()


def test_displacements_by_hand():
    rng = np.random.default_rng(2)
    state = 100 * rng.normal(size=(5, 2))
    future = state[:, None] + [3.0, 0.0] + rng.normal(size=(5, 40, 2)) * [1.0, 4.0]
    ours = state[:, None] + [4.0, 0.0] + [2.0, 8.0] * (future - state[:, None] - [3.0, 0.0])
    truth = Truth(state, np.zeros((5, 1)), future, future)
    found = displacement(truth, ours)
    found |= summary(found, truth)
    moved, modelled = future - state[:, None], ours - state[:, None]
    np.testing.assert_allclose(found["mean_true"], moved.mean(axis=(0, 1)))
    np.testing.assert_allclose(found["mean_model"], modelled.mean(axis=(0, 1)))
    np.testing.assert_allclose(found["spread_true"], np.sqrt(moved.var(axis=1).mean(axis=0)))
    assert found["spread_ratio"] == pytest.approx(4), "the geometric mean of 2 and 8"
    error = (modelled - moved).mean(axis=(0, 1)) / moved.reshape(-1, 2).std(axis=0)
    assert found["mean_error"] == pytest.approx(np.sqrt((error**2).mean()))


def test_distances_are_of_displacements_in_units_of_their_spread():
    truth = pairs(num=4, count=60)
    ours = truth.again + 0.5
    found = distances(truth, ours)
    moved, modelled = truth.future - truth.state[:, None], ours - truth.state[:, None]
    unit = moved.std()
    wanted = np.mean([energy_distance(x / unit, y / unit) for x, y in zip(moved, modelled, strict=True)])
    assert found["energy"] == pytest.approx(wanted)
    ranked = np.abs(np.sort(moved, axis=1) - np.sort(modelled, axis=1)).mean() / unit
    assert found["emd"] == pytest.approx(ranked)


def test_errors_of_values_are_linear_in_the_futures():
    """Half of the futures wrong is half of the error in every value; the truth itself has none."""
    right, wrong = (part[:, :20] for part in (pairs().future, pairs().again + 1))
    truth = replace(pairs(), future=np.concatenate([right, right], axis=1))
    errors = [
        distances(truth, np.concatenate(halves, axis=1))["value_error"]
        for halves in ((right, right), (right, wrong), (wrong, wrong))
    ]
    assert errors[0] == pytest.approx(0, abs=1e-12) and errors[2] > 0.1
    assert errors[1] == pytest.approx(errors[2] / 2, rel=1e-9)


def gaussian_value(mean, spread, truth):
    """E √2 cos(w·z + b) of each random reward, z ∼ N(mean, spread²) in one dimension, normalised by the truth."""
    centre, unit = truth.future.mean(), truth.future.std()
    w, b = reward_features(1)
    return np.sqrt(2) * np.exp(-((w[0] * spread / unit) ** 2) / 2) * np.cos(w[0] * (mean - centre) / unit + b)


@pytest.mark.parametrize("shape", [(400, 25, 1), (10_000, 1, 1)], ids=["many futures", "single futures"])
@pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (0.2, 1.0), (0.0, 1.5)])
def test_errors_of_values_are_unbiased(shape, mean, spread):
    """Against the closed form of a Gaussian: within 7 standard errors, over pairs or over 40 repetitions."""
    rng, beta, found, wanted = np.random.default_rng(3), 0.9, [], []
    for _ in range(1 if shape[1] > 1 else 40):
        truth = Truth(np.zeros((shape[0], 1)), np.zeros((shape[0], 1)), rng.normal(size=shape))
        found.append(value_errors(truth, rng.normal(mean, spread, shape), beta))
        apart = gaussian_value(mean, spread, truth) - gaussian_value(0.0, 1.0, truth)
        wanted.append((apart**2).mean() / (1 - beta) ** 2)
    found = np.concatenate(found)
    assert abs(found.mean() - np.mean(wanted)) < 7 * found.std() / len(found) ** 0.5


def test_the_floor_of_the_values_is_of_the_second_set():
    truth = pairs()
    both = value_mse(truth, truth.again, 0.9)
    assert both["value_mse"] == both["value_mse_floor"]
    assert set(value_mse(replace(truth, again=None), truth.again, 0.9)) == {"value_mse"}


def test_impossible_samples_are_counted_where_the_environment_can_tell():
    assert impossible(pairs(), pairs().again) == {}
    still = np.zeros((2, 4, 4))
    truth = Truth(still[:, 0], still[:, 0, :2], still, still, possible=PointMass().possible)
    drawn = still.copy()
    drawn[0, :, 0], drawn[1, :3, 1] = [0.5, 1.0, 1.01, np.nan], [-1.2, -1.0, 7.0]
    assert impossible(truth, drawn) == {"impossible": 0.5, "impossible_floor": 0.0}


@pytest.mark.slow
def test_a_simulated_truth_knows_what_is_possible():
    sizes = {"num_pairs": 2, "num_samples": 4}
    truth = true_futures(PointMass(), direction_policies(), 0, 0.5, **sizes)
    assert truth.possible is not None and truth.possible(truth.future).all()
    assert true_futures(Pendulum(), pendulum_policies(), 0, 0.5, **sizes).possible is None


def test_floors_are_of_the_truth_and_likelihoods_per_dimension():
    truth = pairs(num=4, count=20)
    wide = [np.concatenate([part, 2 * part], axis=-1) for part in (truth.state, truth.future, truth.again)]
    truth = Truth(wide[0], np.zeros((4, 2)), *wide[1:])
    near, far = (measure(Near(None), truth, truth.again + shift, key=KEY) for shift in (0.0, 3.0))
    assert near["energy_floor"] == far["energy_floor"] == near["energy"] < far["energy"] - 1
    scores = -stats.norm.logpdf(truth.future, truth.state[:, None]).mean()
    assert near["nll"] == pytest.approx(scores, rel=1e-5), "the mean over futures and over both dimensions"


def test_one_future_per_pair_is_compared_jointly():
    truth = pairs(num=30, count=1)
    cloud = clouds(truth, truth.future)
    assert cloud.shape == (1, 30, 2)
    state_scale, moved_scale = scales(truth)
    np.testing.assert_allclose(cloud[0, :, :1], truth.state / state_scale)
    np.testing.assert_allclose(cloud[0, :, 1:], (truth.future[:, 0] - truth.state) / moved_scale)


def test_moments_of_displacements():
    moved = np.random.default_rng(3).normal(size=(4, 50, 2)) + np.arange(4)[:, None, None] * [1.0, 0.0]
    found = moments(moved)
    flat = moved.reshape(-1, 2)
    np.testing.assert_allclose(found["mean"], flat.mean(axis=0))
    np.testing.assert_allclose(found["spread"], flat.std(axis=0))
    np.testing.assert_allclose(
        found["within"], np.sqrt(np.mean([part.var(axis=0) for part in moved], axis=0))
    )
