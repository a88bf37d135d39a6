"""Planners: regrets are those of exact values, and curves have the draws that they say."""

import numpy as np
import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.finite import planner_regret as experiment
from ggpi.lab.finite import planner_regret_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def test_exact_values_are_those_of_the_library():
    from ggpi import compositions, evaluate, rewards
    from ggpi.planning.plans import plans_of

    config = experiment.PRESETS["tiny"]
    for world in experiment.WORLDS:
        ghms, reward = experiment._world(config, world, 2)
        gsps = compositions(4, 2, config.alpha)
        expected = evaluate(gsps, ghms, rewards.arrival(reward)).v[:, 0][np.asarray(plans_of(gsps).place)]
        _, values, _ = experiment._posed(config, world, 2)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


def test_one_plan_opens_the_lock():
    config = experiment.PRESETS["tiny"]
    for depth in (2, 3):
        problem, values, _ = experiment._posed(config, "lock", depth)
        assert (values > 1e-6).sum() == 1
        chosen = np.asarray(problem.plans.policies)[values.argmax()]
        assert chosen.tolist() == [0, 1, 2][:depth]


@pytest.mark.slow
def test_curves_are_complete(metrics):
    assert len(metrics["curves"]) == 5 * 4
    for curve in metrics["curves"]:
        for row in curve["rows"]:
            assert 0 <= row["regret"]["mean"] <= 1 and row["draws"] <= row["budget"]
    uniform = [curve for curve in metrics["curves"] if curve["planner"] == "uniform"]
    assert all(len(curve["rows"]) == 2 for curve in uniform)


@pytest.mark.slow
def test_regret_is_small_with_many_samples_of_graded_values(metrics):
    """16 plans of the chain with 64 samples each: far better than a random choice, whose regret is about a half."""
    curves = {curve["planner"]: curve for curve in experiment_figure.select(metrics, "chain", 2)}
    for name in ("uniform", "halving"):
        assert curves[name]["rows"][-1]["regret"]["mean"] < 0.2


@pytest.mark.slow
def test_tables_and_figure(metrics):
    assert len(experiment_figure.table(metrics)) == 2
    assert experiment_figure.plot(metrics).axes


def test_draws_are_interpolated():
    rows = [{"draws": d, "regret": {"mean": r}} for d, r in ((100, 0.2), (1000, 0.02))]
    assert experiment_figure.draws_until(rows, 0.2) == 100
    assert experiment_figure.draws_until(rows, np.sqrt(0.2 * 0.02)) == pytest.approx(np.sqrt(1e5))
    assert experiment_figure.draws_until(rows, 0.01) is None
