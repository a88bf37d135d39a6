"""Solves (I − βP^π) v = f: the one linear system behind every exact quantity here.

Dense matrices are factorised once (LAPACK), sparse ones of moderate size too (SuperLU), and the
factors serve every right-hand side. Large sparse ones are solved by BiCGSTAB, which takes a guess
and needs no more memory than a few vectors.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from ggpi.typing import Numbers

DIRECT_LIMIT = 30_000
"""Sparse systems with more states than this are solved by Krylov iterations."""


@runtime_checkable
class Resolvent(Protocol):
    """(I − βP^π)⁻¹ as an operator on columns [S] or [S, n].

    Beyond the paper: how μ's expectations are computed without ever forming μ
    """

    def solve(self, f: Numbers, guess: Numbers | None = None) -> np.ndarray: ...


def resolvent(P_pi: np.ndarray | scipy.sparse.csr_array, beta: float) -> Resolvent:
    """(I − βP^π)⁻¹, by the method that suits the matrix.

    Beyond the paper: one factorisation serves every right-hand side
    """
    if isinstance(P_pi, np.ndarray):
        return _Dense(P_pi, beta)
    if P_pi.shape[0] <= DIRECT_LIMIT:
        return _SparseDirect(P_pi, beta)
    return _Krylov(P_pi, beta)


class _Dense:
    def __init__(self, P_pi, beta):
        matrix = P_pi * -beta
        matrix[np.diag_indices_from(matrix)] += 1.0
        self._factors = scipy.linalg.lu_factor(matrix, overwrite_a=True, check_finite=False)

    def solve(self, f, guess=None):
        return scipy.linalg.lu_solve(self._factors, f, check_finite=False)


class _SparseDirect:
    def __init__(self, P_pi, beta):
        identity = scipy.sparse.eye_array(P_pi.shape[0], format="csc")
        self._factors = scipy.sparse.linalg.splu((identity - beta * P_pi).tocsc())

    def solve(self, f, guess=None):
        return self._factors.solve(np.asarray(f, float))


class _Krylov:
    relative_error = 1e-11

    def __init__(self, P_pi, beta):
        self._P, self._beta = P_pi, beta

    def solve(self, f, guess=None):
        f = np.asarray(f, float)
        columns = f.reshape(len(f), -1)
        guesses = np.zeros_like(columns) if guess is None else np.reshape(guess, columns.shape)
        solved = [self._solve_column(b, x) for b, x in zip(columns.T, guesses.T, strict=True)]
        return np.stack(solved, axis=1).reshape(f.shape)

    def _solve_column(self, f, x):
        """Restarts BiCGSTAB until the residual bounds the error: ‖e‖ ≤ ‖f − (I−βP)x‖ / (1−β)."""
        size = np.abs(f).max()
        if size == 0.0:
            return np.zeros_like(f)
        goal = self.relative_error * size * (1 - self._beta)
        matrix = scipy.sparse.linalg.LinearOperator(self._P.shape, matvec=self._apply, dtype=float)
        for _ in range(20):
            residual = f - self._apply(x)
            if np.abs(residual).max() <= goal:
                return x
            correction, _ = scipy.sparse.linalg.bicgstab(
                matrix, residual, rtol=0.1 * goal / np.abs(residual).max(), maxiter=2_000
            )
            x = x + correction
        raise ArithmeticError(
            f"BiCGSTAB left a residual of {np.abs(residual).max():.1e} (goal {goal:.1e}) for β = {self._beta}"
        )

    def _apply(self, x):
        return x - self._beta * (self._P @ x)
