"""PointMaze as a world: the same physics as gymnasium-robotics', no goal, and policies that know directions."""

import threading

import gymnasium
import numpy as np
import pytest

import ggpi
from ggpi.envs import Environment, GymVectorEnv, PointMaze
from ggpi.policies import maze_policies

pytest.importorskip("gymnasium_robotics")

CORNER = """
#####
#...#
###.#
#####
"""


def run(world, policy, place, num_steps=40):
    """The places that a policy's modes visit from rest."""
    states = np.array([[*place, 0.0, 0.0]])
    visited = [states]
    for _ in range(num_steps):
        states = world.step(states, np.asarray(policy.mode(states)))
        visited.append(states)
    return np.concatenate(visited)


@pytest.mark.parametrize(
    ("name", "shape", "num_free"), [("UMaze", (5, 5), 7), ("Medium", (8, 8), 26), ("Large", (9, 12), 46)]
)
def test_named_mazes(name, shape, num_free):
    world = PointMaze(name)
    assert isinstance(world, Environment)
    assert world.free.shape == shape and world.free.sum() == num_free
    assert len(world.walls) == (~world.free).sum()


def test_a_place_is_in_the_cell_around_it():
    world = PointMaze("Large")
    for row, column in np.argwhere(world.free):
        assert world.cell(world.centre(row, column) + np.array([0.4, -0.4])) == (row, column)


def test_places_in_walls_are_impossible():
    world = PointMaze(CORNER)
    places = np.array([[-1.0, 0.5], [1.0, -0.5], [-1.0, -0.5], [0.0, 1.2], [9.0, 0.0], [np.nan, 0.0]])
    states = np.concatenate([places, np.full((6, 2), 3.0)], axis=1)
    assert world.possible(states).tolist() == [True, True, False, False, False, False]


def test_a_step_is_the_environments_own_steps_with_the_action_held():
    """Also along walls and above the limit of speed."""
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    env = gymnasium.make("PointMaze_UMaze-v3").unwrapped
    env.reset(seed=0)
    world, rng = PointMaze("UMaze", repeat=7), np.random.default_rng(0)
    states = world.start(24, rng)
    states[:, 2:] = rng.normal(size=(24, 2)) * 4
    theirs = np.empty_like(states)
    touched = 0
    for _ in range(6):
        actions = rng.uniform(-1, 1, (24, 2))
        for i in range(24):
            env.point_env.set_state(states[i, :2], states[i, 2:])
            for _ in range(7):
                theirs[i] = env.step(actions[i])[0]["observation"]
        states = world.step(states, actions)
        np.testing.assert_allclose(states, theirs, atol=1e-4)
        touched += (~world.is_free(states[:, :2], 0.105)).sum()
    assert touched, "each of the 24 touches a wall with a probability above one half"


def test_starts_are_anywhere_free_and_at_rest():
    world = PointMaze("Medium")
    states = world.start(4000, np.random.default_rng(1))
    assert world.is_free(states[:, :2]).all() and not states[:, 2:].any()
    column, row = np.floor(states[:, :2] + world.size / 2).astype(int).T
    cells = set(zip(world.free.shape[0] - 1 - row, column, strict=True))
    assert cells == set(map(tuple, np.argwhere(world.free)))


def test_places_and_walls_of_a_drawing():
    world = PointMaze(CORNER)
    np.testing.assert_array_equal(world.centre(1, 1), [-1.0, 0.5])
    np.testing.assert_array_equal(world.centre(2, 3), [1.0, -0.5])
    places = [(-1, 0.5), (1, -0.5), (-1, -0.5), (0.0, 0.05), (0.0, 0.15), (9.0, 0.5)]
    assert world.is_free(places).tolist() == [True, True, False, False, True, False]
    assert world.is_free(places, margin=0.0).tolist() == [True, True, False, True, True, False]


def test_policies_go_their_way_until_a_wall():
    world = PointMaze(CORNER)
    right, up, left, down = maze_policies()
    assert [policy.name for policy in (right, up, left, down)] == ["right", "up", "left", "down"]
    path = run(world, right, world.centre(1, 1))
    np.testing.assert_allclose(path[-1], [1.4, 0.5, 0, 0], atol=0.02)
    np.testing.assert_allclose(np.diff(path[4:9, 0]), 0.2, atol=0.02, err_msg="0.2 cells a step")
    np.testing.assert_allclose(run(world, down, (0.9, 0.5))[-1, :2], [0.9, -0.9], atol=0.02)
    np.testing.assert_allclose(run(world, down, (-0.5, 0.5))[-1, :2], [-0.5, 0.1], atol=0.02)
    np.testing.assert_allclose(run(world, left, (0.9, 0.5))[-1, :2], [-1.4, 0.5], atol=0.02)


def test_it_is_a_gymnasium_environment_without_a_goal():
    env = gymnasium.make("ggpi/PointMaze-v0", maze="Medium", max_steps=30)
    seen, _ = env.reset(seed=3, options={"state": [-2.5, 2.5, 0, 0]})
    np.testing.assert_array_equal(seen, np.array([-2.5, 2.5, 0, 0], np.float32))
    assert env.observation_space.shape == (4,) and env.action_space.shape == (2,)
    data = ggpi.collect("ggpi/PointMaze-v0", maze_policies(), 400, switch_every=10, num_envs=4, seed=2)
    again = ggpi.collect(GymVectorEnv(PointMaze(), 4), maze_policies(), 400, switch_every=10, seed=2)
    np.testing.assert_array_equal(data.state, again.state)
    moved = PointMaze().step(data.state, data.action)
    np.testing.assert_allclose(data.next_state, moved, atol=1e-3)
    assert PointMaze().is_free(data.state[:, :2], 0.05).all()


@pytest.mark.parametrize("maze", ["Tiny", "###\n#.#\n##", "###\n#..\n###", "###\n###\n###"])
def test_mazes_that_are_none(maze):
    with pytest.raises(ValueError, match="a maze"):
        PointMaze(maze).free  # noqa: B018 - computed when asked for
    with pytest.raises(ValueError, match="at least 1, got 0"):
        PointMaze(repeat=0)


def test_threads_may_step_at_once():
    """They take turns in MuJoCo's pool: without them the process ends, or balls get the places of others."""
    worlds, rng = (PointMaze("UMaze"), PointMaze("Medium")), np.random.default_rng(0)
    states = [world.start(16, rng) for world in worlds]
    actions, wrong = rng.uniform(-1, 1, (16, 2)), []
    expected = [world.step(state, actions) for world, state in zip(worlds, states, strict=True)]

    def step(i):
        for _ in range(20):
            wrong.extend(np.flatnonzero(worlds[i].step(states[i], actions) != expected[i]))

    threads = [threading.Thread(target=step, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
