"""The sparse-reward ant: its numbers, its task, its checkers, its bad inputs."""

import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import ggpi  # noqa: F401, registers the environments
from chance import are_frequencies

mujoco = pytest.importorskip("mujoco")

from ggpi.envs.ant import CHANGES, INDEX, NAMES, SPEC, SparseAnt, observation, physics, task  # noqa: E402


@pytest.fixture
def env():
    return gymnasium.make("ggpi/SparseAnt-v0")


def walk(env, steps, seed=0):
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(steps):
        yield env.step(rng.uniform(-1, 1, 8).astype(np.float32))


def test_importing_the_environments_registers_them_without_mujoco():
    code = (
        "import sys, gymnasium, ggpi\n"
        "assert 'ggpi/SparseAnt-v0' not in gymnasium.registry\n"
        "import ggpi.envs\n"
        "assert 'ggpi/SparseAnt-v0' in gymnasium.registry and 'mujoco' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.filterwarnings("ignore:.*Box observation space:UserWarning")
def test_gymnasiums_checker(env):
    check_env(env.unwrapped, skip_render_check=True)


def test_table_of_names():
    assert SPEC.size == len(set(NAMES)) == 35
    assert SPEC.relative == (0, 1) and SPEC.names[3:9] == NAMES[INDEX["forward"]] + NAMES[INDEX["up"]]
    listed = [name for group in INDEX.values() for name in NAMES[group]]
    assert sorted([*listed, "z"]) == sorted(NAMES)
    assert all(f"`{name}`" in observation.__doc__ for name in ("x", "up_z", "ankle_4", "spin_y", "foot_1"))


def test_numbers_agree_with_mujoco():
    """Axes, spin and feet, which we compute, against what MuJoCo computes."""
    env = SparseAnt(target=None)
    for state, *_ in walk(env, 25):
        data, model = env.data, physics.model()
        mujoco.mj_forward(model, data)
        axes = data.body("torso").xmat.reshape(3, 3).T
        np.testing.assert_allclose(state[INDEX["forward"]], axes[0], atol=1e-5)
        np.testing.assert_allclose(state[INDEX["up"]], axes[2], atol=1e-5)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 1, velocity, 0)
        np.testing.assert_allclose(state[INDEX["spin"]], velocity[:3], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(state[INDEX["velocity"]], velocity[3:], rtol=1e-4, atol=1e-4)
        for leg, name in enumerate(("left", "right", "third", "fourth")):
            geom = data.geom(f"{name}_ankle_geom")
            half = model.geom(f"{name}_ankle_geom").size[1] * geom.xmat.reshape(3, 3)[:, 2]
            ends = geom.xpos + half, geom.xpos - half
            foot = max(ends, key=lambda end: np.linalg.norm(end - data.body("torso").xpos))
            np.testing.assert_allclose(state[INDEX["feet"]][leg], foot[2] - observation.RADIUS, atol=1e-5)


def test_positive_ankle_torques_bend_every_leg():
    env = SparseAnt(target=None)
    before, _ = env.reset(seed=0)
    for joint in range(8):
        env.reset(seed=0)
        after = env.step(np.eye(8, dtype=np.float32)[joint])[0]
        change = (after - before)[INDEX["joints"]]
        assert change.argmax() == joint and change[joint] > 0.05


def test_the_ant_starts_at_rest_somewhere_in_the_square(env):
    states, headings = [], []
    for seed in range(200):
        state, info = env.reset(seed=seed)
        apart = info["target"] - state[:2]
        angle = np.rad2deg(np.arctan2(apart[1], apart[0])) % 90
        assert 30 - 1e-3 <= angle <= 60 + 1e-3 and 2 - 1e-5 <= np.linalg.norm(apart) <= 4 + 1e-5
        assert not state[17:31].any() and abs(state[INDEX["feet"]]).max() < 0.01
        states.append(state)
        headings.append(np.arctan2(state[4], state[3]))
    places = np.array(states)[:, :2]
    # uniform in (−10, 10): a deviation of 5.77 ± 0.18 for 200 draws, below 4.5 with a probability of 1e-12
    assert abs(places).max() <= 10 and (places.std(axis=0) > 4.5).all()
    assert are_frequencies(np.histogram(headings, 4, (-np.pi, np.pi))[0], np.full(4, 0.25), comparisons=4)


def test_the_reward_is_paid_on_arrival_and_ends_the_episode_only(env):
    """The target's edge lies where the same actions have led to before."""
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 8)).astype(np.float32)
    state, _ = env.reset(seed=1, options={"target": (99.0, 99.0)})
    path = np.array([state[:2], *(env.step(action)[0][:2] for action in actions)])
    moved = path[-1] - path[0]
    target = path[-1] + 0.499 * moved / np.linalg.norm(moved)
    env.reset(seed=1, options={"target": target})
    for action in actions:
        state, reward, terminated, _, info = env.step(action)
        assert reward == float(env.unwrapped.reward_fn(state, target)) == float(terminated)
        if terminated:
            break
    assert info["reason"] == "reached" and info["world_ended"] is False
    assert np.linalg.norm(state[:2] - target) <= 0.5
    batch = jax.jit(env.unwrapped.reward_fn)(np.zeros((5, 35), np.float32), np.zeros(2))
    assert batch.shape == (5,) and (batch == 1).all()


