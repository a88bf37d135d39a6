"""Parts of `maze-transfer`: tasks by number of turns, episodes, a guide, and a comparison of models with simulation.

A ball starts at rest in the first cell of a maze, and its target is the middle of another cell, give or take a
tenth. The four policies know directions and nothing of walls: each runs until a wall stops it, and stays there. The
*turns* of the shortest route tell how many policies a plan needs: none with depth 1, two with depth 3.

Seeds are far apart: settings were chosen below `DATA`, models are trained on data from `DATA` and compared with
simulation at `CALIBRATED`, and results are measured on new tasks, from `REPORTED`.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.envs.directions import DIRECTIONS, HEADINGS
from ggpi.envs.maze import PointMaze
from ggpi.lab.agents import Decide
from ggpi.policies.bank import PolicyBank
from ggpi.policies.linear import LinearPolicy, maze_policies
from ggpi.types import Key, Policy

GAMMA, ALPHA = 0.9, 0.1
"""μ_γ ends after 10 steps in the mean, μ_β with β = 0.81 after 5, which is 2 cells: a corridor."""
SPEED = 4.0
"""Cells per second; a step takes 0.1 s."""
RADIUS = 0.5
JITTER = 0.1
SWITCH_EVERY, EPISODE = 60, 60
"""Longest turn of a policy, and the length of an episode, in the transitions that models learn from."""
DATA, CALIBRATED, REPORTED = 1_000_000, 2_000_000, 3_000_000

Cell = tuple[int, int]

DRAWN = {
    "Snake": """
######
#    #
#### #
#    #
# ####
#    #
#### #
#    #
# ####
#    #
######
"""
}
"""Mazes beside those of gymnasium-robotics: a corridor with eight turns, two more than any target of theirs needs."""


def world(name: str) -> PointMaze:
    """A maze by its name, or from a drawing."""
    return PointMaze(DRAWN.get(name, name))


def policies() -> list[LinearPolicy]:
    """Right, up, left and down."""
    return maze_policies(SPEED)


def route(free: np.ndarray, start: Cell, goal: Cell) -> list[Cell]:
    """The cells of the shortest route, and among these of one with the fewest turns."""
    waiting: list[tuple[int, int, list[Cell], int]] = [(0, 0, [start], -1)]
    seen: set[tuple[Cell, int]] = set()
    while waiting:
        length, turned, cells, heading = heapq.heappop(waiting)
        if cells[-1] == goal:
            return cells
        if (cells[-1], heading) in seen:
            continue
        seen.add((cells[-1], heading))
        for k, (right, up) in enumerate(DIRECTIONS.values()):
            following = (cells[-1][0] - up, cells[-1][1] + right)
            if free[following]:
                turn = heading not in (-1, k)
                heapq.heappush(waiting, (length + 1, turned + turn, [*cells, following], k))
    raise ValueError(f"no way leads from cell {start} to {goal}")


def num_turns(cells: Sequence[Cell]) -> int:
    """How often a route changes its direction."""
    steps = np.diff(np.array(cells), axis=0)
    return int((steps[1:] != steps[:-1]).any(axis=1).sum())


@dataclass(frozen=True)
class Tasks:
    """Starts and targets of episodes."""

    states: np.ndarray
    """[E, 4]"""
    targets: np.ndarray
    """[E, 2]"""
    cells: list[Cell]
    """[E]: the row and column of each target."""
    turns: np.ndarray
    """[E]: of the shortest route."""


def targets_by_turns(maze: PointMaze) -> dict[int, list[Cell]]:
    """All cells but the first, by the turns of the route from there."""
    first, *others = [(int(row), int(column)) for row, column in np.argwhere(maze.free)]
    found: dict[int, list[Cell]] = {}
    for cell in others:
        found.setdefault(num_turns(route(maze.free, first, cell)), []).append(cell)
    return dict(sorted(found.items()))


def tasks(maze: PointMaze, turns: Sequence[int], per_group: int, seed: int) -> Tasks:
    """As many tasks for each number of turns, its targets one after the other; the same seed, the same tasks."""
    by_turns = targets_by_turns(maze)
    if missing := set(turns) - set(by_turns):
        raise ValueError(f"targets of this maze need {list(by_turns)} turns, none needs {sorted(missing)}")
    rng, first = np.random.default_rng(seed), np.argwhere(maze.free)[0]
    cells = [by_turns[k][i % len(by_turns[k])] for i in range(per_group) for k in turns]
    drawn = rng.uniform(-1, 1, (len(cells), 4))  # row by row: fewer tasks are the first of more
    states = np.zeros((len(cells), 4), np.float32)
    states[:, :2] = maze.centre(*first) + 0.3 * drawn[:, :2]
    jittered = (maze.centre(*np.array(cells).T) + JITTER * drawn[:, 2:]).astype(np.float32)
    return Tasks(states, jittered, cells, np.tile(np.array(turns), per_group))


def episodes(
    maze: PointMaze, decide: Decide, given: Tasks, seed: int, max_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The step at which each target was reached (0: never), and the places on the way [T + 1, E, 2]."""
    states, steps = given.states.copy(), np.zeros(len(given.states), int)
    places = [states[:, :2].copy()]
    for t, key in enumerate(jax.random.split(jax.random.key(seed), max_steps), start=1):
        active = np.flatnonzero(steps == 0)
        if not len(active):
            break
        rows = np.resize(active, _size(len(active), len(states)))
        actions = decide(states[rows], given.targets[rows], key)[: len(active)]
        states[active] = maze.step(states[active], actions)
        apart = np.linalg.norm(states[:, :2] - given.targets, axis=1)
        steps[active] = np.where(apart[active] <= RADIUS, t, 0)
        places.append(states[:, :2].copy())
    return steps, np.stack(places)


def _size(active: int, total: int) -> int:
    """All episodes, or a third of them: two programs are compiled, not one for every count."""
    few = -(-total // 3)
    return few if active <= few else total


@runtime_checkable
class Cellular(Protocol):
    """A maze of cells."""

    @property
    def unit(self) -> float: ...

    def centre(self, row: ArrayLike, column: ArrayLike) -> np.ndarray: ...

    def cell(self, place: ArrayLike) -> Cell: ...


def guide(maze: Cellular, policies: Sequence[Policy], free: np.ndarray) -> Decide:
    """An agent that knows the maze: the policy towards the next cell's middle of the shortest route, along it.

    Args:
        maze: the maze.
        policies: the first four go right, up, left and down.
        free: cells that it may enter [rows, columns].
    """
    bank = PolicyBank(policies)

    def decide(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        chosen = [towards(maze, free, *pair) for pair in zip(states[:, :2], goals, strict=True)]
        return np.asarray(bank.sample(np.array(chosen), states, key=key))

    return decide


def towards(maze: Cellular, free: np.ndarray, place: np.ndarray, goal: np.ndarray) -> int:
    """The policy that a guide would choose: first to the middle line of the way on, then along it."""
    cells = route(free, maze.cell(place), maze.cell(goal))
    wanted = goal - place
    if len(cells) > 1:
        along = maze.centre(*cells[1]) - maze.centre(*cells[0])
        sideways = np.where(along == 0, maze.centre(*cells[0]) - place, 0.0)
        wanted = sideways if np.abs(sideways).max() > 0.25 * maze.unit else along
    return int(np.argmax(HEADINGS @ wanted))
