"""Planners: regrets are those of exact values, and curves have the draws that they say."""

import numpy as np
import pytest
from scipy import stats

from chance import FAILURE
from ggpi.lab.cells import as_stored
from ggpi.lab.finite import planner_regret as experiment
from ggpi.lab.finite import planner_regret_figure as experiment_figure
from ggpi.lab.finite import planner_worlds as worlds
from ggpi.lab.finite.certificates import clopper_pearson


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def test_exact_values_are_those_of_the_library():
    from ggpi import compositions, evaluate, rewards
    from ggpi.planning.plans import plans_of

    config = experiment.PRESETS["tiny"]
    for world in worlds.WORLDS:
        ghms, reward = worlds.models_of(experiment._world(config, world), 2)
        gsps = compositions(4, 2, config.alpha)
        expected = evaluate(gsps, ghms, rewards.arrival(reward)).v[:, 0][np.asarray(plans_of(gsps).place)]
        _, values, _ = worlds.posed(experiment._world(config, world), 2)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


def test_one_plan_opens_the_lock():
    config = experiment.PRESETS["tiny"]
    for depth in (2, 3):
        problem, values, _ = worlds.posed(experiment._world(config, "lock"), depth)
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
    assert len(experiment_figure.table(metrics)) == 3
    assert experiment_figure.plot(metrics).axes


def test_draws_are_interpolated():
    rows = [{"draws": d, "regret": {"mean": r}} for d, r in ((100, 0.2), (1000, 0.02))]
    assert experiment_figure.draws_until(rows, 0.2) == 100
    assert experiment_figure.draws_until(rows, np.sqrt(0.2 * 0.02)) == pytest.approx(np.sqrt(1e5))
    assert experiment_figure.draws_until(rows, 0.01) is None


def test_ratios_say_where_they_are_bounds():
    def rows(*pairs):
        return [{"draws": d, "regret": {"mean": r}} for d, r in pairs]

    uniform = rows((100, 0.2), (1000, 0.02))
    assert experiment_figure._ratio(uniform, rows((50, 0.2), (500, 0.02)), 0.02) == "2.0"
    assert experiment_figure._ratio(uniform, rows((250, 0.01)), 0.02) == "≥ 4.0"
    assert experiment_figure._ratio(uniform, rows((50, 0.9), (500, 0.02)), 0.2)[:2] == "≤ "
    assert experiment_figure._ratio(uniform, rows((50, 0.2)), 0.02) == "–"


@pytest.mark.parametrize(("hits", "runs"), [(0, 60), (3, 60), (60, 60)])
def test_intervals_of_shares_have_exact_tails(hits, runs):
    low, high = clopper_pearson(hits, runs)
    assert low == 0 if hits == 0 else stats.binom.sf(hits - 1, runs, low) == pytest.approx(0.025)
    assert high == 1 if hits == runs else stats.binom.cdf(hits, runs, high) == pytest.approx(0.025)


@pytest.mark.slow
def test_certificates_stop_where_values_are_far_apart(metrics):
    """The chain with ε = 5%: runs stop before the budget. Wrong runs are within the binomial tail at δ."""
    for row in metrics["certificates"]:
        assert stats.binom.sf(round(row["wrong"] * row["runs"]) - 1, row["runs"], row["delta"]) > FAILURE
    chain = next(row for row in metrics["certificates"] if row["world"] == "chain" and row["epsilon"] == 0.05)
    assert chain["stopped"] > 0.5 and chain["draws_of_stopped"] < chain["budget"]
