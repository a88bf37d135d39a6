"""The maze's experiment at its smallest size; and its claim, with the simulator in the models' place."""

import jax
import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")

from ggpi.envs.maze import PointMaze
from ggpi.lab import agents as planners
from ggpi.lab.maze import scores as maze_scores
from ggpi.lab.maze import tasks as maze
from ggpi.lab.maze import transfer as maze_transfer
from ggpi.lab.maze import transfer_figure as maze_transfer_figure
from ggpi.switching import compositions


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.slow
def test_run_has_every_number():
    metrics = maze_transfer.run(maze_transfer.PRESETS["tiny"])
    assert set(metrics["learned"]) == set(metrics["oracle"]) == set(metrics["same_episodes"]) == {"2", "3"}
    assert {"right alone", "random switching", "guide who knows the maze"} <= set(metrics["baselines"])
    assert all(np.isfinite(list(row.values())).all() for row in metrics["calibration"])
    assert metrics["targets"] == {"2": [(3, 1), (3, 2)]}
    assert metrics["depth_3_needed"]["learned"]["maze"] == "UMaze"
    assert set(metrics["minus_oracle"]) == {"2", "3"} and set(metrics["minus_oracle"]["2"]) == {"2", "all"}
    assert len(maze_transfer_figure.table(metrics)) == 5
    assert len(maze_transfer_figure.plot(metrics).axes) == 4


@pytest.mark.slow
def test_two_turns_are_out_of_sight_for_depth_two():
    world, policies = PointMaze("UMaze"), maze.policies()
    given = maze.tasks(world, (2,), 1, seed=0)
    assert given.cells == [(3, 1)]
    best = []
    for depth, samples in ((2, 16), (3, 64)):
        gsps = compositions(4, depth, maze.ALPHA)
        values = planners.true_values(world, policies, maze.GAMMA, gsps, samples, maze.RADIUS)
        value = values(given.states, given.targets, jax.random.key(0))[:, 0]
        best.append((float(value.max()), gsps[int(value.argmax())].policies))
    assert best[0][0] == 0
    assert best[1][0] > 0 and best[1][1] == (0, 3, 2), "right, down, left"


def test_routes_and_turns():
    world = PointMaze(maze_transfer.HOOK.strip())
    found = maze.targets_by_turns(world)
    assert {turns: len(cells) for turns, cells in found.items()} == {0: 2, 1: 2, 2: 2, 3: 2, 4: 2}
    assert maze.route(world.free, (1, 1), (3, 3)) == [(1, 1), (1, 2), (1, 3), (2, 3), (3, 3)]
    given = maze.tasks(world, (0, 3), 3, seed=1)
    assert given.turns.tolist() == [0, 3] * 3 and given.cells[0] in found[0]
    fewer = maze.tasks(world, (0, 3), 2, seed=1)
    assert np.array_equal(fewer.targets, given.targets[:4]) and np.array_equal(fewer.states, given.states[:4])


def test_depth_three_is_named_where_it_is_twenty_points_above():
    played = {2: [{"steps": [5, 0, 5, 0]}], 3: [{"steps": [5, 9, 5, 0]}]}
    gained = maze_scores.gains((0, 2), played)
    assert gained["3 over 2"]["0"]["mean"] == 0 and gained["3 over 2"]["2"]["mean"] == 50
    rows = maze_scores.by_target([(1, 2), (3, 1)] * 2, played)
    named = maze_scores.depth_3_needed("UMaze", rows)
    assert named["targets"] == [(3, 1)] and named["points"] == [50]


def test_models_less_the_oracle_in_the_same_episodes():
    ours, oracle = [{"steps": [5, 0, 7, 0]}, {"steps": [5, 0, 0, 0]}], [{"steps": [9, 3, 0, 3]}]
    found = maze_scores.minus_oracle((0, 1), ours, oracle)
    assert [found[group]["mean"] for group in ("0", "1", "all")] == [25, -100, -37.5]
    same = maze_scores.minus_oracle((0, 1), oracle, oracle)
    assert set(same["all"].values()) == {0.0}


def test_shipped_models_are_of_medium():
    few = {"maze": "Medium", "num_models": 1, "training_steps": 0}
    config = maze_transfer.Config(**few)
    ghms = maze_transfer.models_of(config, 0)
    assert (ghms.gamma, ghms.alphas, ghms.names) == (
        maze.GAMMA,
        (maze.ALPHA,),
        ["right", "up", "left", "down"],
    )
    for other in ({"maze": "UMaze"}, {"num_models": 2}):
        with pytest.raises(ValueError, match="shipped models, one seed, of Medium; got num_models="):
            maze_transfer.Config(**few | other)
