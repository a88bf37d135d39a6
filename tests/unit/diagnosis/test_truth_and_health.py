"""Recorded futures row by row, and the checks of health on models whose answers are known."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from scipy.spatial.distance import cdist

from ggpi.data import Transitions
from ggpi.diagnosis import Truth, recorded_futures
from ggpi.diagnosis.health import (
    action_sensitivity,
    distance_correlation,
    horizon_consistency,
    off_data,
)
from ggpi.diagnosis.samples import draw
from ggpi.diagnosis.truth import other_actions, scales
from truths import pairs

KEY = jax.random.key(0)


def turns(terminated=False):
    """Sixty episodes of twelve rows; row i leads from 10 i to 10 i + 1; policies 0 and 1 take turns of four."""
    episode, step = (part.ravel() for part in np.indices((60, 12)))
    state = 10.0 * np.arange(720)[:, None]
    last = step == 11
    return Transitions(
        state, 0 * state, state + 1, last & terminated, last & (not terminated), step // 4 % 2, episode, step
    )


@pytest.mark.parametrize("policy", [0, 1])
def test_futures_are_rows_that_the_policy_took(policy):
    """From a row of any policy: its own step, then those that `policy` took without a break."""
    data = turns()
    truth = recorded_futures(data, policy, 0.9, 2000)
    rows = (truth.state[:, 0] / 10).astype(int)
    for future in (truth.future, truth.again):
        ends = ((future[:, 0, 0] - 1) / 10).astype(int)
        assert (ends >= rows).all() and (ends > rows).any()
        for row, end in set(zip(rows, ends, strict=True)):
            assert data.episode[row] == data.episode[end]
            assert (data.behaviour[row + 1 : end + 1] == policy).all()
    assert truth.left_out > 0


def test_futures_at_beta_zero_are_next_states():
    truth = recorded_futures(turns(), 1, 0.0, 300)
    np.testing.assert_array_equal(truth.future[:, 0], truth.state + 1)
    assert truth.left_out == 0 and len(np.unique(truth.state)) > 100


def test_times_of_futures_are_geometric():
    """Long records of one policy: P(T > t) = βᵗ. Each share of 4000 is off by 0.06 with probability 2 e⁻²⁸."""
    data = turns()
    alone = replace(data, behaviour=0 * data.behaviour, episode=0 * data.episode, step=np.arange(720))
    alone = replace(alone, truncated=np.arange(720) == 719)
    truth = recorded_futures(alone, 0, 0.5, 4000)
    for future in (truth.future, truth.again):
        times = (future[:, 0, 0] - truth.state[:, 0] - 1) / 10 + 1
        assert times.min() == 1
        for t in (1, 2, 3):
            assert abs((times > t).mean() - 0.5**t) < 0.06
    assert (truth.future != truth.again).any(), "the second set is drawn anew"


def test_a_terminated_episode_stays_at_its_end():
    """Nothing is left out: whatever T is, the future is known. The end comes in a turn of policy 0."""
    truth = recorded_futures(turns(terminated=True), 0, 0.99, 1000)
    rows = (truth.state[:, 0] / 10).astype(int)
    assert truth.left_out == 0 and set(rows % 12) <= {7, 8, 9, 10, 11}
    assert ((truth.future[:, 0, 0] - 1) / 10 % 12 == 11).mean() > 0.9


class Walk(eqx.Module):
    """x + a, exactly, or with noise."""

    factor: Any
    noise: float = 0.0

    def sample(self, state, action, *, key):
        return state + self.factor * action + self.noise * jax.random.normal(key, state.shape)


class Always(eqx.Module):
    action: jax.Array
    name: str = "always"

    def sample(self, state, *, key):
        return self.action

    def mode(self, state):
        return self.action


@pytest.mark.parametrize(("gamma", "beta"), [(0.9, 0.5), (0.6, 0.5)])
def test_horizons_are_mixed_by_their_weights(gamma, beta):
    """Both models go from x to x + a, the policy's action is 1: μ_γ says x + 5, and together they say x + 5 with
    probability p = (1−γ)/(1−β), else x + 6. The energy distance of these is 2 (1−p)².

    Of 2400 draws the share p is off by more than 0.08 with probability below 2 e⁻³⁰.
    """
    model, p = Walk(1.0), (1 - gamma) / (1 - beta)
    found = horizon_consistency(model, model, Always(jnp.ones(1)), beta, gamma, pairs(), key=KEY)
    assert found["consistency"] == pytest.approx(2 * (1 - p) ** 2, abs=0.33 * (1 - p))


def test_the_near_model_goes_first():
    """x + 5·2 from the near model, then x + 10 + 1·3 from the far one; directly x + 5·3."""
    found = horizon_consistency(Walk(2.0), Walk(3.0), Always(jnp.ones(1)), 0.5, 1 - 1e-9, pairs(), key=KEY)
    assert found["consistency"] == pytest.approx(2 * (15 - 13), rel=1e-4)


def test_another_action_is_that_of_the_pair_before_or_the_next_of_a_finite_number():
    np.testing.assert_array_equal(other_actions(np.array([[0.0], [1.0], [5.0]])), [[5.0], [0.0], [1.0]])
    np.testing.assert_array_equal(other_actions(np.array([0, 1, 2]), Discrete(4)), [1, 2, 3])
    np.testing.assert_array_equal(other_actions(np.array([0, 3, 2])), [1, 0, 3])
    np.testing.assert_array_equal(other_actions(np.array([0, 0])), [1, 1])


def two_actions(true_factor=-1.0, num=3, count=4):
    """Pairs whose futures x + 3 ε move by `true_factor` (a′ − a) with the other action."""
    truth = pairs(num, count)
    action = np.array([[0.0], [1.0], [5.0]])
    moved = 3 * (truth.future - truth.state[:, None])
    other = other_actions(action)
    after = truth.state[:, None] + moved + true_factor * (other - action)[:, None]
    return replace(truth, action=action, future=truth.state[:, None] + moved, other=other, other_future=after)


def test_sensitivity_is_the_energy_distance_between_two_actions():
    """Samples x + a are apart by 2 |a − a′| in energy, in units of the truth's spread."""
    truth = replace(two_actions(), again=np.zeros((3, 4, 1)), other_future=np.ones((3, 4, 1)))
    _, scale = scales(truth)
    assert scale[0] == pytest.approx(3)
    found = action_sensitivity(Walk(1.0), truth, key=KEY)
    assert found["action_sensitivity"] == pytest.approx(np.mean([2 * 5, 2 * 1, 2 * 4]) / 3, rel=1e-5)
    assert found["action_sensitivity_true"] == pytest.approx(2 / 3, rel=1e-5)


