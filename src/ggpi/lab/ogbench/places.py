"""Where errands lead: corridors that can be avoided, cells that can be reached, and the lengths of tours."""

import itertools

import numpy as np

from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.maze.tasks import route


def corridor_of(world: OGBenchMaze, task: int) -> np.ndarray:
    """The middles of three cells in the middle of a task's shortest route [3, 2]; another way leads around them."""
    cells = route(world.safe, world.cell(world.task(task).start), world.cell(world.task(task).goal))
    for begin in sorted(range(1, len(cells) - 3), key=lambda i: abs(i + 1.5 - len(cells) / 2)):
        rest = world.safe.copy()
        rest[tuple(np.array(cells[begin : begin + 3]).T)] = False
        try:
            route(rest, cells[0], cells[-1])
        except ValueError:
            continue
        return world.centre(*np.array(cells[begin : begin + 3]).T)
    raise ValueError(f"{world.maze} has one way only from the start to the goal of task {task}")


def detour_tasks(world: OGBenchMaze) -> list[int]:
    """The tasks that have another way."""

    def has_another(task: int) -> bool:
        try:
            return len(corridor_of(world, task)) > 0
        except ValueError:
            return False

    return [task for task in world.tasks if has_another(task)]


def reachable(world: OGBenchMaze, cell: tuple[int, int]) -> bool:
    """Whether a way leads from a cell to the goal of the first task."""
    try:
        return bool(route(world.safe, cell, world.cell(world.task(1).goal)))
    except ValueError:
        return False


def tour_length(world: OGBenchMaze, stops: list[np.ndarray]) -> int:
    """Cells of the shortest route that visits places in this order."""
    cells = [world.cell(stop) for stop in stops]
    return sum(len(route(world.safe, *pair)) - 1 for pair in itertools.pairwise(cells))
