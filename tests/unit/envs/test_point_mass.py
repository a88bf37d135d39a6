"""The point mass: motion, walls, and the environments made of it."""

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from ggpi.envs import PointMass

WORLD = PointMass()


def test_speed_and_walls():
    state = np.array([[0.0, 0.5, 0.0, 0.0]])
    for _ in range(40):
        state = WORLD.step(state, np.array([[1.0, 0.0]]))
    np.testing.assert_array_equal(state, [[1.0, 0.5, 0.0, 0.0]])
    free = WORLD.step(np.array([[0.0, 0.0, 0.08, 0.0]]), np.array([[1.0, -5.0]]))
    np.testing.assert_allclose(free, [[0.08, -0.02, 0.08, -0.02]], err_msg="full speed, and a clipped push")


def test_gymnasium_accepts_it():
    env = gymnasium.make("ggpi/PointMass-v0", max_steps=3)
    check_env(env.unwrapped, skip_render_check=True)
    state, _ = env.reset(seed=0, options={"state": [0.5, 0.5, 0.0, 0.0]})
    for step in range(3):
        state, _, terminated, truncated, _ = env.step(np.array([0.0, 1.0], np.float32))
        assert not terminated and truncated == (step == 2)
    assert state[0] == 0.5 and state[1] > 0.5


def test_many_at_once_move_like_one():
    envs = gymnasium.make_vec("ggpi/PointMass-v0", 5, max_steps=4)
    states, _ = envs.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(4):
        before, actions = states, rng.uniform(-1, 1, (5, 2)).astype(np.float32)
        states, _, terminated, truncated, info = envs.step(actions)
    assert truncated.all() and not terminated.any()
    np.testing.assert_allclose(info["final_obs"], WORLD.step(before, actions), rtol=1e-6)
    assert (states[:, 2:] == 0).all(), "a new episode starts at rest"
