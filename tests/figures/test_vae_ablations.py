"""The appendix's light search: a heavy KL term silences the latent and costs likelihood."""

import dataclasses

import pytest

from ggpi.ghm.vae import VAEConfig
from ggpi.lab.cells import as_stored
from ggpi.lab.models import ablations as experiment
from ggpi.lab.models import ablations_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.mark.slow
def test_the_default_weight_works_and_a_heavy_one_silences_the_latent(metrics):
    default, heavy = metrics["runs"]
    assert default["kl"]["mean"] > 3 * heavy["kl"]["mean"]
    assert default["negative_elbo"]["mean"] < heavy["negative_elbo"]["mean"]


def test_one_setting_at_a_time():
    default = dataclasses.asdict(experiment.DEFAULT)
    for name, setting in experiment.SETTINGS.items():
        changed = [field for field, value in dataclasses.asdict(setting).items() if value != default[field]]
        assert len(changed) == {"default": 0, "paper": 4}.get(name, 2 if name.startswith("one-step-") else 1)
    texts = [experiment_figure.describe(name) for name in experiment.SETTINGS]
    assert len(set(texts)) == len(texts)


def test_the_default_here_is_the_librarys():
    ours = experiment.DEFAULT
    assert VAEConfig() == VAEConfig(latent=ours.latent, kl_weight=ours.kl_weight, predict=ours.predict)


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    assert [shown.row_count for shown in experiment_figure.table(metrics)] == [2]
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 3
    figure.canvas.draw()


def test_bad_config():
    with pytest.raises(ValueError, match="settings are default, "):
        experiment.Config(settings=("kl-7",))
