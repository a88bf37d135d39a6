"""Policy iteration in a maze: networks choose directions, and a run has every number."""

import jax
import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")

from ggpi.lab.iteration import maze_policy_iteration as experiment
from ggpi.lab.iteration import maze_policy_iteration_figure as experiment_figure
from ggpi.lab.iteration.maze_policies import directions, fitted
from ggpi.lab.maze import tasks as maze

STATES = np.random.default_rng(0).uniform(-1, 1, (200, 4)).astype(np.float32)
BEST = (STATES[:, 0] > 0) + 2 * (STATES[:, 1] > 0)


@pytest.fixture(scope="module")
def policy():
    return fitted(STATES, BEST, 400, maze.SPEED, key=jax.random.key(0))


def test_a_fitted_policy_acts_as_the_direction_that_it_was_taught(policy):
    taken = directions([*maze.policies(), policy], np.full(200, 4), STATES)
    assert (taken == BEST).mean() > 0.95
    modes = np.stack([way.mode(STATES) for way in maze.policies()])
    np.testing.assert_allclose(policy.mode(STATES), modes[taken, np.arange(200)], atol=1e-5)


def test_directions_choose_themselves(policy):
    chosen = np.arange(200) % 4
    np.testing.assert_array_equal(directions([*maze.policies(), policy], chosen, STATES), chosen)


@pytest.mark.slow
def test_run_has_every_number():
    metrics = experiment.run(experiment.PRESETS["tiny"])
    (points,) = metrics["returns"].values()
    assert len(points) == 2 and all(point["mean"] >= 0 for point in points)
    assert experiment_figure.table(metrics)[0].row_count == 1
    assert len(experiment_figure.plot(metrics).axes) == 1


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="methods are of"):
        experiment.Config(methods=("depth-3",))
