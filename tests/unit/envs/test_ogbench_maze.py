"""OGBench's mazes as dynamics on arrays: the same steps, tasks and success as its own environments."""

import builtins
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import chisquare

pytest.importorskip("ogbench")

from ggpi.envs import Environment, GymEnv, GymVectorEnv
from ggpi.envs.environment import Confined
from ggpi.envs.ogbench_maze import MAZES, OGBenchMaze, check_layout, make_ogbench, seeded


@pytest.fixture(scope="module", params=MAZES)
def world(request):
    return OGBenchMaze(request.param)


@pytest.fixture(scope="module", params=[maze for maze in MAZES if maze.startswith("point")])
def balls(request):
    return OGBenchMaze(request.param)


@pytest.fixture(scope="module")
def teleport():
    return OGBenchMaze("pointmaze-teleport")


def test_mazes_are_environments(world):
    assert isinstance(world, Environment) and isinstance(world, Confined)
    assert list(world.tasks) == [1, 2, 3, 4, 5]
    for task in world.tasks.values():
        assert world.possible(task.start) and world.safe[world.cell(task.goal)]


def test_cells_are_those_of_ogbench(world):
    theirs = make_ogbench(world.maze).unwrapped
    for row, column in np.ndindex(world.free.shape):
        i = len(world.free) - 1 - row
        assert world.free[row, column] == (theirs.maze_map[i, column] == 0)
        np.testing.assert_allclose(world.centre(row, column), theirs.ij_to_xy((i, column)))
        assert world.cell(world.centre(row, column) + np.array([1.9, -1.9])) == (row, column)


def test_a_step_is_ogbenchs_own(balls):
    """Wherever it leads, also into walls and along them; teleports are tested below."""
    env, rng = make_ogbench(balls.maze), np.random.default_rng(0)
    touched, before, actions, after = 0, [], [], []
    for number in range(6):
        with seeded(number):
            state, _ = env.reset(seed=number, options={"task_id": 1 + number % 5})
        way = rng.uniform(-1, 1, 2)
        for t in range(60):
            way = rng.uniform(-1, 1, 2) if t % 15 == 0 else way
            action = np.clip(way + 0.2 * rng.normal(size=2), -1, 1).astype(np.float32)
            following, *_, info = env.step(action)
            if balls.at_entrance(following) or info["success"]:
                break
            touched += not np.allclose(following, state + 0.2 * action)
            before.append(state), actions.append(action), after.append(following)
            state = following
    assert touched > 20
    np.testing.assert_allclose(balls.step(before, actions, rng), after, atol=1e-6)
    np.testing.assert_allclose(balls.step(before[:1], actions[:1], rng), after[:1], atol=1e-6)


def test_no_states_make_no_steps(world):
    empty, size = np.zeros((0, world.spec.size)), world.action_space.shape[0]
    assert world.step(empty, np.zeros((0, size)), np.random.default_rng(0)).shape == empty.shape


def test_teleports_move_what_was_seen_at_an_entrance(teleport):
    """OGBench's next observation after one near an entrance is a step away from an exit."""
    env, exits = make_ogbench(teleport.maze).unwrapped, teleport.teleports.exits
    action, seen = np.array([0.1, -0.2]), []
    with seeded(0):
        env.reset(options={"task_id": 1})
        for _ in range(30):
            env.set_xy(teleport.teleports.entrances[0] + np.array([1.6, 0.0]))
            entering, *_ = env.step(np.array([-1.0, 0.0]))
            assert teleport.at_entrance(entering)
            seen.append(env.step(action)[0])
    possible = teleport.step(exits, np.tile(action, (3, 1)), np.random.default_rng(0))
    apart = np.linalg.norm(np.array(seen)[:, None] - possible, axis=2)
    assert apart.min(axis=1).max() < 1e-6 and set(apart.argmin(axis=1)) == {0, 1, 2}


def test_exits_are_equally_probable(teleport):
    entrance = np.repeat(teleport.teleports.entrances[:1], 3_000, axis=0)
    moved = teleport.step(entrance, np.zeros((3_000, 2)), np.random.default_rng(0))
    apart = np.linalg.norm(moved[:, None] - teleport.teleports.exits, axis=2)
    assert apart.min(axis=1).max() < 1e-6
    assert chisquare(np.bincount(apart.argmin(axis=1), minlength=3)).pvalue > 1e-3