@pytest.mark.parametrize("factor", [-1.0, 0.0, 0.5, 2.0])
def test_response_is_the_models_shift_along_the_true_one(factor):
    """Both actions have the same noise, so the shifts are exact, however noisy the samples are."""
    found = action_sensitivity(Walk(factor, noise=10.0), two_actions(true_factor=2.0), key=KEY)
    assert found["action_response"] == pytest.approx(factor / 2, abs=1e-4)
    assert found["action_response_floor"] == pytest.approx(1)
    assert found["action_shift_true"] == pytest.approx(2 * np.sqrt((25 + 1 + 16) / 3) / 3)
    assert found["action_shift"] == pytest.approx(abs(factor) * np.sqrt((25 + 1 + 16) / 3) / 3, abs=1e-4)


def test_a_shift_that_is_lost_in_noise_is_not_judged():
    """One half of the true futures says +3, the other −2.8."""
    truth = two_actions(true_factor=0.0)
    moved = np.where(np.arange(4) < 2, 3.0, -2.8)[:, None]
    noisy = replace(truth, other_future=truth.other_future + moved)
    assert "action_response" not in action_sensitivity(Walk(1.0), noisy, key=KEY)


def test_samples_off_the_data():
    """States lie on a line. True futures do too, up to 0.01; half of the samples are 1 beside it."""
    rng = np.random.default_rng(0)
    visited = np.stack([rng.uniform(-3, 3, 4000), np.zeros(4000)], axis=1)
    future, again = (
        np.stack([rng.uniform(-2, 2, (4, 100)), 0.01 * rng.uniform(-1, 1, (4, 100))], -1) for _ in range(2)
    )
    truth = Truth(np.zeros((4, 2)), np.zeros((4, 1)), future, again, visited=visited)
    beside = future + np.where(np.arange(100) % 2, 0.0, 1.0)[:, None] * [0.0, 1.0]
    found = off_data(truth, beside)
    assert found["off_data"] == pytest.approx(0.505, abs=0.0051)
    assert found["off_data_floor"] < 0.1
    assert off_data(replace(truth, visited=None), beside) == {}


def test_draws_are_in_the_order_of_pairs_and_independent():
    drawn = draw(Walk(0.0, 1.0), np.array([[0.0], [100.0]]), np.zeros((2, 1)), 50, key=KEY)
    assert drawn.shape == (2, 50, 1) and (drawn[1] > 50).all() and (drawn[0] < 50).all()
    assert len(np.unique(drawn - np.array([[[0.0]], [[100.0]]]))) > 90


def test_distance_correlation_by_its_definition():
    """Székely and Rizzo's U-centred distances, with loops; 1 for a shifted copy."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=(12, 1))
    y = y + x[:, :1]

    def centred(z):
        d, n = cdist(z, z), len(z)
        result = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if i != j:
                    result[i, j] = d[i, j] - d[i].sum() / (n - 2) - d[:, j].sum() / (n - 2)
                    result[i, j] += d.sum() / ((n - 1) * (n - 2))
        return result

    a, b = centred(x), centred(y)
    wanted = (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())
    assert distance_correlation(x, y) == pytest.approx(wanted, rel=1e-9)
    assert distance_correlation(x, 3 * x + 7) == pytest.approx(1)
