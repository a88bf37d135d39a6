"""A search over recorded transitions: shortest ways between the landmarks of a graph, without any model.

Where a policy acted for some steps on end, an edge leads from the cell (the nearest landmark) where it began to the
cell where it got. The shortest way over such edges says which policy acts. The search trusts every recorded step, as if
the ball could be anywhere within a cell.
"""

from collections.abc import Sequence

import jax
import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from ggpi.data.transitions import Transitions
from ggpi.lab import agents
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.landmarks import points_of
from ggpi.types import Key, Policy

EDGE = 5
"""Steps of an edge."""


def recorded_search(
    graph: JumpyGraph, data: Transitions, policies: Sequence[Policy], radius: float
) -> agents.Decide:
    """Shortest ways over recorded transitions between the cells of the graph's landmarks."""
    return agents.acting(recorded_choice(graph, data, radius), policies)


def recorded_choice(graph: JumpyGraph, data: Transitions, radius: float) -> agents.Decide:
    """The same as a function that chooses policies: (states [b, D], targets [b, 2], key) ↦ indices [b]."""
    tree, ways = KDTree(points_of(graph.landmarks, graph.units)), dict[bytes, np.ndarray]()
    edges, taken = recorded_edges(tree, graph.units, data)

    def choose(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        for goal in goals:
            if goal.tobytes() not in ways:
                ways[goal.tobytes()] = next_cells(edges, _cells_near(graph, goal, radius))
        cells = np.asarray(tree.query(points_of(states, graph.units))[1])
        following = [ways[goal.tobytes()][cell] for goal, cell in zip(goals, cells, strict=True)]
        lots = np.asarray(jax.random.randint(key, (len(states),), 0, graph.num_policies))
        chosen = [
            taken[cell, to] - 1 if to >= 0 else lot
            for cell, to, lot in zip(cells, following, lots, strict=True)
        ]
        return np.array(chosen)

    return choose


def recorded_edges(
    tree: KDTree, units: np.ndarray, data: Transitions
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Steps of the edges between cells [M, M], and the policy that made each, from 1."""
    stays = data.is_followed[:-1] & (data.behaviour[1:] == data.behaviour[:-1])
    ahead = np.lib.stride_tricks.sliding_window_view(stays, EDGE - 1).all(axis=1)
    rows = np.flatnonzero(ahead)
    begin, end = (
        np.asarray(tree.query(points_of(part, units), workers=-1)[1])
        for part in (data.state[rows], data.next_state[rows + EDGE - 1])
    )
    moved, size = begin != end, (tree.n, tree.n)
    pair, first = np.unique(begin[moved] * tree.n + end[moved], return_index=True)
    place = np.divmod(pair, tree.n)
    policy = data.behaviour[rows][moved][first] + 1
    return (
        scipy.sparse.csr_array((np.full(len(pair), float(EDGE)), place), size),
        scipy.sparse.csr_array((policy, place), size),
    )


def next_cells(edges: scipy.sparse.csr_array, goals: np.ndarray) -> np.ndarray:
    """The next cell on the shortest way from each cell to one of the goals; negative where there is none."""
    return dijkstra(edges.T, indices=goals, min_only=True, return_predecessors=True)[1]


def _cells_near(graph: JumpyGraph, goal: np.ndarray, radius: float) -> np.ndarray:
    """The landmarks within a target, or the nearest one."""
    apart = np.linalg.norm(graph.landmarks[:, :2] - goal, axis=1)
    return np.flatnonzero(apart <= max(radius, apart.min()))