def test_a_goal_is_rewarded_where_ogbench_counts_success():
    world = OGBenchMaze("pointmaze-medium")
    env = make_ogbench(world.maze).unwrapped
    with seeded(0):
        _, info = env.reset(options={"task_id": 2})
    goal, reward = info["goal"], world.reward(info["goal"])
    for distance in (0.0, 0.9, 0.999, 1.001, 1.2):
        place = goal + np.array([distance, 0.0])
        env.set_xy(place)
        assert bool(reward.values(place.astype(np.float32))) == env.compute_success()


def test_starts_are_free_and_seeded(world):
    starts = world.start(200, np.random.default_rng(3))
    assert world.is_free(starts[:, :2], world.body.margin).all() and not world.at_entrance(starts).any()
    np.testing.assert_array_equal(starts, world.start(200, np.random.default_rng(3)))


def test_gymnasium_accepts_them():
    check_env(GymEnv(OGBenchMaze("pointmaze-medium"), 50), skip_render_check=True)
    many = GymVectorEnv(OGBenchMaze("pointmaze-medium"), 8, 5)
    states, _ = many.reset(seed=0)
    for _ in range(6):
        states, *_ = many.step(np.ones((8, 2), np.float32))
    assert many.environment.possible(states).all()


def test_seeding_leaves_the_global_generator_alone():
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.RandomState(1).uniform(size=2)
    with seeded(5):
        inside = np.random.uniform()  # noqa: NPY002
    assert inside == np.random.RandomState(5).uniform()
    np.testing.assert_array_equal(np.random.uniform(size=2), expected)  # noqa: NPY002


def test_unknown_mazes_tasks_and_goals_in_walls_raise():
    with pytest.raises(
        ValueError, match=r"one of pointmaze-medium, .*antmaze-teleport, got 'pointmaze-small'"
    ):
        OGBenchMaze("pointmaze-small")
    with pytest.raises(ValueError, match="num_threads is at least 1, got 0"):
        OGBenchMaze(num_threads=0)
    world = OGBenchMaze("pointmaze-medium")
    for task in (0, 6):
        with pytest.raises(ValueError, match=f"has the tasks 1, 2, 3, 4, 5, got {task}"):
            world.task(task)
    for goal in (world.centre(0, 0), world.walls[0], [np.nan, 0.0], [1e6, 0.0], [0.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="outside of walls"):
            world.reward(goal)


def test_a_missing_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name == "ogbench":
            raise ImportError("no module named ogbench")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install '\.\[ogbench\]'"):
        OGBenchMaze()


def laid_out(maze="pointmaze-medium", **changes):
    """What is read from OGBench's environment, some of it changed."""
    env = make_ogbench(maze).unwrapped
    names = ("maze_map", "task_infos", "model", "frame_skip", "_maze_unit", "_goal_tol", "_teleport_info")
    parts = {name: getattr(env, name) for name in (*names, "observation_space", "ij_to_xy")}
    return SimpleNamespace(**(parts | changes))


def test_another_layout_raises():
    check_layout(laid_out())
    lacking = laid_out()
    del lacking._goal_tol
    with pytest.raises(ValueError, match=r"it has no _goal_tol\. Install ogbench>=1\.2,<2"):
        check_layout(lacking)
    with pytest.raises(ValueError, match=r"observations are \(x, y\), got the shape \(4,\)"):
        check_layout(laid_out(observation_space=gymnasium.spaces.Box(-1, 1, (4,))))
    with pytest.raises(ValueError, match=r"cell \(2, 4\) is at \(4, 2\)"):
        check_layout(laid_out(ij_to_xy=lambda cell: (0, 0) if cell == (1, 1) else cell[::-1]))
    with pytest.raises(ValueError, match="a task has no goal_ij"):
        check_layout(laid_out(task_infos=[{"init_ij": (1, 1)}]))
    with pytest.raises(ValueError, match=r"have the shape \(29,\), got the shape \(2,\) and 2 positions"):
        check_layout(laid_out(), (15, 14, 8))
    check_layout(laid_out("antmaze-medium"), (15, 14, 8))
