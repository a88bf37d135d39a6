"""Fig 8, 9: CETD finds the fixed points, in the interior faster than on the boundary."""

import dataclasses

import numpy as np
import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.finite import cetd_dynamics as experiment
from ggpi.lab.finite import cetd_dynamics_figure as experiment_figure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def metrics():
    """64 runs, so that means can be told apart: the worlds' errors differ by 0.026 ± 0.0025, ten deviations, and
    those of the learners by more.
    """
    return as_stored(experiment.run(dataclasses.replace(experiment.PRESETS["tiny"], num_seeds=64)))


def test_fixed_points_are_fixed(metrics):
    for world in metrics["worlds"]:
        mu, P, gamma = np.array(world["fixed_points"]), np.array(world["P"]), metrics["gamma"]
        np.testing.assert_allclose(mu, (1 - gamma) * P + gamma * P @ mu, atol=1e-12)
        np.testing.assert_allclose(mu.sum(axis=1), 1)
    assert (np.array(metrics["worlds"][1]["fixed_points"])[1:, 0] == 0).all(), "on the boundary"


def test_errors_become_small(metrics):
    for world, limit in zip(metrics["worlds"], (0.07, 0.1), strict=True):
        assert world["cetd"]["error_mean"][0] > 0.5
        assert world["cetd"]["final_error"]["mean"] < limit
        assert world["cemc"]["final_error"]["mean"] < world["cetd"]["final_error"]["mean"]
        assert max(world["cetd"]["final_errors"]) == world["cetd"]["largest_final_error"]


def test_the_boundary_is_slower(metrics):
    interior, boundary = (world["cetd"]["final_error"]["mean"] for world in metrics["worlds"])
    assert interior < boundary


def test_path_leads_from_the_start_to_the_fixed_points(metrics):
    for world in metrics["worlds"]:
        path, steps = np.array(world["cetd"]["path"]), world["cetd"]["steps"]
        assert len(path) == len(steps) and steps[:3] == [0, 10, 20] and steps[-1] == metrics["num_steps"]
        np.testing.assert_allclose(path.sum(axis=-1), 1, atol=1e-4)
        distance = np.abs(path - np.array(world["fixed_points"])).sum(axis=-1).max(axis=-1) / 2
        assert distance[0] > 0.5 and distance[-1] < 0.15  # of one run: 0.06 ± 0.01 over eight seeds


def test_thinning_keeps_the_early_and_the_last():
    assert experiment.thinned(50, 1000).tolist() == list(range(50))
    kept = experiment.thinned(10_001, 3000)
    assert len(kept) < 3000 and kept[-1] == 10_000 and (kept[:300] == np.arange(300)).all()


def test_table_and_figure_come_from_metrics(metrics):
    assert experiment_figure.table(metrics).row_count == 4
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 4
    figure.canvas.draw()
