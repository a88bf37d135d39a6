"""The ant's base policies at tiny size: shipped weights walk, and everything of the figure is there."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

import ggpi
from ggpi.lab.ant import base_policies as experiment
from ggpi.lab.ant import base_policies_figure as experiment_figure
from ggpi.storage.pretrained import names, provenance


@pytest.fixture(scope="module")
def metrics():
    from ggpi.lab.cells import as_stored

    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def test_shipped_policies_are_four_with_names_and_a_history():
    policies = ggpi.pretrained("ant-policies")
    assert [policy.name for policy in policies] == ["right", "up", "left", "down"]
    about = provenance("ant-policies")
    assert about["command"].startswith("ggpi pretrain ant") and about["versions"]["mujoco"] == "4.0.0"
    assert len(about["curve"]["along"]) == about["config"]["rounds"]


def test_unknown_names_list_those_that_exist():
    with pytest.raises(ValueError, match=r"'ant-polices'.*available: ant-ghms, ant-policies"):
        ggpi.pretrained("ant-polices")
    assert "ant-policies" in names()


@pytest.mark.slow
def test_they_walk_where_they_should(metrics):
    """A weaker form of the bar of 0.21 units per step: few and short episodes."""
    shipped = metrics["shipped"]
    assert min(shipped["speed"]) > 0.12 and max(shipped["drift"]) < 0.1
    after = np.mean(shipped["after_switch"], axis=0)
    assert after[0] < after[11:20].mean() and 0.4 * np.mean(shipped["speed"]) < after[11:20].mean()


@pytest.mark.slow
def test_the_untrained_ablation_does_not_walk(metrics):
    assert abs(np.mean(metrics["ablation/switched"]["speed"])) < 0.1


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    bar, ablation = experiment_figure.table(metrics)
    assert bar.row_count == 4 and ablation.row_count == 2
    assert len(experiment_figure.plot(metrics).axes) == 6
