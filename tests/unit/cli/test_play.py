"""`ggpi play`: an agent in the world of its models, as a table and as a film."""

import json
import os
import shutil
import sys
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box

import ggpi
import ggpi.agent.warnings
from ggpi._jax.batching import stack
from ggpi.cli.main import main
from ggpi.cli.play_episodes import Episode, PlayConfig, _started, table
from ggpi.cli.play_film import filming
from ggpi.envs import opengl
from ggpi.ghm import GHMs
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.film import film
from ggpi.lab.fit_directory import World
from ggpi.policies.linear import linear_policy

SPEC = ggpi.StateSpec(("place", "speed"), relative=(0,))


class Line(gymnasium.Env):
    """A point on a line that goes where it is pushed, with a picture of it."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012
    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time = np.zeros(2, np.float32), 0
        return self.state.copy(), {}

    def step(self, action):
        self.time += 1
        self.state = np.array([self.state[0] + 0.5 * action[0], action[0]], np.float32)
        return self.state.copy(), 0.0, bool(abs(self.state[0]) > 3), self.time >= 6, {}

    def render(self):
        picture = np.zeros((32, 64, 3), np.uint8)
        picture[:, int(np.clip(32 + 8 * self.state[0], 0, 63))] = 255
        return picture


@pytest.fixture(scope="module", autouse=True)
def line():
    gymnasium.register("test/Line-v0", entry_point=Line)
    yield
    del gymnasium.registry["test/Line-v0"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Fresh models of two policies that push to one side each."""
    folder = tmp_path_factory.mktemp("line")
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(200, 2)), rng.uniform(-1, 1, (200, 1))
    frame = fit_frame(states, actions, states, SPEC, None)
    keys = jax.random.split(jax.random.key(0), 2)
    models = stack([VAEConfig(width=8, depth=1).build(frame, key=key) for key in keys])
    policies = tuple(
        linear_policy(np.zeros((1, 2)), push, 0.0, name) for name, push in (("on", 1), ("back", -1))
    )
    ggpi.save(folder / "models", GHMs(policies, 0.8, (0.5,), (models, models)))
    world = {
        "format": "ggpi world 1",
        "env": "test/Line-v0",
        "names": SPEC.names,
        "relative": ["place"],
        "keys": [],
    }
    (folder / "world.json").write_text(json.dumps(world | {"options": {}, "actions": "1 numbers"}))
    return folder


def play(saved, *arguments):
    return main(["play", str(saved), "--samples", "4", *arguments])


