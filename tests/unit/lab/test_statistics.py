import numpy as np
import pytest

from ggpi.lab.statistics import mean_interval


def test_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.exponential(size=40), resamples=500) for _ in range(300)]
    covered = np.mean([interval["low"] <= 1 <= interval["high"] for interval in intervals])
    assert 0.88 < covered < 0.98


def test_same_values_same_interval():
    assert mean_interval([1, 5, 2]) == mean_interval([1, 5, 2])
    assert mean_interval([3.0]) == {"mean": 3.0, "low": 3.0, "high": 3.0}


@pytest.mark.parametrize("values", [[], [[1.0]]])
def test_nothing_to_average(values):
    with pytest.raises(ValueError, match="at least one number"):
        mean_interval(values)
