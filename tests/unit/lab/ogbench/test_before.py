"""Distances of jumps, and the seconds of phases."""

import numpy as np
import pytest

pytest.importorskip("ogbench")

from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.ogbench.before import _compared, _in_walls, phases
from ggpi.lab.ogbench.models import Training


def test_the_floor_is_that_of_two_simulations():
    """Clouds of 400 points: the floor is about 0, a shift by 2 is 2.4 from it."""
    rng = np.random.default_rng(0)
    true, again, ours = rng.normal(size=(3, 2, 400, 2))
    found = _compared(true, again, ours + 2)
    assert abs(found["floor"]) < 0.1 and found["energy"] > 1
    assert found["apart"] == pytest.approx(np.sqrt(np.pi), rel=0.1)


def test_jumps_in_walls_are_counted():
    world = OGBenchMaze("pointmaze-medium")
    ends = np.array([[world.task(1).start, world.walls[0]], [world.task(1).goal, world.task(2).goal]])
    assert _in_walls(world, ends) == 0.25


def test_phases_are_those_of_the_body():
    graph, episodes = (
        {"seconds": {"data": 1.0, "training": 2.0, "graph": 4.0, "goal": 8.0}},
        {"seconds": 16.0},
    )
    ball = phases(Training("pointmaze-medium"), graph, episodes)
    assert ball == {"data": 1, "training": 2, "graph": 4, "episodes": 16, "all": 23}
    ant = phases(Training("antmaze-medium"), graph, episodes)
    assert next(iter(ant)) == "walkers" and ant["all"] == 23 + ant["walkers"]
    graph["seconds"]["training"] = None
    assert phases(Training("pointmaze-medium"), graph, episodes)["all"] is None
