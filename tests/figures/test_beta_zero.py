"""Fig 14: with β > 0 as many draws cover more steps; the ends are samples of the composed model."""

import numpy as np
import pytest

from chance import error_of_mean
from ggpi.lab.cells import as_stored
from ggpi.lab.finite import beta_zero as experiment
from ggpi.lab.finite import beta_zero_figure as experiment_figure

NUM_SAMPLES = experiment.PRESETS["tiny"].num_samples
GRID = np.array([experiment.Config.height, experiment.Config.width])


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def test_panels(metrics):
    assert [(panel["beta"], panel["n"]) for panel in metrics["panels"]] == [
        *((0, n) for n in (1, 2, 3)),
        *((pytest.approx(0.8), n) for n in (1, 2, 3)),
    ]


def test_steps_are_as_many_as_expected(metrics):
    expected = [panel["expected_steps"] for panel in metrics["panels"]]
    assert expected == pytest.approx([10, 11, 12, 10, 15, 20])
    for panel in metrics["panels"]:
        variance = 90 + (panel["n"] - 1) * panel["beta"] / (1 - panel["beta"]) ** 2
        bound = error_of_mean(variance**0.5, NUM_SAMPLES, width=1.5 * 10, comparisons=6)
        assert abs(panel["mean_steps"] - panel["expected_steps"]) < bound < 2
        assert panel["steps_stderr"] == pytest.approx((variance / NUM_SAMPLES) ** 0.5, rel=0.3)


def test_ends_have_the_mean_of_the_composed_model(metrics):
    for panel in metrics["panels"]:
        error = np.abs(np.subtract(panel["mean_end"], panel["exact_mean_end"]))
        deviation = np.array(panel["end_stderr"]) * NUM_SAMPLES**0.5
        assert (error < error_of_mean(deviation, NUM_SAMPLES, GRID, comparisons=12)).all()


def test_one_model_does_not_depend_on_beta(metrics):
    with_zero, with_more = metrics["panels"][0], metrics["panels"][3]
    assert with_zero["chains"] == with_more["chains"]
    assert with_zero["exact_mean_end"] == pytest.approx(with_more["exact_mean_end"])


def test_chains_are_walks_between_observed_states(metrics):
    for panel in metrics["panels"]:
        for chain in panel["chains"]:
            path, observed = np.array(chain["path"]), chain["observed"]
            assert (np.abs(np.diff(path, axis=0)).sum(axis=1) <= 1).all()
            assert observed[0] == 0 and observed[-1] == len(path) - 1
            assert len(observed) == panel["n"] + 1 == len(chain["actions"]) + 1
            if panel["beta"] == 0:
                assert observed[:-1] == list(range(panel["n"])), "one step at a time"


def test_more_models_than_policies_are_refused():
    with pytest.raises(ValueError, match="between 1 and 3"):
        experiment.Config(lengths=(4,))


def test_table_and_figure_come_from_metrics(metrics):
    assert experiment_figure.table(metrics).row_count == 6
    titles = [ax.get_title() for ax in experiment_figure.plot(metrics).axes]
    assert len(titles) == 6 and titles[5].startswith("(f) β = 0.8, n = 3: right → up → right")
