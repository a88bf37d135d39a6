"""Rows of probabilities as running sums, and draws from them.

    c(i, j) = Σ_{k ≤ j} p(i, k),     the draw of u ∈ [0, 1) is the first j with c(i, j) > u

Every row is summed on its own: one sum over all rows would carry the rounding errors of millions of rows into
the last ones. From its last positive entry on a running sum is exactly 1, so that no rounding error leads past it,
and an entry of probability 0 is never drawn.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse


def running_sums(rows: np.ndarray) -> np.ndarray:
    """The running sums of distributions [..., n]."""
    return _closed(np.cumsum(rows, axis=-1), rows)


def sparse_running_sums(P: scipy.sparse.csr_array) -> np.ndarray:
    """The running sums of the rows of a CSR matrix, entry by entry as in `P.data`.

    Rows with equally many entries are summed together, as one dense block.
    """
    counts, sums = np.diff(P.indptr), np.empty(P.nnz)
    for count in np.unique(counts[counts > 0]):
        places = P.indptr[:-1][counts == count][:, None] + np.arange(count)
        sums[places] = running_sums(P.data[places])
    return sums


def draw(sums: np.ndarray, first: np.ndarray, last: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The first place in [first, last] of the flat `sums` whose value exceeds u, for each entry, by bisection."""
    low, high = first, last
    while (low < high).any():
        middle = (low + high) // 2
        beyond = sums[middle] > u
        low, high = np.where(beyond, low, middle + 1), np.where(beyond, middle, high)
    return low


def _closed(sums: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The sums, exactly 1 from the last positive entry of each row on and nowhere more."""
    positive_from = np.flip(np.maximum.accumulate(np.flip(rows > 0, axis=-1), axis=-1), axis=-1)
    more = np.zeros(rows.shape, bool)
    more[..., :-1] = positive_from[..., 1:]
    return np.where(more, np.minimum(sums, 1.0), 1.0)
