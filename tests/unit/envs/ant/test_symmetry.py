"""The ant's symmetry holds in its dynamics, and makes four policies of one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("mujoco")

from ggpi.envs.ant import INDEX, SparseAnt
from ggpi.envs.ant.symmetry import back, canonical, forth, rename_legs, turn_world

STATES = np.random.default_rng(0).normal(size=(20, 35)).astype(np.float32)


def pushed(seed, quarters=0, legs=0):
    """An ant in motion, after turning the world and renaming its legs; and how actions translate."""
    env = SparseAnt(target=None)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(6):
        env.step(rng.uniform(-1, 1, 8))
    data, angle = env.data, np.pi / 2 * quarters
    spin, body = np.pi / 4 * quarters, np.pi / 4 * legs
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    data.qpos[:2], data.qvel[:2] = turn @ data.qpos[:2], turn @ data.qvel[:2]
    data.qpos[3:7] = times((np.cos(spin), 0, 0, np.sin(spin)), data.qpos[3:7])
    data.qpos[3:7] = times(data.qpos[3:7], (np.cos(body), 0, 0, np.sin(body)))
    about = -np.pi / 2 * legs
    turn = np.array([[np.cos(about), -np.sin(about)], [np.sin(about), np.cos(about)]])
    data.qvel[3:5] = turn @ data.qvel[3:5]
    signs = np.array([1, 1, 1, -1, 1, -1, 1, 1])
    for joints in (data.qpos[7:], data.qvel[6:]):
        joints[:] = np.roll(joints * signs, -2 * legs) * signs
    data.qacc_warmstart[:] = 0
    return env


def times(p, q):
    """Product of quaternions."""
    (a, *u), (b, *v) = p, q
    u, v = np.array(u), np.array(v)
    return np.array([a * b - u @ v, *(a * v + b * u + np.cross(u, v))])


@pytest.mark.parametrize("quarters", range(4))
@pytest.mark.parametrize("legs", range(4))
def test_exact_in_the_dynamics(quarters, legs):
    """Step, then transform = transform, then step; MuJoCo's own numbers are turned, not our observations."""
    for seed in range(3):
        plain, other = pushed(seed), pushed(seed, quarters, legs)
        rng = np.random.default_rng(seed)
        for _ in range(3):
            action = rng.uniform(-1, 1, 8)
            state = plain.step(action)[0]
            there = other.step(np.asarray(forth(jnp.asarray(action), legs)))[0]
            np.testing.assert_allclose(
                rename_legs(turn_world(jnp.asarray(state), quarters), legs), there, atol=2e-4, rtol=1e-3
            )


def test_turns_and_names_are_groups():
    for state in STATES[:3]:
        state = jnp.asarray(state)
        np.testing.assert_allclose(turn_world(turn_world(state, 3), 1), state, atol=1e-6)
        np.testing.assert_allclose(turn_world(turn_world(state, 1), 1), turn_world(state, 2), atol=1e-6)
    action = jnp.arange(8.0)
    for legs in range(4):
        np.testing.assert_array_equal(back(forth(action, legs), legs), action)


def test_canonical_states_face_the_direction():
    env = SparseAnt(target=None)
    for seed in range(20):
        state = jnp.asarray(env.reset(seed=seed)[0])
        for direction in range(4):
            seen, _ = canonical(state, direction)
            assert seen[3] >= np.sqrt(0.5) - 1e-5
            ahead = jnp.zeros(35).at[INDEX["velocity"].start + direction % 2].set(1 - 2 * (direction // 2))
            velocity = turn_world(ahead, -direction)[INDEX["velocity"]]
            np.testing.assert_allclose(velocity, [1, 0, 0], atol=1e-6)


def test_all_sixteen_views_of_a_state_are_one():
    """Canonical states do not know the direction, nor which leg is called the first."""
    env = SparseAnt(target=None)
    env.reset(seed=0)
    state = jnp.asarray(env.step(np.linspace(-1, 1, 8))[0])
    wanted, _ = canonical(state, 0)
    for direction in range(4):
        for legs in range(4):
            seen, _ = jax.jit(canonical)(rename_legs(turn_world(state, direction), legs), direction)
            np.testing.assert_allclose(seen, wanted, atol=1e-5)


@pytest.mark.parametrize("legs", range(-3, 5))
def test_legs_are_renamed_as_arrays_are_rolled(legs):
    """An independent computation in NumPy: the axes by a cross product, the legs by `np.roll`."""
    for state in STATES:
        forward, up = state[INDEX["forward"]], state[INDEX["up"]]
        left = np.cross(up, forward)
        expected = state.copy()
        expected[INDEX["forward"]] = [forward, left, -forward, -left][legs % 4]
        for group, numbers in (("joints", 2), ("joint_speeds", 2), ("feet", 1)):
            expected[INDEX[group]] = np.roll(state[INDEX[group]], -numbers * legs)
        np.testing.assert_allclose(rename_legs(jnp.asarray(state), legs), expected, atol=1e-6)
        np.testing.assert_array_equal(forth(jnp.asarray(state[:8]), legs), np.roll(state[:8], -2 * legs))
        np.testing.assert_array_equal(back(jnp.asarray(state[:8]), legs), np.roll(state[:8], 2 * legs))


def test_the_body_axis_that_points_best_is_chosen():
    """Of x, y, −x, −y the one with the largest component along the direction; the first of equal ones."""
    grid = [(x, y) for x in (-2, -1, 0, 1, 2) for y in (-2, -1, 0, 1, 2)]
    for x, y in grid:
        state = np.zeros(35, np.float32)
        state[INDEX["forward"]], state[INDEX["up"]] = (x, -y, 0), (0, 0, 1)  # its y-axis is (y, x, 0)
        legs = int(canonical(jnp.asarray(state), 0)[1])
        assert legs == int(np.argmax([x, y, -x, -y]))
