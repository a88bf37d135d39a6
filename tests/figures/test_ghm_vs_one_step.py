"""Fig 17: unrolled, a one-step model is better near by and drifts off; a GHM errs about alike at all horizons."""

import dataclasses

import numpy as np
import pytest

from ggpi.diagnosis.distances import nearest
from ggpi.lab.cells import as_stored
from ggpi.lab.models import one_step as experiment
from ggpi.lab.models import one_step_figure as experiment_figure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def curve(metrics, kind):
    return [point and point["mean"] for point in metrics["worlds"][0][kind]["by_horizon"]]


@pytest.mark.slow
def test_one_step_models_are_better_near_by(metrics):
    assert curve(metrics, "one-step")[0] < curve(metrics, "ghm")[0]


def test_errors_of_the_unrolled_model_grow_with_the_horizon_and_those_of_a_ghm_hardly(metrics):
    world = metrics["worlds"][0]
    steps = [point["mean"] for point in world["one-step"]["by_steps"]]
    grown, ghm = steps[-1] / steps[0], curve(metrics, "ghm")[-1] / curve(metrics, "ghm")[0]
    assert grown > ghm and grown > 1.5


def test_models_are_farther_from_simulated_states_than_the_truth_is(metrics):
    world = metrics["worlds"][0]
    for kind in ("ghm", "one-step"):
        assert world[kind]["error"]["mean"] > world["truth"]["error"]["mean"]
    assert abs(world["truth"]["energy"]["mean"]) < 0.1


def test_nearest_states_have_a_distance_and_a_time():
    paths = np.zeros((1, 2, 3, 2))
    paths[0, 0, :, 0] = [1, 2, 3]
    paths[0, 1, :, 1] = [1, 2, 3]
    errors, times = nearest(np.array([[[2.5, 0.0], [0.0, 1.2], [3.0, 4.0]]]), paths)
    np.testing.assert_allclose(errors, [[0.5, 0.2, 10**0.5]])
    assert times[0, 1] == 1 and times[0, 0] in (2, 3) and times[0, 2] == 3


def test_horizons_are_sorted():
    errors, horizons = np.arange(12.0), np.array([1] * 5 + [4, 4, 5, 5, 5] + [60, 2])
    assert experiment.by_horizon(errors, horizons) == [2.0, None, None, 7.0, None, None, None, None, None]


def test_table_and_figure_come_from_metrics(metrics):
    assert experiment_figure.table(metrics).row_count == 3
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 2
    figure.canvas.draw()


def test_bad_config():
    with pytest.raises(ValueError, match="multiple of together"):
        dataclasses.replace(experiment.PRESETS["tiny"], num_seeds=3, together=2)
