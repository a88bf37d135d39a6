"""A policy that knows a maze: it walks a closed route of cells for ever, and from anywhere else the shortest way to it.

In each cell it aims at the middle of the next one: a = gain · (v* − v) + noise · ε, with v* of a fixed speed.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ggpi.envs.maze import PointMaze
from ggpi.lab.maze.tasks import Cell, route
from ggpi.policies.action_heads import Head
from ggpi.policies.functions import policy_from

MEDIUM_LOOP: tuple[Cell, ...] = (
    *((4, 1), (5, 1), (6, 1), (6, 2), (6, 3), (5, 3)),
    *((5, 4), (4, 4), (3, 4), (3, 3), (3, 2), (4, 2)),
)
"""The only closed route of the maze Medium; 60 steps at a speed of 2."""
SPEED, GAIN, NOISE = 2.0, 0.3, 0.3


def patrol(maze: PointMaze, loop: Sequence[Cell], name: str = "loop") -> Head:
    """The policy for a closed route: each of its cells is beside the one before, and the first beside the last."""
    targets, size = jnp.asarray(aims(maze, loop), jnp.float32), jnp.asarray(maze.size, jnp.float32)

    def act(state: Array) -> tuple[Array, Array]:
        column, row = state[0] + size[0] / 2, size[1] / 2 - state[1]
        cell = jnp.clip(jnp.stack([row, column]).astype(int), 0, jnp.array(targets.shape[:2]) - 1)
        way = targets[cell[0], cell[1]] - state[:2]
        wanted = SPEED * way / jnp.maximum(jnp.linalg.norm(way), 0.1)
        return GAIN * (wanted - state[2:]), jnp.full(2, NOISE)

    return policy_from(act, maze.action_space, returns="gaussian", name=name)


def aims(maze: PointMaze, loop: Sequence[Cell]) -> np.ndarray:
    """The place (x, y) that the policy aims at in each cell [rows, columns, 2]; in walls their own middle."""
    following = dict(zip(loop, [*loop[1:], loop[0]], strict=True))
    targets = maze.centre(*np.indices(maze.free.shape))
    for row, column in np.argwhere(maze.free):
        cell = int(row), int(column)
        if cell not in following:
            ways = [route(maze.free, cell, goal) for goal in loop]
            following[cell] = min(ways, key=len)[1]
        targets[cell] = maze.centre(*following[cell])
    return targets
