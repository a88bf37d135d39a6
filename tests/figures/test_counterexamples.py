"""Ex D.1-D.3: what goes wrong without the conditions of GGPI, and that it goes right with them."""

import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.finite import counterexamples as experiment
from ggpi.lab.finite import counterexamples_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def test_no_markov_policy_has_this_q(metrics):
    result, gamma = metrics["D.1"], metrics["gamma"]
    assert result["q"]["L"] == pytest.approx([0, 0], abs=1e-12)
    assert result["q"]["R"] == pytest.approx([1 + gamma, 0], abs=1e-12)
    assert result["nearest_distance"] == pytest.approx(gamma / 2) == pytest.approx(result["closed_form"])
    assert min(result["distance"]) >= gamma / 2 - 1e-12
    assert min(result["distance"]) < gamma / 2 + 0.05, "the grid comes near the closed form"


@pytest.mark.parametrize("gamma", [0.2, 0.5, 0.99])
def test_the_distance_is_half_gamma_for_every_gamma(gamma):
    result = experiment.non_markov_q(gamma, resolution=21)
    assert result["nearest_distance"] == pytest.approx(gamma / 2)
    assert min(result["distance"]) >= gamma / 2 - 1e-12


def test_greedy_on_a_policy_with_memory_gets_nothing(metrics):
    assert metrics["D.2"]["greedy_action"] == "b"
    for result in [metrics["D.2"], *metrics["D.2 sweep"]]:
        gamma = result["gamma"]
        assert result["q"]["a"] == pytest.approx(1)
        assert result["q"]["b"] == pytest.approx(gamma / (1 - gamma))
        assert result["value"] == pytest.approx(1 / (2 * (1 - gamma)))
        assert result["greedy_value"] == pytest.approx(0 if gamma > 0.5 else 1 / (1 - gamma))


def test_an_open_set_loses_and_its_closure_wins(metrics):
    result = metrics["D.3"]
    assert result["q"]["x0"] == pytest.approx([1, 2]) and result["q"]["x1"] == pytest.approx([-1, 0])
    assert result["value"] == pytest.approx(1)
    assert result["open_value"] == pytest.approx(0) and result["closed_value"] == pytest.approx(2)
    assert result["closed_policy"] == "RLR"
    assert result["closed_set"] == ["L →(1) L →(1) R", "L →(1) R", "R"]
    assert "not suffix-closed" in result["warning"] and "L →(1) R, R" in result["warning"]


def test_table_and_figure_come_from_metrics(metrics):
    assert experiment_figure.table(metrics).row_count == 3
    figure = experiment_figure.plot(metrics)
    assert [ax.get_title()[:3] for ax in figure.axes[:3]] == ["D.1", "D.2", "D.3"]
    words = [text.get_text() for text in figure.axes[5].texts]
    assert "+2" in words and "−1" in words
