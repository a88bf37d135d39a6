"""Solves (I − βP^π) v = f: the one linear system behind every exact quantity here.

Dense matrices are factorised once (LAPACK), and so are sparse ones that are small or narrow: a
graph whose breadth-first layers hold O(√S) states, as those of a maze do, has factors that are hardly
larger than itself (SuperLU). The factors serve every right-hand side. In a wide graph they would fill
up; but there everything is a few steps from everything, and BiCGSTAB takes few iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from jaxtyping import Float

from ggpi.mdp.kernels import CSR
from ggpi.types import Numbers

Matrix = Float[np.ndarray, "n m"] | CSR

DIRECT_LIMIT = 2_000
"""Sparse systems with no more states than this are always factorised."""
NARROW = 4.0
"""Larger ones are factorised when their bandwidth is at most this often √S, else solved by Krylov iterations."""
ROUNDING = 16 * np.finfo(float).eps


@runtime_checkable
class Resolvent(Protocol):
    """(I − βP^π)⁻¹ as an operator on columns [S] or [S, n]."""

    def solve(self, f: Numbers, guess: Numbers | None = None) -> np.ndarray: ...

    def error(self, largest: float) -> float:
        """A bound on the errors of v for |f| ≤ largest, beyond rounding errors relative to (I − βP^π)⁻¹|f|."""
        ...


def resolvent(P_pi: Matrix, beta: float) -> Resolvent:
    """(I − βP^π)⁻¹ of a dense or sparse P^π, by the method that suits it."""
    if isinstance(P_pi, np.ndarray):
        return _Dense(P_pi, beta)
    if P_pi.shape[0] <= DIRECT_LIMIT or _bandwidth(P_pi) <= NARROW * np.sqrt(P_pi.shape[0]):
        return _SparseDirect(P_pi, beta)
    return _Krylov(P_pi, beta)


def _bandwidth(P_pi: CSR) -> int:
    """max |i − j| over the entries of P^π, numbered breadth first (reverse Cuthill–McKee)."""
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(P_pi, symmetric_mode=False)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=order.dtype)
    return int(np.abs(np.repeat(rank, np.diff(P_pi.indptr)) - rank[P_pi.indices]).max())


class _Dense:
    """LU of the transpose: a C-ordered matrix is factorised in place, without a copy.

    SciPy's `lu_solve` counts the pivots from 1 while it solves, in the array that it was given and without the GIL,
    so each solve has pivots of its own: threads may share the factors.
    """

    def __init__(self, P_pi: np.ndarray, beta: float):
        matrix = P_pi * -beta
        matrix[np.diag_indices_from(matrix)] += 1.0
        self._factors = scipy.linalg.lu_factor(matrix.T, overwrite_a=True, check_finite=False)

    def solve(self, f: Numbers, guess: Numbers | None = None) -> np.ndarray:
        lu, pivots = self._factors
        return scipy.linalg.lu_solve((lu, pivots.copy()), f, trans=1, check_finite=False)

    def error(self, largest: float) -> float:
        return 0.0


class _SparseDirect:
    def __init__(self, P_pi: CSR, beta: float):
        identity = scipy.sparse.eye_array(P_pi.shape[0], format="csc")
        # The diagonal dominates, so no pivoting; panels of one column suit factors this sparse.
        self._factors = scipy.sparse.linalg.splu(
            (identity - beta * P_pi).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            panel_size=1,
            options={"SymmetricMode": True},
        )

    def solve(self, f: Numbers, guess: Numbers | None = None) -> np.ndarray:
        return self._factors.solve(np.asarray(f, float))

    def error(self, largest: float) -> float:
        return 0.0


class _Krylov:
    relative_error = 1e-11
    round_length = 200

    def __init__(self, P_pi: CSR, beta: float):
        self._P, self._beta = P_pi, beta

    def solve(self, f: Numbers, guess: Numbers | None = None) -> np.ndarray:
        f = np.asarray(f, float)
        columns = f.reshape(len(f), -1)
        guesses = np.zeros_like(columns) if guess is None else np.reshape(guess, columns.shape)
        solved = [self._solve_column(b, x) for b, x in zip(columns.T, guesses.T, strict=True)]
        return np.stack(solved, axis=1).reshape(f.shape)

    def error(self, largest: float) -> float:
        """What `_solve_column` stops at: |v| ≤ largest / (1−β)."""
        return largest * max(self.relative_error, ROUNDING / (1 - self._beta) ** 2)

    def _solve_column(self, f: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rounds of BiCGSTAB until the residual bounds the error: ‖e‖ ≤ ‖f − (I−βP)v‖ / (1−β).

        A round that does not halve the residual is replaced by sweeps v ← f + βPv, which always
        shrink it by β each. No goal is below the rounding errors of the residual itself.
        """
        if not f.any():
            return np.zeros_like(f)
        wanted = self.relative_error * np.abs(f).max() * (1 - self._beta)
        residual = f - self._apply(v)
        for _ in range(self._round_limit()):
            goal = max(wanted, ROUNDING * np.abs(v).max())
            if (size := np.abs(residual).max()) <= goal:
                return v
            candidate = v + bicgstab(self._apply, residual, goal, self.round_length)
            if not np.abs(f - self._apply(candidate)).max() <= size / 2:
                candidate = self._sweep(f, v)
            v, residual = candidate, f - self._apply(candidate)
        raise ArithmeticError(f"a residual of {np.abs(residual).max():.1e} is left for β = {self._beta}")

    def _round_limit(self) -> int:
        """Enough for sweeps alone to gain 20 digits."""
        return 20 + int(np.log(1e-20) / np.log(max(self._beta, 0.5)) / self.round_length)

    def _sweep(self, f: np.ndarray, v: np.ndarray) -> np.ndarray:
        for _ in range(self.round_length):
            v = f + self._beta * (self._P @ v)
        return v

    def _apply(self, x: np.ndarray) -> np.ndarray:
        return x - self._beta * (self._P @ x)


def bicgstab(
    apply: Callable[[np.ndarray], np.ndarray], f: np.ndarray, goal: float, max_iterations: int
) -> np.ndarray:
    """x with apply(x) ≈ f, by van der Vorst's BiCGSTAB from 0 until max|f − apply(x)| ≤ goal, as it updates it.

    Products of vectors go through einsum: threaded BLAS costs far more than it saves at this length.
    """
    x, residual, shadow, direction = np.zeros_like(f), f.copy(), f.copy(), f.copy()
    rho = _dot(shadow, residual)
    for _ in range(max_iterations):
        if np.abs(residual).max() <= goal or rho == 0.0:
            break
        along = apply(direction)
        step = rho / _nonzero(_dot(shadow, along))
        residual -= step * along
        turned = apply(residual)
        weight = _dot(turned, residual) / _nonzero(_dot(turned, turned))
        x += step * direction + weight * residual
        residual -= weight * turned
        rho, previous = _dot(shadow, residual), rho
        direction -= weight * along
        direction *= rho / previous * step / _nonzero(weight)
        direction += residual
    return x


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.einsum("i,i", a, b))


def _nonzero(number: float) -> float:
    return number or 1e-300
