"""Mazes of OGBench (extra `ogbench`): its environments untouched, and the same steps for many states at once.

A ball or an ant (`ogbench_bodies`) moves in cells of width 4. Cells are numbered as in `PointMaze`, row 0 at the top;
OGBench's own (i, j) counts rows from the bottom. A goal is a place, reached within `radius`; each of the tasks 1 … 5
has a cell to start in and a cell of the goal, and OGBench adds noise to both.

In the mazes `teleport` a body near an entrance is moved to one of three exits, drawn at random. OGBench's observation
is that before the move, so in terms of observations a body that is seen near an entrance begins its next step at an
exit.

`make_ogbench` makes OGBench's own environment; `step` here has the same result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from ggpi.data import StateSpec
from ggpi.envs.ogbench_bodies import BODIES, Body
from ggpi.rewards import Reward, target

MAZES = tuple(f"{body}-{size}" for body in BODIES for size in ("medium", "large", "giant", "teleport"))
LAYOUT = ("maze_map", "task_infos", "model", "frame_skip", "_maze_unit", "_goal_tol", "_teleport_info")
"""What is read from OGBench's environment."""


class Task(NamedTuple):
    """Where a task starts and where its goal is: the middles (x, y) of cells, to which OGBench adds noise."""

    start: np.ndarray
    goal: np.ndarray


class Teleports(NamedTuple):
    """Middles of entrances [n, 2] and exits [m, 2], and how near to an entrance a body is moved."""

    entrances: np.ndarray
    exits: np.ndarray
    reach: float


