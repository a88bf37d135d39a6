"""The values of a jumpy graph: V = max_k (f_k + c W_k V), a sparse MDP whose actions are policies.

Modified policy iteration: a sweep over all policies chooses one for each landmark, then about 1/(1−c) sweeps of the
chosen ones alone follow, which cost 1/K of the first. It starts from below, so that values rise (Puterman 1994, §6.5).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

PRECISION = 1e-5
"""Of each value where rewards have one sign, else of the largest; far below the noise of any number of jumps."""
SMALLEST = 1e-12
"""Of the largest value: smaller ones have a larger relative error."""
MOST_ROUNDS = 500


def jump_matrix(
    weight: Float[np.ndarray, "K M n m"], neighbour: Int[np.ndarray, "K M n m"]
) -> scipy.sparse.csr_array:
    """W [K·M, M]: what V of each landmark weighs after a jump of each policy from each; most jumps end near others.

    Args:
        weight: of the neighbours of each jump's end; they sum to 1, or to less where jumps end the episode.
        neighbour: the neighbours.
    """
    num_policies, num_landmarks, *jumps = weight.shape
    kind = np.int32 if weight.size < 2**31 else np.int64
    bounds = np.arange(num_policies * num_landmarks + 1, dtype=kind) * int(np.prod(jumps))
    shape = num_policies * num_landmarks, num_landmarks
    matrix = scipy.sparse.csr_array((weight.reshape(-1), neighbour.reshape(-1), bounds), shape, copy=True)
    matrix.sum_duplicates()
    return matrix


def solve_graph(
    f: Float[np.ndarray, "K M"], matrix: scipy.sparse.csr_array, c: float
) -> Float[np.ndarray, "M"]:
    """V of every landmark.

    Args:
        f: the reward of a jump of each policy from each landmark.
        matrix: W.
        c: the discount of a jump.
    """
    num_landmarks = f.shape[1]
    rewards, discount = f.astype(np.float32), np.float32(c)
    floor = SMALLEST if rewards.min() >= 0 or rewards.max() <= 0 else 1.0
    least = max(PRECISION * (1 - c), 4 * float(np.finfo(np.float32).eps))
    v = np.full(num_landmarks, min(float(f.min()), 0.0) / (1 - c), np.float32)
    rows = np.arange(num_landmarks)
    for _ in range(MOST_ROUNDS):
        u = rewards + discount * (matrix @ v).reshape(f.shape)
        choice = u.argmax(axis=0)
        v, before = u[choice, rows], v
        if (np.abs(v - before) <= least * np.maximum(np.abs(v), floor * np.abs(v).max())).all():
            break
        chosen, own = matrix[choice * num_landmarks + rows], rewards[choice, rows]
        for _ in range(2 + int(1 / (1 - c))):
            v = own + discount * (chosen @ v)
    return v