def test_lengths():
    far = SparseAnt(target=(99.0, 99.0))
    assert [step[3] for step in walk(far, 150)] == [False] * 149 + [True]
    # one of 41 lengths is missing with a probability of at most 41 · (40/41)¹⁰⁰⁰ < 1e-9
    lengths = {task.draw_episode(None, np.random.default_rng(i)).length for i in range(1000)}
    assert lengths == set(range(100, 141))


def test_out_of_range_actions_are_clipped():
    ends = []
    for factor in (1, 7):
        env = SparseAnt(target=None)
        env.reset(seed=3)
        ends.append(env.step(factor * np.array([1, -1] * 4))[0])
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    "action, words", [(np.zeros(7), r"\(8,\).*\(7,\)"), ([np.nan] * 8, "NaN"), (0.5, r"\(8,\)")]
)
def test_bad_actions(env, action, words):
    env.reset(seed=0)
    with pytest.raises(ValueError, match=words):
        env.unwrapped.step(action)


@pytest.mark.parametrize("target", [(1,), (1, 2, 3), (np.nan, 0), (0, np.inf), "near", ("a", "b"), {}])
def test_bad_targets(env, target):
    with pytest.raises(ValueError, match="two finite numbers"):
        env.reset(options={"target": target})
    with pytest.raises(ValueError, match="two finite numbers"):
        SparseAnt(target=target)


@pytest.mark.parametrize("radius", [0, -1, np.nan, np.inf])
def test_bad_radius(radius):
    with pytest.raises(ValueError, match="positive"):
        SparseAnt(radius=radius)


@pytest.mark.parametrize("value", [np.nan, 1e12])
def test_divergence_ends_the_world_with_the_last_good_numbers(env, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log
    state, _ = env.reset(seed=0)
    env.unwrapped.data.qvel[2] = value
    after, reward, terminated, truncated, info = env.step(np.zeros(8, np.float32))
    assert terminated and not truncated and reward == 0
    assert info["reason"] == "diverged" and info["world_ended"]
    np.testing.assert_array_equal(after, state)
    assert np.isfinite(env.reset(seed=1)[0]).all() and np.isfinite(env.step(np.zeros(8, np.float32))[0]).all()


def test_changes_to_the_stock_model_are_made_and_listed():
    model = physics.model()
    assert CHANGES.keys() == {"integrator", "timestep", "gear", "actions", "autoreset"}
    assert (model.actuator_gear[:, 0] == 40).all()
    assert model.opt.timestep * physics.SUBSTEPS == pytest.approx(0.12)
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_pictures():
    env = SparseAnt(render_mode="rgb_array")
    env.reset(seed=0)
    try:
        picture = env.render()
    except RuntimeError as error:
        pytest.skip(str(error))
    assert picture.shape == (360, 480, 3) and picture.dtype == np.uint8 and picture.std() > 10
    env.close()


def test_without_opengl_the_message_says_what_to_do(monkeypatch):
    from ggpi.envs import opengl

    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(opengl, "available", list)
    env = SparseAnt(render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="libegl1 or libosmesa6"):
        env.render()
    with pytest.raises(ValueError, match="render_mode"):
        SparseAnt(render_mode="human")


def test_without_mujoco_the_message_says_what_to_install():
    code = "import sys; sys.modules['mujoco'] = None; import ggpi.envs.ant as ant; ant.SPEC; ant.SparseAnt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode and "pip install '.[ant]'" in done.stderr
