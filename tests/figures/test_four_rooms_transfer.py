"""Fig 3: each further segment solves more of four-rooms, without learning anything for the new reward."""

import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.finite import four_rooms_transfer as experiment
from ggpi.lab.finite import four_rooms_transfer_figure as experiment_figure


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(experiment.PRESETS["tiny"]))


def optimal(metrics, world):
    return [row["optimal"] for row in metrics["worlds"][world]["depths"]]


def test_counts_of_the_deterministic_world(metrics):
    assert metrics["num_states"] == len(metrics["cells"]) == 104
    assert optimal(metrics, 0) == [20, 61, 101]


def test_depth_four_solves_everything():
    config = experiment.Config()
    result = experiment.solve(config, slip=0.0, depth=4)
    assert result["optimal"] == 104 and result["gsps"] == 4**4
    assert result["value_share"] == pytest.approx(1)


def test_each_depth_brings_more_value(metrics):
    shares = [row["value_share"] for row in metrics["worlds"][0]["depths"]]
    assert 0 < shares[0] < shares[1] < shares[2] <= 1 + 1e-9


@pytest.mark.parametrize("world", [0, 1])
def test_each_depth_promises_more_and_the_promise_is_kept(metrics, world):
    rows = metrics["worlds"][world]["depths"]
    promised = [row["promised_share"] for row in rows]
    assert 0 < promised[0] < promised[1] < promised[2]
    assert all(row["value_share"] >= row["promised_share"] for row in rows)


def test_with_slips_gpi_is_good_already_and_depth_adds_nothing(metrics):
    counts = optimal(metrics, 1)
    assert counts[0] == 61 and max(counts[1:]) < counts[0]
    shares = [row["value_share"] for row in metrics["worlds"][1]["depths"]]
    assert min(shares) > 0.9 and max(shares) - min(shares) < 0.01


def test_gpi_solves_the_straight_lines_to_the_goal(metrics):
    """Without a turn only the goal's row and column, up to the walls, see the reward."""
    states = {tuple(state) for state in metrics["worlds"][0]["depths"][0]["states"]}
    assert {(1, column) for column in range(7, 12)} <= states
    assert {(row, 11) for row in range(1, 7)} <= states


@pytest.mark.parametrize("world", [0, 1])
def test_states_are_listed(metrics, world):
    for row in metrics["worlds"][world]["depths"]:
        assert len(row["states"]) == row["optimal"]
        assert all(state in metrics["cells"] for state in row["states"])


def test_table_and_figure_come_from_metrics(metrics):
    assert [table.row_count for table in experiment_figure.table(metrics)] == [4, 4]
    titles = [ax.get_title() for ax in experiment_figure.plot(metrics).axes]
    assert titles[2] == "GGPI, depth 3\n101 of 104 states optimal" and len(titles) == 8


@pytest.mark.parametrize("world", [0, 1])
def test_no_depth_promises_more_than_the_closed_loop(metrics, world):
    rows, closed = metrics["worlds"][world]["depths"], metrics["worlds"][world]["closed_loop"]
    assert closed["promised_share"] >= max(row["promised_share"] for row in rows) - 1e-9
    assert closed["value_share"] >= closed["promised_share"] - 1e-9
    assert closed["gsps"] == 4


def test_the_closed_loop_solves_the_deterministic_world(metrics):
    assert metrics["worlds"][0]["closed_loop"]["optimal"] == 104
