"""The appendix's light search: a heavy KL term silences the latent and costs likelihood."""

import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.models import ablations as experiment
from ggpi.lab.models import ablations_figure as experiment_figure
from ggpi.learning.recipe import CPU


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.mark.slow
def test_the_default_weight_works_and_a_heavy_one_silences_the_latent(metrics):
    default, heavy = metrics["runs"]
    assert default["kl"]["mean"] > 3 * heavy["kl"]["mean"]
    assert default["negative_elbo"]["mean"] < heavy["negative_elbo"]["mean"]


def test_one_setting_at_a_time():
    recipe = experiment.RECIPE
    for name, (_, change) in experiment.SETTINGS.items():
        expected = {"default": 0, "paper": 4}.get(name, 2 if name.startswith("one-step-") else 1)
        assert len(_differences(recipe, change(recipe))) == expected, name
    texts = [words for words, _ in experiment.SETTINGS.values()]
    assert len(set(texts)) == len(texts)


def _differences(ours, other):
    """The settings of the recipe, its model and its loss in which two recipes differ."""
    flat = [
        {
            (part, name): value
            for part in ("model", "loss")
            for name, value in vars(getattr(recipe, part)).items()
        }
        | {name: value for name, value in vars(recipe).items() if name not in ("model", "loss")}
        for recipe in (ours, other)
    ]
    return [name for name in flat[0] if flat[0][name] != flat[1][name]]


def test_the_default_here_is_the_librarys():
    assert (experiment.RECIPE.model, experiment.RECIPE.loss) == (CPU.model, CPU.loss)


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    assert [shown.row_count for shown in experiment_figure.table(metrics)] == [2]
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 3
    figure.canvas.draw()


def test_bad_config():
    with pytest.raises(ValueError, match="settings are default, "):
        experiment.Config(settings=("kl-7",))
