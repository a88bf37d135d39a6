"""TD-Flow's Table 1 at its smallest size: with one step, TD² is far ahead of TD-CFM.

Bounds on what short trainings reach are at least six standard deviations away, over eight seeds."""

import dataclasses

import numpy as np
import pytest

from ggpi.ghm.diffusion import DiffusionConfig
from ggpi.lab.cells import as_stored
from ggpi.lab.models import td_flows as experiment
from ggpi.lab.models import td_flows_figure as experiment_figure
from ggpi.lab.models import td_flows_scores
from ggpi.learning.losses import CETD


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.fixture(scope="module")
def runs(metrics):
    (problem,) = metrics["problems"]
    return {(run["loss"], run["n_step"]): run for run in problem["runs"]}


@pytest.mark.slow
def test_all_are_scored_along_training(metrics, runs):
    assert set(runs) == {
        ("mc-cfm", 0),
        *((loss, n) for loss in ("vae", "td-cfm", "td2-cfm") for n in (1, 10)),
    }
    floor = metrics["problems"][0]["truth"]["emd"]
    for run in runs.values():
        assert run["step"] == [0, 250, 500, 750] and run["stopped"] is None
        assert np.shape(run["emd"]) == np.shape(run["value_mse"]) == (4, 2)
        assert np.shape(run["by_start"]["emd"]) == (2, 4)
        assert run["final"]["emd"]["mean"] == pytest.approx(np.mean(run["by_start"]["emd"]))
        assert set(run["final"]) == {"emd", "value_mse", "nll", "impossible"}
        assert run["final"]["emd"]["mean"] > floor
        if run["loss"] != "vae":  # whose first samples are not so far away
            assert run["final"]["emd"]["mean"] < np.mean(run["emd"][0])


@pytest.mark.slow
def test_one_step_td2_is_ahead_of_one_step_td(metrics):
    (problem,) = metrics["problems"]
    compared = {
        (found["row"]["n_step"], found["other"]["loss"]): found
        for found in problem["compared"]
        if found["row"]["loss"] == "td2-cfm"
    }
    assert set(compared) == {(1, "vae"), (1, "td-cfm"), (10, "vae"), (10, "td-cfm")}
    found = compared[1, "td-cfm"]["emd"]
    assert found["mean"] < 0 and found["ratio"] > 1


@pytest.mark.slow
def test_more_recorded_steps_help_td_cfm(runs):
    assert runs["td-cfm", 10]["final"]["emd"]["mean"] < runs["td-cfm", 1]["final"]["emd"]["mean"]


@pytest.mark.slow
def test_samples_by_solver_steps_are_of_the_finished_models(runs):
    for (loss, _), run in runs.items():
        assert set(run["solver"]) == (set() if loss == "vae" else {"1", "10"})
        if run["solver"]:
            assert run["solver"]["10"]["emd"] == run["final"]["emd"], "the model's own number of steps"


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    assert [shown.row_count for shown in experiment_figure.table(metrics)] == [8, 4, 5]
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 4
    figure.canvas.draw()


def test_rows_of_the_full_table():
    rows = experiment.methods(experiment.PRESETS["cpu"])
    assert len(rows) == 2 * 5 + 1 + 2
    assert [row for row in rows if row.loss == "mc-cfm"] == [("mc-cfm", 0, "straight")]
    assert rows[-2:] == [("td-cfm-c", 1, "curved"), ("td2-cfm", 1, "curved")]


def test_recipes_differ_in_model_and_loss_only():
    config, world = experiment.PRESETS["cpu"], experiment.benchmark("point-mass")
    for row in (("vae", 50, "straight"), ("td2-dd", 1, "straight"), ("td2-cfm", 1, "curved")):
        recipe = experiment.recipe_of(config, world, experiment.Method(*row))
        assert (
            dataclasses.replace(recipe, model=config.recipe.model, loss=config.recipe.loss) == config.recipe
        )
        assert recipe.loss.n_step == row[1] and recipe.model.width == 128 and recipe.model.predict == "change"
        assert recipe.loss.ema_decay == 0.95
        if row[0] == "vae":
            assert isinstance(recipe.loss, CETD)
        elif row[0] == "td2-dd":
            assert isinstance(recipe.model, DiffusionConfig)
        else:
            assert recipe.model.path == "curved"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"worlds": ("moon",)}, "no environment is called"),
        ({"every": 100}, "multiple of 250"),
        ({"losses": ("gan",)}, "losses are among"),
        ({"n_steps": (0,)}, "at least 1"),
        ({"gammas": (1.0,)}, "between 0 and 1"),
        ({"solver_steps": (10, 0)}, "solver_steps: at least 1"),
    ],
)
def test_bad_config(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(experiment.PRESETS["tiny"], **change)


def test_recorded_futures_that_an_environment_is_too_short_for(monkeypatch):
    """Said before anything is trained."""
    short = dataclasses.replace(experiment.benchmark("point-mass"), longest=40)
    monkeypatch.setattr(td_flows_scores, "benchmark", lambda name: short)
    with pytest.raises(
        ValueError, match=r"mc-cfm needs trajectories of 66 steps at γ = 0.9, but .* at most 40"
    ):
        experiment.run(experiment.PRESETS["tiny"], cells=pytest.fail)
