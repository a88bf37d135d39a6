"""A student at its smallest size: one pass in place of twenty, close to its teacher."""

import dataclasses

import numpy as np
import pytest

from ggpi.ghm.vae import VAEConfig
from ggpi.lab.cells import as_stored
from ggpi.lab.models import one_pass as experiment
from ggpi.lab.models import one_pass_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.mark.slow
def test_all_samplers_are_scored(metrics):
    rows = {row["name"]: row for row in metrics["worlds"]["point-mass"]["rows"]}
    assert list(rows) == ["1 solver step", "10 solver steps", "student", "VAE"]
    for row in rows.values():
        assert np.shape(row["by_start"]) == (2, 4) and row["rate"] > 0
    print({name: row["energy"]["mean"] for name, row in rows.items()})


@pytest.mark.slow
def test_a_student_is_close_to_its_teacher(metrics):
    """In spreads of the truth; a model that ignores the state is at .5 and more."""
    found = metrics["worlds"]["point-mass"]
    assert abs(found["difference"]["mean"]) < 0.1


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    (shown,) = experiment_figure.table(metrics)
    assert shown.row_count == 4
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 1
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"worlds": ("moon",)}, "no environment is called"),
        ({"solver_steps": (0,)}, "at least 1"),
        (
            {"recipe": dataclasses.replace(experiment.CPU, model=VAEConfig())},
            "a flow-matching model, got VAE",
        ),
    ],
)
def test_bad_config(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(experiment.PRESETS["tiny"], **change)
