"""Fig 5 right, Fig 18: every loss that the model allows teaches it something; CETD of a VAE ends near CEMC."""

import dataclasses

import numpy as np
import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.models import losses as experiment
from ggpi.lab.models import losses_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.mark.slow
def test_all_six_are_scored_along_training(metrics):
    assert len(metrics["runs"]) == 6
    for run in metrics["runs"]:
        assert run["step"] == [0, 250, 500, 750] and run["stopped"] is None
        assert np.shape(run["nll"]) == np.shape(run["energy"]) == (4, 1)
        assert ("negative_elbo" in run) == (run["model"] == "vae")


@pytest.mark.slow
def test_cross_entropies_bring_models_near_the_truth(metrics):
    for run in metrics["runs"]:
        if run["loss"] != "ll2td":
            assert run["energy"][-1][0] < 0.7 * run["energy"][0][0]
            assert run["nll"][-1] < run["nll"][0]


@pytest.mark.slow
def test_cetd_of_a_vae_gains_nearly_what_cemc_gains_as_in_fig_5(metrics):
    cemc, cetd, n_step = (
        run["negative_elbo"][0][0] - run["negative_elbo"][-1][0] for run in metrics["runs"][:3]
    )
    assert min(cetd, n_step) > 0.5 * cemc > 0


@pytest.mark.slow
def test_the_importance_weighted_bound_is_the_tighter_one(metrics):
    """Up to noise: short trainings hardly use the latent variable, so that both are nearly the same number."""
    for run in metrics["runs"][:3]:
        assert run["final"]["nll"]["mean"] < run["final"]["negative_elbo"]["mean"] + 0.2


@pytest.mark.slow
def test_ll2td_is_the_worst_loss_of_a_flow_as_in_fig_18(metrics):
    cemc, cetd, ll2td = (run["final"]["energy"]["mean"] for run in metrics["runs"][3:])
    assert ll2td > max(cemc, cetd)


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    assert [shown.row_count for shown in experiment_figure.table(metrics)] == [6]
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 3
    figure.canvas.draw()


def test_bad_config():
    with pytest.raises(ValueError, match="no environment is called"):
        experiment.Config(worlds=("moon",))
    with pytest.raises(ValueError, match="multiple of 250"):
        dataclasses.replace(experiment.PRESETS["tiny"], every=100)
