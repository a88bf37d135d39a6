"""Scores of learned rewards: of samples that were held out, and in the reward's own units."""

import numpy as np
import pytest

import ggpi
from ggpi.rewards.learned import Regression

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(120, 20))


def fitted(rewards, steps):
    return ggpi.fit_reward(
        STATES,
        None,
        rewards,
        form="state",
        regression=Regression(steps=steps, width=32, batch_size=84, held_out=0.3),
    )


def test_noise_is_learned_by_heart_and_the_score_says_that_it_is_nothing():
    """Eighty samples of twenty numbers can be fitted perfectly; a score on them would be near 1, on new ones it is
    not above 0 by more than chance."""
    found = fitted(RNG.normal(size=120), 400)
    assert found.r2 < 0.3 and found.rmse > 0.5 and found.num_samples == 120


def test_scores_scale_with_the_reward():
    """1000 + 10 r has the R² of r, and ten times its RMSE; predictions are in the units of the samples."""
    rewards = STATES[:, 0] + 0.3 * RNG.normal(size=120)
    one, other = fitted(rewards, 60), fitted(1000 + 10 * rewards, 60)
    assert other.r2 == pytest.approx(one.r2, rel=0.02) and other.rmse == pytest.approx(
        10 * one.rmse, rel=0.02
    )
    assert other.values(STATES[3].astype(np.float32)) == pytest.approx(
        1000 + 10 * float(one.values(STATES[3].astype(np.float32))), abs=0.5
    )
    assert 0.2 < one.r2 < 1
    assert one.r2 == pytest.approx(1 - one.rmse**2 / rewards.var(), abs=0.2)
