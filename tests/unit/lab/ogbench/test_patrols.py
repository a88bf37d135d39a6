"""Patrols: which room counts next, and a guide that visits two rooms in turn."""

import numpy as np
import pytest

pytest.importorskip("ogbench")

from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.ogbench.patrols import guided, patrol, visited


def test_only_the_next_room_counts_after_a_visit():
    anywhere, none = np.ones(3, bool), np.zeros(3, bool)
    wanted, count = visited(anywhere, np.array([False, True, False]))
    assert count == 1 and wanted.tolist() == [False, False, True]
    for inside in (none, np.array([True, True, False])):
        assert visited(wanted, inside)[1] == 0 and visited(wanted, inside)[0] is wanted
    wanted, count = visited(wanted, np.array([False, False, True]))
    assert count == 1 and wanted.tolist() == [True, False, False]


def test_a_guide_walks_to_and_fro():
    """Two cells that are a few apart: each stretch takes about as long as the way."""
    world = OGBenchMaze("pointmaze-medium")
    task = world.task(1)
    places = np.array([task.start, task.goal])
    visits, path = patrol(world, guided(world, places), places[0], places, 0, max_steps=700, hold=5)
    inside = np.linalg.norm(path[:, None] - places, axis=2) <= world.radius
    changes = np.flatnonzero(inside.any(axis=1))
    turns = 1 + int((np.diff(inside[changes].argmax(axis=1)) != 0).sum())
    assert len(path) == 701 and visits == turns >= 3


def test_a_room_that_one_stays_in_counts_once():
    world = OGBenchMaze("pointmaze-medium")
    places = np.array([world.task(1).start, world.task(1).goal])
    visits, _ = patrol(world, lambda *_: np.zeros(2), places[0], places, 0, max_steps=20, hold=5)
    assert visits == 1
