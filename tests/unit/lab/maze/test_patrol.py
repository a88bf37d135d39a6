"""A policy that walks a loop: it aims at neighbouring cells only, and reaches the loop from everywhere."""

import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")

from ggpi.envs.maze import PointMaze
from ggpi.lab.maze.patrol import MEDIUM_LOOP, aims, patrol
from ggpi.rollout.futures import simulate_futures


def cell_of(maze, places):
    return [(int(maze.size[1] / 2 - y), int(x + maze.size[0] / 2)) for x, y in places]


def test_every_free_cell_leads_to_the_loop_through_free_neighbours():
    maze = PointMaze("Medium")
    targets = aims(maze, MEDIUM_LOOP)
    for row, column in np.argwhere(maze.free):
        seen = [(int(row), int(column))]
        for _ in range(40):
            seen += cell_of(maze, [targets[seen[-1]]])
            assert maze.free[seen[-1]] and np.abs(np.subtract(seen[-1], seen[-2])).sum() == 1
        assert set(seen[-12:]) == set(MEDIUM_LOOP)


def test_the_ball_walks_round_the_loop_and_touches_few_walls():
    maze = PointMaze("Medium")
    policy = patrol(maze, MEDIUM_LOOP)
    states = np.zeros((26, 4))
    states[:, :2] = maze.centre(*np.argwhere(maze.free).T)
    for _ in range(100):
        states = maze.step(states, np.asarray(policy.mode(states.astype(np.float32))))
    order = []
    for _ in range(90):
        states = maze.step(states, np.asarray(policy.mode(states.astype(np.float32))))
        order.append(cell_of(maze, states[:, :2]))
    for path in zip(*order, strict=True):
        visited = [one for one, two in zip(path, (*path[1:], None), strict=True) if one != two]
        places = [MEDIUM_LOOP.index(cell) for cell in visited]
        assert set(places) == set(range(12)) and set(np.diff(places) % 12) == {1}


def test_futures_at_long_horizons_are_free_and_spread_over_the_loop():
    maze = PointMaze("Medium")
    start = np.array([[*maze.centre(4, 1), 0.0, 0.0]])
    rows = np.repeat(start, 400, axis=0)
    futures = simulate_futures(maze, patrol(maze, MEDIUM_LOOP), rows, np.zeros((400, 2)), 0.98)
    assert maze.possible(futures).all()
    assert set(cell_of(maze, futures[:, :2])) >= set(MEDIUM_LOOP)
