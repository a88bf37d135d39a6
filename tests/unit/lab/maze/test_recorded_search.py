"""A search over recorded transitions: edges are recorded turns of one policy, ways are shortest."""

import numpy as np
import pytest
from scipy.spatial import KDTree

pytest.importorskip("gymnasium_robotics")

from ggpi.data import Transitions
from ggpi.lab.maze import recorded_search as search


def walk(behaviour, ends=()):
    """One step to the right in each row, by these policies; `ends` are the last rows of episodes."""
    n = len(behaviour)
    state = np.stack([np.arange(n, dtype=np.float32), np.zeros(n, np.float32)], axis=1)
    truncated = np.isin(np.arange(n), [*ends, n - 1])
    episode = np.cumsum(np.append(0, truncated[:-1]))
    step = np.arange(n) - np.array([np.flatnonzero(episode == e)[0] for e in episode])
    return Transitions(
        state,
        np.zeros((n, 2), np.float32),
        state + np.float32([1, 0]),
        np.zeros(n, bool),
        truncated,
        np.array(behaviour),
        episode,
        step,
    )


def edges(data):
    tree = KDTree(np.stack([np.arange(40.0), np.zeros(40)], axis=1))
    steps, policy = search.recorded_edges(tree, np.ones(2), data)
    found = steps.tocoo()
    return {(int(i), int(j)): int(policy[i, j]) - 1 for i, j in zip(*found.coords, strict=True)}


def test_edges_are_turns_of_one_policy_within_an_episode():
    found = edges(walk([3] * 8 + [1] * 7, ends=[11]))
    assert found == {(i, i + 5): 3 for i in range(4)}, "the second policy never acts for five steps on end"
    assert edges(walk([3] * 8 + [1] * 7)) == {(i, i + 5): 3 for i in range(4)} | {
        (i, i + 5): 1 for i in (8, 9, 10)
    }


def test_ways_are_shortest():
    steps = np.zeros((5, 5))
    for begin, end, cost in ((0, 1, 5), (1, 2, 5), (2, 3, 5), (0, 4, 5), (4, 3, 5)):
        steps[begin, end] = cost
    found = search.next_cells(search.scipy.sparse.csr_array(steps), np.array([3]))
    assert found[[0, 1, 2, 4]].tolist() == [4, 2, 3, 3] and found[3] < 0
    unreachable = search.next_cells(search.scipy.sparse.csr_array(steps), np.array([0]))
    assert (unreachable < 0).all()
