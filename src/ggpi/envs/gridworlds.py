"""Gridworlds from a drawing: `#` is a wall, everything else a cell.

Four actions, left, down, right and up, in the paper's order; a bump stays. With `slip` the move
goes to each of the other three directions with probability slip/3. States are labelled (row, col),
row 0 at the top.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from ggpi.mdp.tabular import TabularMDP

ACTIONS = ("left", "down", "right", "up")
MOVES = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)])

FOUR_ROOMS = """
#############
#     #     #
#     #     #
#           #
#     #     #
#     #     #
## ####     #
#     ### ###
#     #     #
#     #     #
#           #
#     #     #
#############
"""


def four_rooms(slip: float = 0.0) -> TabularMDP:
    """The 104 states of Sutton, Precup and Singh's four rooms, dense.

    Paper: Ex 5.2, Ex 5.3
    """
    return grid(FOUR_ROOMS, slip=slip)


def rooms(num_rooms: int, size: int, slip: float = 0.0) -> TabularMDP:
    """A square of num_rooms × num_rooms rooms of size × size cells, doors in the middles of walls; sparse."""
    width = num_rooms * (size + 1) + 1
    free = np.ones((width, width), bool)
    free[:: size + 1] = free[:, :: size + 1] = False
    doors = np.arange(num_rooms) * (size + 1) + 1 + size // 2
    walls = np.arange(1, num_rooms) * (size + 1)
    free[np.ix_(walls, doors)] = free[np.ix_(doors, walls)] = True
    return _from_free_cells(free, slip, sparse=True)


def grid(drawing: str, slip: float = 0.0, sparse: bool = False) -> TabularMDP:
    """The gridworld of a drawing."""
    lines = drawing.strip("\n").splitlines()
    widths = {len(line) for line in lines}
    if len(widths) != 1 or 0 in widths:
        raise ValueError(f"the lines of a drawing have one common length, got lengths {sorted(widths)}")
    free = np.array([[cell != "#" for cell in line] for line in lines])
    if not free.any():
        raise ValueError("the drawing has no free cell: everything is '#'")
    return _from_free_cells(free, slip, sparse)


def _from_free_cells(free: np.ndarray, slip: float, sparse: bool) -> TabularMDP:
    if not 0 <= slip <= 1:
        raise ValueError(f"slip is a probability, got {slip}")
    cells = np.argwhere(free)
    landing = _landing_states(free, cells)
    num_states, num_actions = landing.shape
    # P(·|x, a) = (1 − slip) e[landing(x, a)] + slip/3 Σ_{b≠a} e[landing(x, b)]
    mixing = np.full((num_actions, num_actions), slip / (num_actions - 1))
    np.fill_diagonal(mixing, 1 - slip)
    rows = np.repeat(np.arange(num_states * num_actions), num_actions)
    columns = np.repeat(landing, num_actions, axis=0).ravel()
    P = scipy.sparse.coo_array(
        (np.tile(mixing.ravel(), num_states), (rows, columns)), shape=(num_states * num_actions, num_states)
    ).tocsr()
    P.eliminate_zeros()
    labels = [(int(row), int(col)) for row, col in cells]
    return TabularMDP(
        P if sparse else P.toarray().reshape(num_states, num_actions, num_states), labels=labels
    )


def _landing_states(free: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """landing[x, a]: the state where a move from x ends; a bump stays."""
    padded = np.pad(free, 1)
    number = np.full(padded.shape, -1)
    number[padded] = np.arange(len(cells))
    targets = cells[:, None] + MOVES + 1
    landing = number[targets[..., 0], targets[..., 1]]
    return np.where(landing < 0, np.arange(len(cells))[:, None], landing)
