"""Episodes in OGBench's own environments: seeds, success, the time between decisions."""

import numpy as np
import pytest

pytest.importorskip("ogbench")

from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab import agents
from ggpi.lab.maze.tasks import guide
from ggpi.lab.ogbench.episodes import play, success
from ggpi.policies import ogbench_policies


@pytest.fixture(scope="module")
def world():
    return OGBenchMaze("pointmaze-medium")


def test_the_guide_reaches_every_goal(world):
    found = play(world, guide(world, ogbench_policies(), world.safe), list(world.tasks), 1, 0, hold=5)
    assert all(0 < one.steps == len(one.path) - 1 for one in found)
    for one, task in zip(found, world.tasks.values(), strict=True):
        assert np.linalg.norm(one.path[-1] - one.goal) <= world.radius
        assert np.abs(one.path[0] - task.start).max() <= 1 and np.abs(one.goal - task.goal).max() <= 1


def test_starts_and_goals_do_not_depend_on_the_agent(world):
    one, two = (
        play(world, agents.alone(ogbench_policies(), k), [2, 4], 2, 7, hold=2, max_steps=5) for k in (0, 3)
    )
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours.goal, theirs.goal)
        np.testing.assert_array_equal(ours.path[0], theirs.path[0])
        assert ours.steps == 0 and len(ours.path) == 6
    assert len({one.goal.tobytes() for one in one}) == 4
    other = play(world, agents.alone(ogbench_policies(), 0), [2], 1, 8, max_steps=1)
    assert (other[0].goal != one[0].goal).all()


def test_decisions_are_held(world):
    asked = []

    def decide(states, goals, key):
        asked.append(states[0])
        return np.zeros((1, 2))

    play(world, decide, [1], 1, 0, hold=4, max_steps=9)
    assert len(asked) == 3


def test_success_counts_episodes_that_reached_their_goal():
    found = success(np.array([0, 10, 20, 0]))
    assert found["mean"] == 0.5 and found["low"] < 0.1 < 0.9 < found["high"]
    assert found["steps"] == {"mean": 15, "low": 10, "high": 20}
    assert success(np.zeros(3))["steps"] is None
    assert success(np.ones(100))["low"] == pytest.approx(0.025 ** (1 / 100))
