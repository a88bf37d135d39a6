"""Ex D.4: two improvement steps by GGPI where policy iteration needs k + 1, if R and α allow."""

import numpy as np
import pytest

from ggpi import envs
from ggpi.lab.cells import as_stored
from ggpi.lab.finite import chain as experiment
from ggpi.lab.finite import chain_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def test_the_papers_table(metrics):
    rows = ["".join(row["actions"]) for row in metrics["rows"]]
    assert rows == ["→→→→→→↑", "↑↑↑↑↑↑→", "↑↑↑↑↑→→", "↑↑↑↑↑→→", "→→→→→→→"]
    for row in metrics["rows"]:
        assert row["optimal"] == [arrow == "→" for arrow in row["actions"]]


def test_steps_until_optimal(metrics):
    assert [row["k"] for row in metrics["sweep"]] == [2, 3, 5]
    for row in metrics["sweep"]:
        assert row["policy_iteration"] == row["k"] + 1
        assert row["ggpi"] == 2


def test_a_small_reward_or_certain_switches_break_it(metrics):
    for row in metrics["sweep"]:
        assert row["right_is_optimal_above"] < row["small_reward"] < row["bound"] < row["large_reward"]
        assert row["ggpi_small_reward"] > 2
        assert row["ggpi_alpha_one"] == row["policy_iteration"]
    assert envs.chain_reward_bound(5, gamma=0.95, alpha=1.0) == np.inf


def test_the_bound_is_sharp(metrics):
    for row in metrics["sweep"]:
        assert row["enough_just_above_bound"] and not row["enough_just_below_bound"]


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("gamma, alpha", [(0.5, 0.1), (0.9, 0.6), (0.99, 0.01)])
def test_the_bound_is_sharp_elsewhere(k, gamma, alpha):
    bound = envs.chain_reward_bound(k, gamma, alpha)
    assert bound >= gamma**-k * (1 - 1e-12), "right is optimal in x₀ from there on"
    for factor, enough in ((1 + 1e-6, True), (1 - 1e-6, False)):
        policy = list(experiment.improved_policies(k, gamma, alpha, bound * factor).values())[-1]
        goes_right = (policy.pi[:-1, 0] == 1).all()
        assert goes_right == enough


def test_short_chains_are_refused():
    with pytest.raises(ValueError, match="k ≥ 2, got k = 1"):
        experiment.Config(k=1)


def test_table_and_figure_come_from_metrics(metrics):
    policies, steps = experiment_figure.table(metrics)
    assert policies.row_count == 5 and steps.row_count == 3
    figure = experiment_figure.plot(metrics)
    lines = {line.get_label().split(":")[0]: list(line.get_ydata()) for line in figure.axes[2].lines}
    assert lines["policy iteration"] == [3, 4, 6] and lines["depth-2 GGPI"] == [2, 2, 2]
