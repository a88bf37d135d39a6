"""OGBench's ant in its mazes: the same steps as its own, and walkers that go in eight directions."""

import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("ogbench")

from ggpi.envs import GymEnv
from ggpi.envs.ant.observation import observe
from ggpi.envs.ant.ogbench_ground import ogbench_ground
from ggpi.envs.directions import DIAGONALS, DIRECTIONS, EIGHT
from ggpi.envs.ogbench_bodies import Ant
from ggpi.envs.ogbench_maze import MAZES, OGBenchMaze, make_ogbench, seeded
from ggpi.lab.agents import sample_bank
from ggpi.policies.bank import PolicyBank
from ggpi.policies.symmetric import MOTORS
from ggpi.storage.pretrained import pretrained, provenance

ANTS = [maze for maze in MAZES if maze.startswith("ant")]


@pytest.fixture(scope="module")
def walkers():
    return pretrained("ogbench-ant-policies")


@pytest.mark.parametrize("maze", ANTS)
def test_a_step_is_ogbenchs_own(maze, walkers):
    """Walking, against walls too, from observations alone; the solver's first guess makes the difference."""
    world, env, key = OGBenchMaze(maze, num_threads=1), make_ogbench(maze), jax.random.key(0)
    before, actions, after = [], [], []
    for task in (1, 4):
        with seeded(task):
            state, _ = env.reset(seed=task, options={"task_id": task})
        for t in range(60):
            action = np.asarray(
                walkers[4 + t // 30].sample(state.astype(np.float32), key=jax.random.fold_in(key, t))
            )
            following, *_, info = env.step(action)
            if world.at_entrance(following) or info["success"]:
                break
            before.append(state), actions.append(action), after.append(following)
            state = following
    assert len(before) > 60 and np.abs(np.array(after)[:, :2] - np.array(before)[:, :2]).max() > 0.1
    np.testing.assert_allclose(world.step(before, actions), after, atol=1e-5)


def test_teleports_keep_everything_but_the_place():
    world = OGBenchMaze("antmaze-teleport", num_threads=1)
    assert world.teleports is not None
    state = world.start(1, np.random.default_rng(0))
    state[:, :2] = world.teleports.entrances[0]
    moved = world.step(np.repeat(state, 30, axis=0), np.zeros((30, 8)), np.random.default_rng(1))
    exits = np.linalg.norm(moved[:, None, :2] - world.teleports.exits, axis=2)
    assert exits.min(axis=1).max() < 0.2 and set(exits.argmin(axis=1)) == {0, 1, 2}
    np.testing.assert_allclose(moved[:, 2:], moved[:1, 2:].repeat(30, axis=0), atol=1e-6)


def test_spaces_and_success_are_those_of_ogbench():
    world = OGBenchMaze("antmaze-medium")
    env = make_ogbench("antmaze-medium")
    assert world.spec.size == env.observation_space.shape[0] == 29 and world.action_space == env.action_space
    assert world.radius == 0.5 and world.spec.predicted == (0, 1)
    with seeded(0):
        _, info = env.reset(options={"task_id": 2})
    inner, goal = env.unwrapped, info["goal"][:2]
    for distance in (0.0, 0.49, 0.51):
        place = goal + np.array([distance, 0.0])
        inner.set_xy(place)
        state = np.concatenate([place, np.zeros(27)]).astype(np.float32)
        assert bool(world.reward(goal).values(state)) == inner.compute_success()


@pytest.mark.filterwarnings("ignore:.*Box observation space m.*:UserWarning")
def test_gymnasium_accepts_it():
    check_env(GymEnv(OGBenchMaze("antmaze-medium", num_threads=1), 20), skip_render_check=True)


def test_motors_are_in_the_order_of_ogbenchs_file():
    model = ogbench_ground("RK4", 0).model
    names = [model.joint(joint).name for joint in model.actuator_trnid[:, 0]]
    ours = [f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle")]
    assert names == [ours[i] for i in MOTORS]


def test_walkers_go_in_eight_directions_and_keep_upright(walkers):
    """Both of two ants in each direction from any heading; speed and falls have large margins."""
    body, bank = Ant(ogbench_ground("RK4", 0).model, 5, 1), PolicyBank(walkers)
    index, states = np.arange(8).repeat(2), body.standing(np.zeros((16, 2)), np.random.default_rng(0))
    for key in jax.random.split(jax.random.key(0), 40):
        states = body.step(states, np.asarray(sample_bank(bank, index, states.astype(np.float32), key)))
    along = (states[:, :2] * EIGHT[index]).sum(axis=1)
    assert along.min() > 40 * 0.06
    assert observe(states[:, :15], states[:, 15:])[:, 8].min() > 0.5


def test_walkers_have_a_provenance(walkers):
    assert [walker.name for walker in walkers] == [*DIRECTIONS, *DIAGONALS]
    about = provenance("ogbench-ant-policies")
    assert about["command"].startswith("ggpi pretrain ogbench-ant")
    assert about["config"]["walk"]["world"] == "ogbench-ant" and about["curve"]["along"][-1] > 0.1


def test_turned_worlds_have_turned_walkers(walkers):
    """An eighth turn of the world takes right to right up, with the same motor commands."""
    state = Ant(None, 5, 1).standing(np.zeros((5, 2)), np.random.default_rng(3))
    turned, half = state.copy(), np.pi / 8
    w, x, y, z = state[:, 3:7].T
    turned[:, 3:7] = np.stack(
        [
            np.cos(half) * w - np.sin(half) * z,
            np.cos(half) * x - np.sin(half) * y,
            np.cos(half) * y + np.sin(half) * x,
            np.cos(half) * z + np.sin(half) * w,
        ],
        axis=1,
    )
    cos = sin = np.sqrt(0.5)
    vx, vy = state[:, 15], state[:, 16]
    turned[:, 15], turned[:, 16] = cos * vx - sin * vy, sin * vx + cos * vy
    right, right_up = (walkers[k].mode(x.astype(np.float32)) for k, x in ((0, state), (4, turned)))
    np.testing.assert_allclose(right, right_up, atol=2e-4)
