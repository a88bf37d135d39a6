"""Directories of `ggpi fit` in the studio: the map, the bodies and the dynamics of their environments.

Environments of `ggpi.envs` step from any state, so that an agent can be put anywhere and plans can be compared with
simulation. Others are shown as they are: an agent starts where they reset it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.data.files import read_npz
from ggpi.envs.ant import task
from ggpi.envs.ant.observation import observe
from ggpi.envs.environment import Confined, Environment, GymEnv, GymVectorEnv
from ggpi.envs.maze import PointMaze
from ggpi.ghm.base import GHMs
from ggpi.ghm.samplers import ModelSampler
from ggpi.lab.fit_directory import World as Directory
from ggpi.lab.fit_directory import read_models, read_world, shipped, trusted
from ggpi.lab.maze.tasks import targets_by_turns
from ggpi.rewards.machine import plane_of
from ggpi.rollout.collection import collect
from ggpi.studio.bodies import AntBody, ArrayBody, GymBody, ant_geometry
from ggpi.studio.worlds import Box, World

ANT, ANT_STEP = "ggpi/SparseAnt-v0", 0.12
COLLECTED = 20_000
"""Transitions whose states may become landmarks."""
ANT_LANDMARKS = f"""\
from ggpi.lab.ant.models import transitions
states = transitions({COLLECTED}, 0).state
"""
LANDMARKS = """\
import gymnasium
world  = gymnasium.make({env}).unwrapped.environment
envs   = ggpi.envs.GymVectorEnv(world, 64, 60)
states = ggpi.collect(envs, ghms.policies, {count}, switch_every=30, seed=0).state
"""
CODE = """\
ghms   = {load}
reward = ggpi.rewards.formula({formula}, {names})
"""


def fitted_world(directory: Path, name: str | None = None, env: str | None = None) -> World:
    """The world of a directory of `ggpi fit`, or of shipped models.

    Args:
        directory: the directory, or the name of shipped models.
        name: what the studio calls it.
        env: the environment with its module, if that has to be imported; see `ggpi play --env`.
    """
    place = shipped(directory)
    about = trusted(read_world(place), env, place)
    ghms = read_models(place)
    world = _plain(about, ghms, place, directory, name or place.resolve().name)
    if about.env == ANT:
        return _ant(world)
    inner = about.make().unwrapped
    return _confined(world, inner.environment, about) if isinstance(inner, GymEnv) else world


def _plain(about: Directory, ghms: GHMs, place: Path, said: Path, name: str) -> World:
    """What can be shown of any environment."""
    plane = plane_of(about.names)
    states = read_npz(place / "data.npz").state if (place / "data.npz").exists() else None
    middle = _middle(ghms, plane) if states is None else np.median(states[:, plane], axis=0)
    target = f"disc({middle[0]:.2g}, {middle[1]:.2g}, "
    bounds = _bounds(ghms, plane) if states is None else _around(states[:, plane])
    load = f'ggpi.load("{said / "models"}")' if place == said else f'ggpi.pretrained("{said}")'

    def body(seed: int) -> GymBody:
        env = about.make()
        return GymBody(env, about.reader(env), seed)

    return World(
        name,
        name.replace("-", " ").capitalize(),
        ghms,
        about.names,
        bounds,
        body,
        f"{target}{_rounded((bounds[2] - bounds[0]) / 8)})",
        plane=plane,
        landmarks=None if states is None else lambda: states,
        code=CODE.replace("{load}", load),
        landmarks_code=f'states = ggpi.data.read_npz("{place / "data.npz"}").state\n',
        directory=str(said),
        played=str(said),
    )


def _ant(world: World) -> World:
    def dynamics() -> Any:
        from ggpi.envs.ant import AntDynamics

        return AntDynamics()

    def at(x: float, y: float) -> np.ndarray:
        qpos = task.STANDING.copy()
        qpos[:2] = x, y
        return observe(qpos, np.zeros(14))

    def landmarks() -> np.ndarray:
        from ggpi.lab.ant.models import transitions

        return transitions(COLLECTED, 0).state

    return replace(
        world,
        bounds=(-5.0, -5.0, 5.0, 5.0),
        formula="disc(2, 2, 0.5)",
        body=AntBody,
        dynamics=dynamics,
        at=at,
        seconds=ANT_STEP,
        landmarks=landmarks,
        landmarks_code=ANT_LANDMARKS,
        geometry=ant_geometry(),
    )


def _confined(world: World, environment: Environment, about: Directory) -> World:
    """A world of `ggpi.envs`, whose step is a function of arrays."""
    space, size = environment.observation_space, environment.spec.size
    low, high = space.low[list(world.plane)], space.high[list(world.plane)]
    bounds = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    walls, first = (), "disc(0.6, 0.6, 0.2)"
    if isinstance(environment, PointMaze):
        walls = tuple((x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in environment.walls.tolist())
        x, y = environment.centre(*targets_by_turns(environment)[1][-1])
        first = f"disc({x:g}, {y:g}, 0.5)"

    def at(x: float, y: float) -> np.ndarray | None:
        state = np.zeros(size, np.float32)
        state[list(world.plane)] = x, y
        if isinstance(environment, PointMaze):
            return state if environment.is_free(state[:2]) else None
        return state if not isinstance(environment, Confined) or environment.possible(state) else None

    def body(seed: int) -> ArrayBody:
        start = environment.start(1, np.random.default_rng(seed))[0].astype(np.float32)
        if seed == 0 and isinstance(environment, PointMaze):
            start[:2] = environment.centre(*np.argwhere(environment.free)[0])
        elif seed == 0:
            start[list(world.plane)] = low + 0.2 * (high - low)
        return ArrayBody(environment, start, at, seed)

    def landmarks() -> np.ndarray:
        envs = GymVectorEnv(environment, 64, 60)
        return collect(envs, world.ghms.policies, COLLECTED, switch_every=30, seed=0).state

    made = replace(world, bounds=bounds, walls=walls, formula=first, body=body, at=at)
    options = "".join(f", {name}={value!r}" for name, value in about.options.items())
    lines = LANDMARKS.replace("{env}", f'"{about.env}"{options}').replace("{count}", str(COLLECTED))
    return replace(made, dynamics=lambda: environment, landmarks=landmarks, landmarks_code=lines)


def _middle(ghms: GHMs, plane: tuple[int, int]) -> np.ndarray:
    x0, y0, x1, y1 = _bounds(ghms, plane)
    return np.array([(x0 + x1) / 2, (y0 + y1) / 2])


def _bounds(ghms: GHMs, plane: tuple[int, int]) -> Box:
    """Three standard deviations around what the models were trained on."""
    sampler = ghms.sampler()
    assert isinstance(sampler, ModelSampler)
    frame = sampler.models[0].frame
    found = []
    for i in plane:
        if i in frame.kept:
            k = frame.kept.index(i)
            mean, scale = np.asarray(frame.state_mean)[..., k], np.asarray(frame.state_scale)[..., k]
            found.append((float((mean - 3 * scale).min()), float((mean + 3 * scale).max())))
        else:
            found.append((-5.0, 5.0))
    return found[0][0], found[1][0], found[0][1], found[1][1]


def _around(points: np.ndarray) -> Box:
    """What holds almost all points, with a margin."""
    low, high = np.quantile(points, [0.002, 0.998], axis=0)
    margin = 0.06 * np.maximum(high - low, 1e-6)
    x0, y0, x1, y1 = (*(low - margin), *(high + margin))
    return float(x0), float(y0), float(x1), float(y1)


def _rounded(number: float) -> str:
    return f"{number:.2g}"
