"""Point mazes of OGBench in the studio, with the models that `ggpi run ogbench-mazes` leaves in the cache."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ggpi.envs import GymVectorEnv
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.ghm.base import GHMs
from ggpi.lab.cache import finished, kept
from ggpi.lab.ogbench.mazes import PRESETS, training_of
from ggpi.lab.ogbench.models import ALPHA, FOLDER
from ggpi.policies import ogbench_policies
from ggpi.rollout.collection import collect
from ggpi.studio.bodies import ArrayBody
from ggpi.studio.fitted import CODE
from ggpi.studio.worlds import World

COLLECTED, LANDMARKS = 100_000, 3_000
"""Transitions whose states may become landmarks, and how many do."""
STATES = """\
from ggpi.envs.ogbench_maze import OGBenchMaze
envs   = ggpi.envs.GymVectorEnv(OGBenchMaze("{name}"), 256, 200)
states = ggpi.collect(envs, ghms.policies, {count}, switch_every=80, seed=0).state
"""


class _InTurn:
    """Steps of one thread at a time: MuJoCo's pool of threads is shared."""

    lock = threading.Lock()

    def __init__(self, maze: OGBenchMaze):
        self.maze = maze

    def step(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        with self.lock:
            return self.maze.step(states, actions, rng)


def cached_models(name: str) -> tuple[GHMs, str]:
    """The models of a maze, those of the largest preset that was run, and their directory; raises if there are none."""
    for preset in ("paper", "cpu"):
        out = kept(training_of(replace(PRESETS[preset], maze=name), 0), FOLDER)
        if (ghms := finished(out, ogbench_policies())) is not None:
            return ghms.with_alpha(ALPHA), str(out)
    raise ValueError(
        f"there are no models of {name} yet: `ggpi run ogbench-mazes --maze {name}` trains them, about ten "
        "minutes on two cores, and keeps them in the cache"
    )


def ogbench_world(name: str) -> World:
    """A maze as OGBench has it, first with its task 1, in the closed loop."""
    maze, (ghms, place) = OGBenchMaze(name), cached_models(name)
    low, high = maze.bounds
    half, task = maze.unit / 2, maze.task(1)

    def at(x: float, y: float) -> np.ndarray | None:
        state = np.array([x, y], np.float32)
        return state if maze.is_free(state) else None

    def body(seed: int) -> ArrayBody:
        start = maze.start(1, np.random.default_rng(seed))[0] if seed else task.start
        return ArrayBody(_InTurn(maze), np.asarray(start, np.float32), at, seed)

    def landmarks() -> np.ndarray:
        with _InTurn.lock:
            envs = GymVectorEnv(maze, 256, 200)
            return collect(envs, ghms.policies, COLLECTED, switch_every=80, seed=0).state

    x, y = task.goal
    return World(
        name,
        f"OGBench's {name}",
        ghms,
        maze.spec.names,
        (float(low[0]), float(low[1]), float(high[0]), float(high[1])),
        body,
        f"disc({x:g}, {y:g}, {maze.radius:g})",
        walls=tuple((a - half, b - half, a + half, b + half) for a, b in maze.walls.tolist()),
        dynamics=lambda: _InTurn(maze),
        at=at,
        seconds=0.05,
        max_steps=1_000,
        samples=16,
        depth=0,
        landmarks=landmarks,
        num_landmarks=LANDMARKS,
        code=CODE.replace("{load}", f'ggpi.load("{place}/models").with_alpha({{alpha}})'),
        played=name,
        landmarks_code=STATES.replace("{name}", name).replace("{count}", str(COLLECTED)),
    )
