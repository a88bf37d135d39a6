"""The ant can be started from what was observed of it."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.envs.ant.dynamics import restore
from ggpi.envs.ant.observation import observe


def walked(num_steps=30, num_ants=16):
    env = SparseAntVector(num_ants, target=None)
    states = [env.reset(seed=5)[0]]
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (num_steps, num_ants, 8))
    for action in actions:
        states.append(env.step(action)[0])
    return np.array(states), actions


def test_restoring_inverts_observing():
    states = walked()[0].reshape(-1, 35)
    np.testing.assert_allclose(observe(*restore(states)), states, atol=2e-5)


def test_a_step_from_an_observation_is_the_environment_s_step():
    states, actions = walked()
    dynamics = AntDynamics()
    for t in (0, 10, 29):
        stepped = dynamics.step(states[t], actions[t])
        error = np.abs(stepped - states[t + 1])
        assert np.median(error) < 1e-5
        assert np.quantile(error[:, :17], 0.95) < 2e-2  # contacts without their warm start


def test_any_number_of_ants_can_be_stepped():
    states, actions = walked(1, 16)
    dynamics = AntDynamics()
    many = dynamics.step(np.tile(states[0], (10, 1)), np.tile(actions[0], (10, 1)))
    np.testing.assert_array_equal(many[:16], dynamics.step(states[0], actions[0]))
