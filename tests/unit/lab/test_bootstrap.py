from math import comb

import numpy as np
import pytest

from ggpi.lab.bootstrap import mean_interval, paired_difference, share_interval


def test_interval_covers_the_mean_about_as_often_as_it_says():
    """About 92% of the time for so few and skew numbers; by Bernstein 1000 intervals stray by 6% once in 1e8."""
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.exponential(size=40), resamples=500) for _ in range(1000)]
    covered = np.mean([interval["low"] <= 1 <= interval["high"] for interval in intervals])
    assert 0.86 < covered < 0.99


def test_same_values_same_interval():
    assert mean_interval([1, 5, 2]) == mean_interval([1, 5, 2])
    assert mean_interval([3.0]) == {"mean": 3.0, "low": 3.0, "high": 3.0}


@pytest.mark.parametrize("values", [[], [[1.0]]])
def test_nothing_to_average(values):
    with pytest.raises(ValueError, match="at least one number"):
        mean_interval(values)


@pytest.mark.parametrize(("reached", "n"), [(0, 2), (2, 2), (1, 3), (10, 10), (37, 60), (59, 60)])
def test_an_exact_interval_leaves_a_twentieth_to_either_side(reached, n):
    """At its ends, so many successes or more, and so many or fewer, have the probability .05 (Clopper and Pearson)."""

    def at_least(k, p):
        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))

    found = share_interval([True] * reached + [False] * (n - reached), level=0.9)
    assert found["mean"] == reached / n
    assert found["low"] == 0 if reached == 0 else at_least(reached, found["low"]) == pytest.approx(0.05)
    assert (
        found["high"] == 1
        if reached == n
        else 1 - at_least(reached + 1, found["high"]) == pytest.approx(0.05)
    )


def test_a_share_is_of_something():
    with pytest.raises(ValueError, match="at least one episode"):
        share_interval([])


def test_paired_differences_leave_out_what_both_have_in_common():
    """Starts differ by far more than the methods; the interval of the difference does not see that."""
    rng = np.random.default_rng(1)
    starts, noise = 10 * rng.exponential(size=16), 0.01 * rng.normal(size=(2, 3, 16))
    found = paired_difference(starts + noise[0], starts + 0.5 + noise[1])
    assert found["mean"] == pytest.approx(-0.5, abs=0.02)
    assert -0.53 < found["low"] < found["mean"] < found["high"] < -0.47
    assert found["ratio"] == pytest.approx((starts.mean() + 0.5) / starts.mean(), rel=0.01)


def test_a_seed_that_is_off_widens_the_interval_however_many_starts_there_are():
    """All starts of a seed share its model: of three seeds, one at −3 is drawn three times with probability 1/27."""
    apart = np.zeros((3, 1000)) + np.array([[0.0], [0.0], [-3.0]])
    found = paired_difference(apart, np.zeros_like(apart))
    assert (found["mean"], found["low"], found["high"], found["ratio"]) == (-1, -3, 0, None)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3, 2)), ((0, 2), (0, 2))])
def test_pairs_that_do_not_match(shapes):
    with pytest.raises(ValueError, match="of one shape"):
        paired_difference(*map(np.zeros, shapes))
