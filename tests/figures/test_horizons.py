"""One network for all horizons at its smallest size: close to one network per horizon, at a third of the numbers."""

import dataclasses

import numpy as np
import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.models import horizons as experiment
from ggpi.lab.models import horizons_figure as experiment_figure
from ggpi.learning.losses import CETD


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


@pytest.mark.slow
def test_all_horizons_are_scored(metrics):
    assert set(metrics["methods"]) == {"one", "consistent", "apart"}
    for found in metrics["methods"].values():
        emd = [each["mean"] for each in found["emd"]]
        assert len(emd) == 3
        print(emd, metrics["truth"]["emd"])
        assert all(one > 0.9 * floor for one, floor in zip(emd, metrics["truth"]["emd"], strict=True))
        assert max(emd) < 2.0, "the shortest horizon, in units of the longest, was at 1.23"


@pytest.mark.slow
def test_one_network_has_fewer_numbers_and_a_similar_emd(metrics):
    one, apart = (metrics["methods"][name] for name in ("one", "apart"))
    assert one["parameters"] < 0.6 * apart["parameters"]
    ratios = [a["mean"] / b["mean"] for a, b in zip(one["emd"], apart["emd"], strict=True)]
    print(ratios)
    assert np.mean(ratios) < 1.5


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    assert [shown.row_count for shown in experiment_figure.table(metrics)] == [4, 3]
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 2
    figure.canvas.draw()


def test_horizons_are_effective_ones():
    assert experiment.PRESETS["cpu"].gammas == pytest.approx([0.8, 0.9, 0.95, 0.98, 0.99, 0.995])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"world": "moon"}, "no environment is called"),
        ({"horizons": (1, 5)}, "horizons ≥ 2"),
        ({"horizons": (10, 5)}, "ascending order"),
        ({"consistency": 0.0}, "a share between 0 and 1"),
        ({"recipe": dataclasses.replace(experiment.CPU, loss=CETD())}, "one that bootstraps"),
    ],
)
def test_bad_config(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(experiment.PRESETS["tiny"], **change)
