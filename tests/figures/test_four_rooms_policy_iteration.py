"""Fig 4: with 1000 samples per estimate, depth 2 needs far fewer iterations than plain policy iteration."""

import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.finite import four_rooms_policy_iteration as experiment
from ggpi.lab.finite import four_rooms_policy_iteration_figure as experiment_figure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def by_depth(metrics, start, variant):
    return {
        row["depth"]: row for row in metrics["summary"] if (row["start"], row["variant"]) == (start, variant)
    }


@pytest.mark.slow
@pytest.mark.parametrize("start", experiment.STARTS)
def test_depth_2_needs_fewer_iterations_than_plain_policy_iteration(metrics, start):
    rows = by_depth(metrics, start, "newest-last")
    assert rows[2]["censored"] == 0
    assert rows[2]["iterations"]["mean"] < rows[1]["iterations"]["mean"] / 1.5


@pytest.mark.parametrize("start", experiment.STARTS)
def test_the_full_set_is_solved_at_both_depths(metrics, start):
    for row in by_depth(metrics, start, "full").values():
        assert row["censored"] == 0 and row["iterations"]["mean"] < 20


def test_samples_are_counted_as_algorithm_1_spends_them(metrics):
    """416 pairs × 1000 chains × Σ over iterations of the segments of all ν."""
    for run in metrics["runs"]:
        segments, nodes = 0, 0
        for k in range(1, run["iterations"] + 1):  # k policies
            if run["depth"] == "inf":
                new = new_nodes = k
            elif run["depth"] == 1:
                new = new_nodes = 1 if run["variant"] == "newest-last" else k
            elif run["variant"] == "newest-last":
                new, new_nodes = 1 + 2 * (k - 1), 1 + 2 * (k - 1)
            else:
                new = k + 2 * k * (k - 1)
                new_nodes = k + k * (k - 1) + (k if k > 1 else 0)
            segments, nodes = segments + new, nodes + new_nodes
        assert run["ghm_samples"] == 416_000 * segments
        assert run["ghm_draws"] == 416_000 * nodes


@pytest.mark.parametrize("start", experiment.STARTS)
def test_the_closed_loop_is_solved(metrics, start):
    (row,) = by_depth(metrics, start, experiment.CLOSED).values()
    assert row["censored"] == 0 and row["iterations"]["mean"] < 20


def test_censored_runs_are_counted_and_said(metrics):
    for row in metrics["summary"]:
        mine = [
            r for r in metrics["runs"] if all(r[part] == row[part] for part in ("start", "variant", "depth"))
        ]
        assert len(mine) == metrics["num_seeds"]
        assert row["censored"] == sum(r["stopped"] != "optimal" for r in mine)
        assert all(r["iterations"] == metrics["max_iterations"] for r in mine if r["stopped"] == "limit")


def test_table_and_figure_come_from_metrics(metrics):
    tables = experiment_figure.table(metrics)
    assert sum(table.row_count for table in tables) == len(metrics["summary"])
    for start, table in zip(experiment.STARTS, tables, strict=True):
        censored = [row["censored"] > 0 for row in metrics["summary"] if row["start"] == start]
        assert [cell.startswith("≥") for cell in table.columns[2].cells] == censored
    figure = experiment_figure.plot(metrics)
    assert len(figure.axes) == 4
    figure.canvas.draw()
