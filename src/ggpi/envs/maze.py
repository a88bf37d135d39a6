"""PointMaze of gymnasium-robotics (extra `maze`) without its goal: a ball, pushed through corridors.

The ball's radius is 0.1, a cell's width 1, and a push of 1 accelerates by 24 per second². One step holds an action
for `repeat` of the environment's own steps of 0.01 s, each with its own limit of the velocity; the model is theirs,
and many balls are stepped at once in compiled threads. At a speed of 2, a step of 0.1 s goes 0.2 cells far: the
mean 1/(1−γ) steps of γ = 0.9 are 2 cells, those of γ = 0.95 are 4, about a corridor.

The state is (x, y, vx, vy), x to the right and y up, the maze's centre at 0. Walls make places differ, so models
have to see positions: do not use `StateSpec.relative` here.
"""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from ggpi.data import StateSpec
from ggpi.envs.environment import GymEnv, GymVectorEnv
from ggpi.envs.pool import rolled_out

RADIUS = 0.1
FASTEST = 5.0
NAMED = {"UMaze": "U_MAZE", "Medium": "MEDIUM_MAZE", "Large": "LARGE_MAZE"}
"""The mazes of gymnasium-robotics, and what it calls their maps."""


@dataclass(frozen=True)
class PointMaze:
    """A maze: UMaze, Medium, Large, or a drawing with `#` for walls, the first line at the top."""

    maze: str = "UMaze"
    repeat: int = 10
    """Steps of 0.01 s for which an action is held."""
    num_threads: int = 2

    spec = StateSpec(("x", "y", "vx", "vy"))

    def __post_init__(self):
        if self.repeat < 1 or self.num_threads < 1:
            raise ValueError(
                f"repeat and num_threads are at least 1, got {self.repeat} and {self.num_threads}"
            )

    @cached_property
    def free(self) -> np.ndarray:
        """Which cells are free [rows, columns], row 0 at the top."""
        if self.maze in NAMED:
            return np.array(
                [[cell != 1 for cell in row] for row in getattr(_robotics().maps, NAMED[self.maze])]
            )
        return _drawn(self.maze)

    @cached_property
    def size(self) -> np.ndarray:
        """Width and height."""
        return np.array(self.free.shape[::-1], float)

    def centre(self, row: ArrayLike, column: ArrayLike) -> np.ndarray:
        """(x, y) of the middle of a cell, or of many."""
        return (
            np.stack([np.asarray(column) + 0.5, self.size[1] - np.asarray(row) - 0.5], axis=-1)
            - self.size / 2
        )

    def cell(self, place: ArrayLike) -> tuple[int, int]:
        """(row, column) of the cell of a place (x, y)."""
        x, y = np.asarray(place, float)
        return int(self.size[1] / 2 - y), int(x + self.size[0] / 2)

    @property
    def unit(self) -> float:
        """The width of a cell."""
        return 1.0

    @cached_property
    def walls(self) -> np.ndarray:
        """The middles of the wall's cells [n, 2]."""
        return self.centre(*np.nonzero(~self.free))

    def is_free(self, places: ArrayLike, margin: float = RADIUS) -> np.ndarray:
        """Whether places (x, y) are inside and more than `margin` away from every wall."""
        places = np.asarray(places, float)[..., None, :]
        gaps = np.maximum(np.abs(places - self.walls) - 0.5, 0)
        inside = (np.abs(places[..., 0, :]) <= self.size / 2).all(axis=-1)
        return np.asarray(inside & (np.hypot(gaps[..., 0], gaps[..., 1]) > margin).all(axis=-1))

    def possible(self, states: ArrayLike) -> np.ndarray:
        """Which of states [..., 4] have the ball's centre inside the maze and not inside a wall."""
        return self.is_free(np.asarray(states)[..., :2], 0.0)

    @cached_property
    def observation_space(self) -> Box:
        high = np.append(self.size / 2, [FASTEST + 1, FASTEST + 1]).astype(np.float32)
        return Box(-high, high, dtype=np.float32)

    @cached_property
    def action_space(self) -> Box:
        return Box(-1.0, 1.0, (2,), np.float32)

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """First states: at rest, anywhere where the ball touches no wall."""
        states = np.zeros((n, 4))
        missing = np.ones(n, bool)
        while missing.any():
            states[missing, :2] = rng.uniform(-self.size / 2, self.size / 2, (missing.sum(), 2))
            missing = ~self.is_free(states[:, :2])
        return states

    def step(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """One step of each state [n, 4]."""
        model, data = self._simulators
        moving = np.insert(np.asarray(states, float), 0, 0.0, axis=1)  # MuJoCo's states begin with the time
        pushes = np.clip(np.asarray(actions, float), -1, 1)[:, None]
        for _ in range(self.repeat if len(moving) else 0):
            moving[:, 3:] = np.clip(moving[:, 3:], -FASTEST, FASTEST)
            moving = rolled_out(model, data, moving, pushes)[:, 0]
        return moving[:, 1:]

    @cached_property
    def _simulators(self) -> tuple[Any, list[Any]]:
        """The model that gymnasium-robotics makes of the map, and room to step it in each thread."""
        import mujoco

        _robotics()
        made = gymnasium.make("PointMaze_UMaze-v3", maze_map=(~self.free).astype(int).tolist())
        Path(made.unwrapped.tmp_xml_file_path).unlink(missing_ok=True)
        model = made.unwrapped.model
        made.close()
        return model, [mujoco.MjData(model) for _ in range(self.num_threads)]


def _robotics() -> Any:
    try:
        import gymnasium_robotics
    except ImportError as error:
        raise ImportError("mazes need the extra: pip install '.[maze]' in the checkout") from error
    gymnasium.register_envs(gymnasium_robotics)
    return gymnasium_robotics


def _drawn(drawing: str) -> np.ndarray:
    lines = drawing.strip("\n").splitlines()
    if "#" not in drawing or len({len(line) for line in lines}) != 1:
        raise ValueError(
            f"a maze is one of {', '.join(NAMED)}, or a drawing with '#' for walls and lines of one length, "
            f"got {drawing!r}"
        )
    free = np.array([[cell != "#" for cell in line] for line in lines])
    if not free.any() or free[[0, -1]].any() or free[:, [0, -1]].any():
        raise ValueError(f"a maze has free cells and walls all around, got\n{drawing}")
    return free


def point_maze(maze: str = "UMaze", repeat: int = 10, max_steps: int = 100) -> GymEnv:
    """The entry point of `ggpi/PointMaze-v0`."""
    return GymEnv(PointMaze(maze, repeat), max_steps)


def point_mazes(
    num_envs: int = 1, maze: str = "UMaze", repeat: int = 10, max_steps: int = 100
) -> GymVectorEnv:
    """The vector entry point of `ggpi/PointMaze-v0`."""
    return GymVectorEnv(PointMaze(maze, repeat), num_envs, max_steps)