@pytest.mark.slow
def test_a_row_for_each_episode(saved, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    given = ["--reward", "target:place=100,radius=200", "--episodes", "2", "--depth", "2"]
    assert play(saved, *given) == 0
    first = capsys.readouterr().out
    assert all(
        word in first for word in ("target:place=100", "γ = 0.8", "reached in step", "100% reached", "mean")
    )
    (row,) = [line for line in first.splitlines() if line.startswith("│       0")]
    assert " 6 " in row and "time" in row and f"{sum(0.8**t for t in range(6)):.4g}" in row
    assert "on" in row or "back" in row
    assert play(saved, *given) == 0
    assert capsys.readouterr().out == first, "the same seed, the same episodes"


def test_the_agent_prefers_what_pays(saved, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(saved)
    Path("mine.py").write_text(
        "import ggpi\n"
        "effort = ggpi.rewards.state_action(lambda state, action: action[0])\n"
        "def far(state): return abs(state[0]) > 3\n"
    )
    given = ["--reward", "python:mine.py:effort", "--depth", "1", "--episodes", "1"]
    assert play(saved, *given, "--terminal", "mine.py:far") == 0
    shown = capsys.readouterr().out
    assert "on 100%; 0 changes" in shown and " 6 " in shown and "reached" not in shown


def test_a_film(saved, tmp_path, capsys):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "films" / "out.mp4"
    given = ["--reward", "features:place=1", "--episodes", "2", "--depth", "1", "--video", str(path)]
    assert play(saved, *given) == 0
    assert f"film:    {path}" in capsys.readouterr().out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)  # JAX warns of forks
        about = next(reader := imageio_ffmpeg.read_frames(str(path)))
    reader.close()
    assert about["size"] == (64, 32) and about["fps"] == 8
    assert round(about["duration"] * 8) == 2 * 7, "the start and each step of both episodes"
    assert [entry.name for entry in path.parent.iterdir()] == ["out.mp4"]


def test_a_reward_that_no_sample_reaches_is_said_at_the_end(saved, capsys):
    given = ["--episodes", "1", "--depth", "1", "--reward"]
    with pytest.warns(
        ggpi.agent.warnings.NoRewardWarning,
        match=r"0 in every step.*--samples, now 4.*--depth, now 1.*larger radius",
    ):
        assert play(saved, *given, "target:place=1e6,radius=1") == 0


REWARD = ["--reward", "target:place=1,radius=1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--reward"),
        (["--reward", "target:x=1,radius=1"], "there is no state dimension 'x'; available: place, speed"),
        ([*REWARD, "--depth", "0"], "depth is at least 1, got 0"),
        ([*REWARD, "--samples", "0"], "num_samples is at least 1"),
        ([*REWARD, "--episodes", "0"], "episodes is at least 1, got 0"),
        ([*REWARD, "--max-steps", "0"], "max_steps is at least 1, got 0"),
        (
            [*REWARD, "--depth", "2.5"],
            "--depth: expected a whole number or inf, got '2.5'; see ggpi play --help",
        ),
        ([*REWARD, "--deep", "2"], "unrecognised arguments: --deep 2"),
        ([*REWARD, "--planner", "magic"], "--planner is one of exhaustive, halving, beam, got 'magic'"),
        ([*REWARD, "--planner", "beam", "--depth", "0"], "depth is at least 1, got 0"),
        ([*REWARD, "--gamma", "0.5", "--compare"], "--compare takes neither --depth inf"),
        ([*REWARD, "--depth", "inf", "--first-actions", "2"], "take neither --terminal nor --first-actions"),
        ([*REWARD, "--video", "out.gif"], "--video writes .mp4 files, got out.gif"),
        ([*REWARD, "--terminal", "nothing.py:end"], "there is no file nothing.py"),
    ],
)
def test_complaints(saved, capsys, arguments, words):
    assert main(["play", str(saved), *arguments]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert words in line and captured.out == ""


@pytest.fixture
def foreign(saved, tmp_path, monkeypatch):
    """A directory from elsewhere: its world.json names a module, and a file of this name lies beside it."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(saved, folder)
    name = f"trap_{tmp_path.name}"
    world = json.loads((folder / "world.json").read_text()) | {"env": f"{name}:Trap-v0"}
    (folder / "world.json").write_text(json.dumps(world))
    (folder / f"{name}.py").write_text(
        "import gymnasium, pathlib\n"
        "pathlib.Path('was-run').touch()\n"
        "gymnasium.register('Trap-v0', gymnasium.registry['test/Line-v0'].entry_point, max_episode_steps=6)\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", sys.path.copy())
    yield folder, f"{name}:Trap-v0"
    gymnasium.registry.pop("Trap-v0", None)


def test_a_world_does_not_say_what_is_imported(foreign, capsys):
    folder, env = foreign
    assert main(["play", ".", *REWARD]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"world.json names the environment {env}" in line and f"ggpi play . --env {env}" in line
    assert not (folder / "was-run").exists() and str(folder) not in sys.path
    assert main(["play", ".", *REWARD, "--env", "boat:Boat-v0"]) == 2
    assert f"holds models of {env}, --env is boat:Boat-v0" in capsys.readouterr().err
    assert not (folder / "was-run").exists()


def test_a_module_that_the_user_names_is_imported(foreign, capsys):
    folder, env = foreign
    few = ["--samples", "4", "--episodes", "1", "--depth", "1"]
    assert main(["play", ".", *REWARD, *few, "--env", env]) == 0
    assert (folder / "was-run").exists()
    assert main(["play", ".", *REWARD, *few]) == 0, "it is registered now"


def test_code_that_is_run_is_named(saved, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def far(state): return abs(state[0])\n")
    assert play(saved, "--reward", "python:mine.py:far", "--episodes", "1", "--depth", "1") == 0
    assert "ggpi: running the code of mine.py" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["file:out.mp4", "pipe:1.mp4", "concat:a|b.mp4", "http://x/out.mp4"])
def test_addresses_are_not_films(tmp_path, capsys, name):
    assert main(["play", str(tmp_path / "nothing"), *REWARD, "--video", name]) == 2
    assert "looks like an address" in capsys.readouterr().err


def test_a_film_in_a_directory_that_looks_like_an_address(tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.chdir(tmp_path)
    Path("pipe:1").mkdir()
    with film(Path("pipe:1/film.mp4")) as add:
        for _ in range(3):
            add(np.zeros((32, 64, 3), np.uint8))
    assert Path("pipe:1/film.mp4").stat().st_size > 0


def test_models_without_a_world(tmp_path, capsys):
    assert main(["play", str(tmp_path), *REWARD]) == 2
    assert "has no world.json; expected a directory that ggpi fit wrote" in capsys.readouterr().err


def test_a_world_without_pictures(saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Line, "metadata", {"render_modes": []})
    assert play(saved, *REWARD, "--video", str(tmp_path / "out.mp4")) == 2
    assert "test/Line-v0 cannot be filmed" in capsys.readouterr().err


def test_a_picture_that_fails_leaves_no_film(saved, tmp_path, capsys, monkeypatch):
    def fails(self):
        raise gymnasium.error.DependencyNotInstalled("paint is not installed")

    monkeypatch.setattr(Line, "render", fails)
    assert play(saved, *REWARD, "--video", str(tmp_path / "out.mp4")) == 2
    assert "no picture of test/Line-v0: paint is not installed; most need pygame" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_mujoco_is_filmed_without_a_screen(tmp_path, monkeypatch):
    for module in ("imageio", "imageio_ffmpeg", "mujoco"):
        pytest.importorskip(module)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    if not (kinds := opengl.available()):
        pytest.skip("neither EGL nor OSMesa is installed")
    with filming(World("Reacher-v5", ()), tmp_path / "out.mp4") as (env, add):
        assert os.environ["MUJOCO_GL"] == kinds[0]
        env.reset(seed=0)
        add(env)
        assert np.asarray(env.render()).std() > 10
    assert (tmp_path / "out.mp4").exists()


@pytest.mark.parametrize("is_mujoco", [True, False])
def test_graphics_that_fail_say_what_to_install(saved, tmp_path, capsys, monkeypatch, is_mujoco):
    def fails(self):
        raise AttributeError("'NoneType' object has no attribute 'glGetError'")

    monkeypatch.setattr(Line, "render", fails)
    monkeypatch.setattr(Line, "mujoco_renderer", None, raising=False)
    if not is_mujoco:
        monkeypatch.delattr(Line, "mujoco_renderer")
    assert play(saved, *REWARD, "--video", str(tmp_path / "out.mp4")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no picture of test/Line-v0" in line and "glGetError" in line
    assert ("install libegl1 or libosmesa6" in line) == is_mujoco


def test_rows_say_what_happened():
    episode = Episode(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 0]), "terminated")
    reward = ggpi.rewards.target((0.0,), 1.0, (0,))
    shown = table([episode], PlayConfig("target:…"), reward, 0.5, ["on", "back"])
    cells = [next(iter(column.cells)) for column in shown.columns]
    assert cells == ["0", "4", "terminated", "2", "0.375", "3", "on 75%, back 25%; 2 changes"]


def test_an_episode_starts_in_a_given_state():
    env = gymnasium.make("ggpi/PointMass-v0")
    world, start = World("ggpi/PointMass-v0", ("x", "y", "vx", "vy")), (0.25, 0.5, 0.03125, 0.0)
    copies = _started(env, world, PlayConfig("formula:x", start=start), 0)
    np.testing.assert_array_equal(copies.state[0], np.float32(start))
    with pytest.raises(ValueError, match="x, y, vx, vy: 4 numbers, got 2"):
        _started(env, world, PlayConfig("formula:x", start=(1.0, 2.0)), 0)


def test_the_ant_starts_in_a_given_state():
    pytest.importorskip("mujoco", reason="the ant needs MuJoCo")
    env = gymnasium.make("ggpi/SparseAnt-v0")
    observed, _ = env.reset(seed=3)
    for _ in range(5):
        observed, *_ = env.step(np.full(8, 0.3, np.float32))
    again, _ = env.reset(seed=0, options={"state": observed})
    np.testing.assert_allclose(again, observed, atol=1e-5)


def test_other_environments_cannot_be_put_in_a_state(saved, capsys):
    given = ["--reward", "features:place=1", "--depth", "1", "--episodes", "1"]
    assert play(saved, *given, "--start", "1,0") == 2
    assert "cannot be put in the state of --start" in capsys.readouterr().err
    assert play(saved, *given, "--start", "1,0", "--compare") == 2
    assert "--compare takes no --start" in capsys.readouterr().err
    assert play(saved, *given, "--start", "1,inf") == 2
    assert "finite numbers separated by commas" in capsys.readouterr().err


def test_a_finite_world_is_played_by_its_name(capsys, monkeypatch):
    """Right, in a corridor: the reward is met in step 3."""
    monkeypatch.setenv("COLUMNS", "200")
    given = ["--depth", "1", "--samples", "50", "--episodes", "1", "--max-steps", "4", "--start", "3,2"]
    assert main(["play", "four-rooms", "--reward", "target:x=6,y=2,radius=.5", *given]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│       0")]
    assert [cell.strip() for cell in row.split("│")][2] == "4" and " 3 " in row
    for wrong, words in (
        (["--start", "6,6"], "there is a wall at 6, 6"),
        (["--start", "1,2,3"], "x, y: 2 numbers, got 3"),
        (["--video", "out.mp4"], "--video and --compare need a directory"),
        (["--episodes", "0"], "episodes is at least 1"),
        (["--env", "a:B-v0"], "leave out --env"),
        (["--first-actions", "all"], "take neither --terminal nor --first-actions"),
    ):
        assert main(["play", "four-rooms", "--reward", "formula:x", *given, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_a_maze_of_ogbench_without_models_says_how_to_get_them(capsys, monkeypatch, tmp_path):
    pytest.importorskip("ogbench", reason="the maze needs the extra ogbench")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["play", "pointmaze-medium", "--reward", "formula:x"]) == 2
    assert "ggpi run ogbench-mazes --maze pointmaze-medium" in capsys.readouterr().err
