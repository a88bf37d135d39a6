"""Checks of probability distributions: the rows of P, dense or sparse, and of π."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
from jaxtyping import Float
from numpy.typing import ArrayLike

from ggpi.types import reals

Sparse = scipy.sparse.sparray | scipy.sparse.spmatrix
Kernel = Float[np.ndarray, "S A S"] | scipy.sparse.csr_array
KernelLike = ArrayLike | Sparse

ROW_SUM_TOLERANCE = 1e-6


def check_distributions(rows: np.ndarray, what: str, name: Callable[[int], str]) -> np.ndarray:
    """Rows [n, m] that are distributions within 1e-6, renormalised; else an error naming the first bad row."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = rows.sum(axis=1)
    bad = ~((np.abs(sums - 1) <= ROW_SUM_TOLERANCE) & (rows >= 0).all(axis=1))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{what}: {bad.sum()} of {len(rows)} rows are not probability distributions; the first is "
            f"{name(first)}, with sum {sums[first]:.9g} and smallest entry {rows[first].min():.3g}"
        )
    return rows / sums[:, None]


def checked_kernel(P: KernelLike) -> Kernel:
    """P with rows that sum to exactly 1, as float64 [S, A, S] or CSR [S·A, S]."""
    if isinstance(P, Sparse):
        return _checked_sparse(P)
    P = reals(P, "P")
    if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
        raise ValueError(f"P has shape [S, A, S], or is sparse with shape [S·A, S]; got {P.shape}")
    rows = check_distributions(P.reshape(-1, P.shape[2]), "P", lambda row: _pair(row, P.shape[1]))
    return rows.reshape(P.shape)


def _checked_sparse(given: Sparse) -> scipy.sparse.csr_array:
    if len(given.shape) != 2:
        raise ValueError(f"a sparse P has shape [S·A, S], got {given.shape}")
    num_rows, num_states = given.shape
    rows = given.tocsr()
    P = scipy.sparse.csr_array((reals(rows.data, "P"), rows.indices, rows.indptr), shape=rows.shape)
    if num_states == 0 or num_rows == 0 or num_rows % num_states:
        raise ValueError(
            f"a sparse P has shape [S·A, S], so its rows are a multiple of its columns; got {P.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        sums = P.sum(axis=1)
    bad = ~(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)
    if bad.any() or not (P.data >= 0).all():
        first = int(np.flatnonzero(bad)[0]) if bad.any() else int(P.tocoo().row[np.argmin(P.data)])
        raise ValueError(
            f"P: {max(int(bad.sum()), 1)} rows are not probability distributions; the first is "
            f"{_pair(first, num_rows // num_states)}, with sum {sums[first]:.9g}"
        )
    data = P.data / np.repeat(sums, np.diff(P.indptr))
    narrow = np.int32 if P.nnz < 2**31 else np.int64
    return scipy.sparse.csr_array((data, P.indices.astype(narrow), P.indptr.astype(narrow)), shape=P.shape)


def _pair(row: int, num_actions: int) -> str:
    return f"state {row // num_actions}, action {row % num_actions}"
