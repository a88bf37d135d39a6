"""The closed loop in mazes at its smallest size."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")

from ggpi.lab.maze import closed_loop, closed_loop_figure, scores
from ggpi.lab.maze.closed_loop_models import ALPHA, GAMMA


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.slow
def test_run_has_every_number():
    config = closed_loop.PRESETS["tiny"]
    metrics = closed_loop.run(config)
    assert metrics["turns"] == (0, 1, 2)
    assert set(metrics["success"]) == set(metrics["milliseconds"])
    assert {"closed loop", "closed loop, true", "recorded steps", "random switching", "guide"} <= set(
        metrics["success"]
    )
    assert len(metrics["graphs"]) == 1 and 0 <= metrics["graphs"][0]["in_walls"] <= 1
    assert metrics["graphs"][0]["excess_stderr"] > 0
    assert np.shape(metrics["picture"]["values"]) == (config.num_landmarks,)
    assert len(closed_loop_figure.table(metrics)) == 2
    assert len(closed_loop_figure.plot(metrics).axes) == 2


def test_two_successes_of_two_do_not_prove_a_share_of_100_percent():
    """By the exact interval at the level .9, its lower end is the root of p² = .05."""
    found = scores.by_turns((0, 3), [{"steps": [4, 0, 7, 0]}])
    assert found["0"]["low"] == pytest.approx(0.05**0.5) and found["0"]["high"] == 1
    assert found["3"]["high"] == pytest.approx(1 - 0.05**0.5) and found["3"]["low"] == 0


def test_eight_policies_go_eight_ways():
    ways = np.array([policy.mode(np.zeros(4)) for policy in closed_loop.policies()])
    angles = np.sort(np.arctan2(ways[:, 1], ways[:, 0]))
    np.testing.assert_allclose(np.diff(angles), np.pi / 4, atol=1e-5)


def test_the_snake_has_targets_behind_up_to_eight_turns():
    config = replace(closed_loop.PRESETS["tiny"], maze="Snake")
    assert closed_loop.turns_of(config) == tuple(range(9))


def test_shipped_models_need_no_training():
    config = replace(closed_loop.PRESETS["tiny"], training_steps=0, maze="Medium", first_model=1)
    training = closed_loop.training_of(config, 1)
    assert training.recipe is None and training.seed == 2
    ghms = closed_loop.models(training)
    assert (len(ghms.policies), ghms.gamma, ghms.alphas) == (4, GAMMA, (ALPHA,))
    with pytest.raises(ValueError, match="shipped models are of Medium, got UMaze"):
        closed_loop.models(replace(training, maze="UMaze"))