@dataclass(frozen=True)
class OGBenchMaze:
    """One of OGBench's mazes, as dynamics on arrays; its name begins with the body, `pointmaze-` or `antmaze-`."""

    maze: str = "pointmaze-medium"
    num_threads: int = 2

    def __post_init__(self):
        if self.maze not in MAZES:
            raise ValueError(f"a maze of OGBench is one of {', '.join(MAZES)}, got {self.maze!r}")
        if self.num_threads < 1:
            raise ValueError(f"num_threads is at least 1, got {self.num_threads}")
        _ = self._inner  # a missing extra or another layout is an error now

    @cached_property
    def _inner(self) -> Any:
        env = make_ogbench(self.maze).unwrapped
        check_layout(env, BODIES[self.kind].sizes)
        return env

    @property
    def kind(self) -> str:
        """The first word of the name."""
        return self.maze.partition("-")[0]

    @cached_property
    def body(self) -> Body:
        """What moves."""
        return BODIES[self.kind](self._inner.model, self._inner.frame_skip, self.num_threads)

    @property
    def spec(self) -> StateSpec:
        return BODIES[self.kind].spec

    @cached_property
    def free(self) -> np.ndarray:
        """Which cells are free [rows, columns], row 0 at the top."""
        return np.asarray(self._inner.maze_map)[::-1] == 0

    @cached_property
    def safe(self) -> np.ndarray:
        """Free cells without an entrance of a teleport [rows, columns]."""
        return self.free & ~self.at_entrance(self.centre(*np.indices(self.free.shape)))

    @property
    def unit(self) -> float:
        """The width of a cell."""
        return float(self._inner._maze_unit)

    @property
    def radius(self) -> float:
        """How near to a goal a body has reached it."""
        return float(self._inner._goal_tol)

    @cached_property
    def tasks(self) -> dict[int, Task]:
        """The official tasks by their ids, from 1."""
        return {
            i: Task(*(np.array(self._inner.ij_to_xy(info[name]), float) for name in ("init_ij", "goal_ij")))
            for i, info in enumerate(self._inner.task_infos, start=1)
        }

    @cached_property
    def teleports(self) -> Teleports | None:
        """Where bodies are moved, in the maze that has such places."""
        info = self._inner._teleport_info
        if info is None:
            return None
        entrances, exits = (np.array(info[name], float) for name in ("teleport_in_xys", "teleport_out_xys"))
        return Teleports(entrances, exits, 1.5 * info["teleport_radius"])

    def task(self, task_id: int) -> Task:
        """A task by its id."""
        if task_id not in self.tasks:
            raise ValueError(f"{self.maze} has the tasks {', '.join(map(str, self.tasks))}, got {task_id!r}")
        return self.tasks[task_id]

    def reward(self, goal: ArrayLike) -> Reward:
        """1 for arriving where OGBench counts a goal as reached."""
        goal = np.asarray(goal, float)
        if goal.shape != (2,) or not self.possible(goal):
            raise ValueError(
                f"a goal is a place (x, y) outside of walls, got {goal}; the free cells of {self.maze} are in `free`, "
                "and `centre(row, column)` is the middle of one"
            )
        return target(goal, self.radius)

    def centre(self, row: ArrayLike, column: ArrayLike) -> np.ndarray:
        """(x, y) of the middle of a cell, or of many."""
        upwards = len(self.free) - 1 - np.asarray(row)
        return self.unit * (np.stack([np.asarray(column), upwards], axis=-1) - 1.0)

    def cell(self, place: ArrayLike) -> tuple[int, int]:
        """(row, column) of the cell of a place (x, y)."""
        column, upwards = np.floor(np.asarray(place, float) / self.unit + 1.5).astype(int)
        return int(len(self.free) - 1 - upwards), int(column)

    @cached_property
    def walls(self) -> np.ndarray:
        """The middles of the wall's cells [n, 2]."""
        return self.centre(*np.nonzero(~self.free))

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower left and the upper right corner."""
        rows, columns = self.free.shape
        return self.centre(rows - 0.5, -0.5), self.centre(-0.5, columns - 0.5)

    def is_free(self, places: ArrayLike, margin: float = 0.0) -> np.ndarray:
        """Whether places (x, y) are inside and more than `margin` away from every wall."""
        places = np.asarray(places, float)[..., None, :]
        gaps = np.maximum(np.abs(places - self.walls) - self.unit / 2, 0)
        low, high = self.bounds
        inside = ((places[..., 0, :] >= low) & (places[..., 0, :] <= high)).all(axis=-1)
        return np.asarray(inside & (np.hypot(gaps[..., 0], gaps[..., 1]) > margin).all(axis=-1))

    def possible(self, states: ArrayLike) -> np.ndarray:
        """Which of states [..., D] have the body's centre inside the maze and not inside a wall."""
        return self.is_free(np.asarray(states)[..., :2])

    @cached_property
    def observation_space(self) -> Box:
        low, high = (np.full(self.spec.size, sign * np.inf, np.float32) for sign in (-1, 1))
        low[:2], high[:2] = self.bounds
        return Box(low, high, dtype=np.float32)

    @cached_property
    def action_space(self) -> Box:
        return Box(-1.0, 1.0, (self.body.sizes[2],), np.float32)

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """First states: anywhere where the body touches no wall and is not near an entrance."""
        places, missing = np.zeros((n, 2)), np.ones(n, bool)
        while missing.any():
            places[missing] = rng.uniform(*self.bounds, (missing.sum(), 2))
            missing = ~self.is_free(places, self.body.margin) | self.at_entrance(places)
        return self.body.standing(places, rng)

    def at_entrance(self, states: ArrayLike) -> np.ndarray:
        """Whether bodies are about to be moved to an exit."""
        places = np.asarray(states, float)[..., :2]
        if self.teleports is None:
            return np.zeros(places.shape[:-1], bool)
        apart = np.linalg.norm(places[..., None, :] - self.teleports.entrances, axis=-1)
        return np.asarray((apart <= self.teleports.reach).any(axis=-1))

    def step(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """One step of each state [n, D]; without `rng` the exits of teleports are drawn from fresh entropy."""
        states = np.array(states, float)
        if not len(states):
            return states
        moved = self.at_entrance(states)
        if self.teleports is not None and moved.any():
            rng = rng or np.random.default_rng()
            exits = rng.integers(len(self.teleports.exits), size=int(moved.sum()))
            states[moved, :2] = self.teleports.exits[exits]
        return self.body.step(states, np.asarray(actions, float))


def make_ogbench(maze: str) -> gymnasium.Env:
    """OGBench's own environment of a maze, `make_env_and_datasets(…, env_only=True)`."""
    try:
        import ogbench
    except ImportError as error:
        raise ImportError(
            "mazes of OGBench need the extra: pip install '.[ogbench]' in the checkout, with a Python before 3.13"
        ) from error
    env: Any = ogbench.make_env_and_datasets(f"{maze}-navigate-v0", env_only=True)
    Path(env.unwrapped.fullpath).unlink(missing_ok=True)  # a temporary file that is not read again
    return env


def check_layout(env: Any, sizes: tuple[int, int, int] = (2, 2, 2)) -> None:
    """Raises where an environment of OGBench is not laid out as in the releases that this module knows.

    Args:
        env: the environment.
        sizes: how many positions, velocities and actions its body has.
    """
    missing = [name for name in LAYOUT if not hasattr(env, name)]
    found = f"it has no {', '.join(missing)}" if missing else _differences(env, sizes)
    if found:
        import ogbench

        version = getattr(ogbench, "__version__", "of this release")
        raise ValueError(
            f"the environment of ogbench {version} is not laid out as expected: {found}. Install ogbench>=1.2,<2"
        )


def _differences(env: Any, sizes: tuple[int, int, int]) -> str:
    """What is not as expected, or nothing."""
    size, (positions, velocities, _) = env.observation_space.shape, sizes
    wanted = (positions if positions == 2 else positions + velocities,)
    if size != wanted or (env.model.nq, env.model.nv, env.model.na) != (positions, velocities, 0):
        what = "are (x, y)" if positions == 2 else f"have the shape {wanted}"
        return f"observations {what}, got the shape {size} and {env.model.nq} positions"
    if tuple(env.ij_to_xy((1, 1))) != (0, 0) or tuple(env.ij_to_xy((2, 4))) != (
        3 * env._maze_unit,
        env._maze_unit,
    ):
        return f"cell (2, 4) is at {tuple(env.ij_to_xy((2, 4)))}"
    absent = [k for info in env.task_infos for k in ("init_ij", "goal_ij") if k not in info]
    return f"a task has no {absent[0]}" if absent else ""


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds NumPy's global generator, which OGBench draws starts, goals and exits from, and restores it afterwards."""
    before = np.random.get_state()  # noqa: NPY002 - OGBench uses it
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
