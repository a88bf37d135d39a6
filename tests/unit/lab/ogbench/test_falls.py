"""Shares of ants on their backs, and of those that get up."""

import numpy as np
import pytest

pytest.importorskip("ogbench")

from ggpi.lab.ogbench.falls import Config, _shares, looks_of


def test_ants_that_get_up_are_counted_between_looks():
    down = np.array([[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 0, 0]], bool)
    found = _shares(down)
    assert [share["count"] for share in found["down"]] == [2, 2, 0]
    assert found["got_up"]["mean"] == 0.75 and found["got_up"]["low"] < 0.3 < 0.9 < found["got_up"]["high"]
    assert _shares(np.zeros((2, 5), bool))["got_up"] is None


def test_the_last_look_is_after_all_steps():
    assert looks_of(Config()) == [250, 500, 750, 1_000]


@pytest.mark.parametrize("wrong", [{"maze": "pointmaze-giant"}, {"looks": 0}, {"num_ants": 0}])
def test_wrong_configs_raise(wrong):
    with pytest.raises(ValueError):
        Config(**wrong)
