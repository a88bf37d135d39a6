"""Optimal values of a finite MDP by dynamic programming: the yardstick of everything else.

    T v (x)  = max_a { r(x, a) + γ E[v(X₁) | x, a] }       the Bellman operator; T V* = V*
    d        = T v − v                                     its residual at v
    Q* − q   ∈ γ/(1−γ) · [min d, max d]                    for q = r + γ P v

The last line bounds the error of any v, however it was found. Every method here centres q in that
interval and reports the half-width, so `error_bound` is a guarantee and not an estimate.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ggpi.mdp.resolvent import Matrix, resolvent
from ggpi.mdp.tabular import TabularMDP, check_gamma, check_range
from ggpi.mdp.ties import RESOLUTION, TIE_TOLERANCE, is_best, margin
from ggpi.rewards import Reward
from ggpi.types import ActionValues, Scalar, StateValues, real, reals, whole

Reason = Literal["tolerance", "stable policy", "rounding", "limit"]

ROUNDING = 4 * np.finfo(float).eps
MOMENTUM = 0.2
MAX_SWEEPS = 50
MAX_ROUNDS = 20_000
PATIENCE = 8
SWEEPABLE = 1e-4
"""Of `q_star` on sparse MDPs: tuned on grids of rooms, harmless elsewhere."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of dynamic programming: |q − Q*| ≤ `error_bound` everywhere, `pi` is greedy in q."""

    q: ActionValues
    pi: ActionValues
    iterations: int
    error_bound: float
    stopped: Reason

    @property
    def v(self) -> StateValues:
        """V(x) = max_a Q(x, a)."""
        return self.q.max(axis=1)


def q_star(
    mdp: TabularMDP, reward: Reward | ArrayLike, gamma: Scalar, *, tolerance: float = 1e-8
) -> ActionValues:
    """Q* with |q − Q*| ≤ tolerance at every (x, a), or an error.

    Dense MDPs, and γ very close to 1, by Howard's policy iteration from the uniform policy; sparse ones, and what
    rounding left, by modified policy iteration with momentum. For the best actions of states whose values are below
    the tolerance use `howard`: its errors are relative to each state's own value.
    """
    start = None
    if not mdp.is_sparse or 1 - check_gamma(gamma) < SWEEPABLE:
        start = howard(
            mdp, reward, gamma, policy=np.full((mdp.num_states, mdp.num_actions), 1 / mdp.num_actions)
        ).v
    solution = modified_policy_iteration(mdp, reward, gamma, start=start, tolerance=tolerance)
    if solution.stopped != "tolerance":
        raise ArithmeticError(
            f"Q* is known only within {solution.error_bound:.1e}, not {tolerance:.1e}, after "
            f"{solution.iterations} iterations: stopped by {solution.stopped}, with values up to "
            f"{np.abs(solution.q).max():.1e}"
        )
    return solution.q


def modified_policy_iteration(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: Scalar,
    *,
    start: StateValues | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = MAX_ROUNDS,
) -> Solution:
    """Modified policy iteration with momentum, until |q − Q*| ≤ tolerance.

    v ← (T^π)ᵏ v with π greedy in v and as many sweeps k as help, with momentum as long as that helps. Sweeps carry
    values along a policy's mean motion; momentum (Chebyshev's two-step iteration) carries them faster, but diverges
    where P^π turns in circles. When the bound grows, or stays for PATIENCE rounds, the best round is taken up again
    and all later ones do without momentum.

    Args:
        start: the first v; by default one that is at most V*, from which all sweeps rise.
        tolerance: the largest error of q.
        max_iterations: how often π is improved at most.
    """
    problem = _problem(mdp, reward, gamma, tolerance, max_iterations)
    momentum, count, stale = MOMENTUM, MAX_SWEEPS, 0
    best = greedy = problem.improve(problem.lower_start() if start is None else start)
    for iteration in range(max_iterations):
        if reason := greedy.reason_to_stop(tolerance):
            return _solution(problem, greedy, iteration, reason)
        v, moving = problem.sweeps(greedy, count, momentum)
        count = max(1, count // 2) if moving < 0.1 * greedy.bound else min(2 * count, MAX_SWEEPS)
        greedy = problem.improve(v)
        best, stale = (greedy, 0) if greedy.bound < best.bound else (best, stale + 1)
        if momentum and (stale >= PATIENCE or not greedy.bound <= 30 * best.bound):
            greedy, momentum = best, 0.0
    return _solution(problem, best, max_iterations, "limit")


def howard(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: Scalar,
    *,
    policy: ArrayLike | None = None,
    tie_tolerance: float = RESOLUTION,
    max_iterations: int = 1_000,
) -> Solution:
    """Howard's policy iteration, π ← greedy in Q^π, from `policy` or else from the greedy policy of r.

    An action is left only for one that is better by more than can be told from a tie (see `ggpi.mdp.ties`), so
    ties cannot make it cycle. `iterations` counts the policies that were evaluated.

    Args:
        policy: π [S, A] to start from.
        tie_tolerance: relative differences of values up to this count as ties.
        max_iterations: how many policies are evaluated at most.
    """
    problem = _problem(mdp, reward, gamma, tie_tolerance, max_iterations)
    pi = _one_hot(problem.r) if policy is None else mdp.checked_policy(policy)
    absolute = problem.absolute(mdp.checked_reward(reward), mdp)
    v: StateValues | None = None
    for iteration in range(1, max_iterations + 1):
        solver = resolvent(mdp.mixture(pi), problem.gamma)
        v = solver.solve((pi * problem.r).sum(axis=1), guess=v)
        greedy = problem.improve(v)
        sizes = np.abs(greedy.q)
        if absolute is not None:
            sizes = absolute.improve(solver.solve((pi * absolute.r).sum(axis=1))).q
        best = np.take_along_axis(sizes, greedy.actions[:, None], axis=1)[:, 0]
        error = 2 * solver.error(np.abs(problem.r).max())
        told_apart = margin(best, (pi * sizes).sum(axis=1), tie_tolerance, error)
        better = greedy.v > (pi * greedy.q).sum(axis=1) + told_apart
        if not better.any():
            return _unshifted(greedy, pi, iteration, "stable policy")
        pi = np.where(better[:, None], _one_hot(greedy.q), pi)
    return _unshifted(greedy, pi, max_iterations, "limit")  # pyright: ignore[reportPossiblyUnboundVariable]


def optimal_actions(q: ArrayLike, tolerance: float = TIE_TOLERANCE) -> np.ndarray:
    """True at every (x, a) that is tied with the best: all maximisers, [S, A].

    `tolerance` is relative to the values of each state (see `ggpi.mdp.ties`).
    """
    q = reals(q, "q")
    if q.ndim != 2 or not np.isfinite(q).all():
        raise ValueError(
            f"q is a finite array [S, A], got shape {q.shape} with {(~np.isfinite(q)).sum()} bad values"
        )
    return is_best(q, np.abs(q), axis=1, tolerance=real(tolerance, "tolerance"))


@dataclass(frozen=True, eq=False)
class _Greedy:
    """q = r + γ P v of some v, T v and its actions, and where Q* − q lies: centre ± bound.

    `floor` is as low as rounding errors, which `bound` counts in, let the bound become.
    """

    q: ActionValues
    v: StateValues
    actions: np.ndarray
    centre: float
    bound: float
    floor: float

    def reason_to_stop(self, tolerance: float) -> Literal["tolerance", "rounding"] | None:
        if self.bound <= tolerance:
            return "tolerance"
        return "rounding" if self.bound <= self.floor else None


@dataclass(frozen=True, eq=False)
class _Problem:
    """r [S, A], γ and γP [S·A, S], laid out for repeated products."""

    discounted: Matrix
    r: ActionValues
    gamma: float
    terminal: np.ndarray

    def absolute(self, reward: Reward, mdp: TabularMDP) -> _Problem | None:
        """The same with the absolute rewards; None where these are of one sign."""
        if (reward.table >= 0).all() or (reward.table <= 0).all():
            return None
        return dataclasses.replace(self, r=mdp.r(Reward(reward.form, np.abs(reward.table))))

    def lower_start(self) -> StateValues:
        """v ≤ T v, from where all sweeps rise: the least reward forever, 0 at terminal states."""
        return np.where(self.terminal, 0.0, self.r.min() / (1 - self.gamma))

    def improve(self, v: StateValues) -> _Greedy:
        """T v, with what it says about Q*."""
        q = (self.discounted @ v).reshape(self.r.shape)
        q += self.r
        best, actions = _best(q)
        centre, width = self.interval(best - v)
        rounding = ROUNDING * max(best.max(), -best.min()) / (1 - self.gamma)
        return _Greedy(q, best, actions, centre, width + rounding, 2 * rounding)

    def sweeps(self, greedy: _Greedy, count: int, momentum: float = 0.0) -> tuple[StateValues, float]:
        """v ← (1+m) T^π v − m v₋₁, count times from T v; v, and the bound that its last change would give."""
        pairs = np.arange(len(self.r)) * self.r.shape[1] + greedy.actions
        gP_pi, r_pi = self.discounted[pairs], self.r.ravel()[pairs]
        if momentum:
            gP_pi *= 1 + momentum
            r_pi *= 1 + momentum
        before, v = greedy.v.copy(), greedy.v
        for _ in range(count):
            ahead = gP_pi @ v
            ahead += r_pi
            if momentum:
                before *= -momentum
                ahead += before
            before, v = v, ahead
        return v, self.interval(v - before)[1]

    def interval(self, residual: StateValues) -> tuple[float, float]:
        """Centre and half-width of γ/(1−γ) · [min d, max d]."""
        low, high = residual.min(), residual.max()
        factor = self.gamma / (1 - self.gamma) / 2
        return factor * (high + low), factor * (high - low)


def _problem(
    mdp: TabularMDP, reward: Reward | ArrayLike, gamma: Scalar, tolerance: float, max_iterations: int
) -> _Problem:
    gamma = check_gamma(gamma)
    if not real(tolerance, "tolerance") > 0:
        raise ValueError(f"tolerance is positive, got {tolerance}")
    whole(max_iterations, "max_iterations")
    return _Problem(_discounted(mdp, gamma), check_range(mdp.r(reward), gamma), gamma, mdp.terminal)


def _discounted(mdp: TabularMDP, gamma: float) -> Matrix:
    """γP; a sparse one with 32-bit indices where they suffice, which saves a fifth of each product."""
    P = mdp.kernel
    if isinstance(P, np.ndarray) or max(P.nnz, *P.shape) > np.iinfo(np.int32).max:
        return P * gamma
    parts = (P.data * gamma, P.indices.astype(np.int32, copy=False), P.indptr.astype(np.int32, copy=False))
    return scipy.sparse.csr_array(parts, shape=P.shape)


def _best(q: ActionValues) -> tuple[StateValues, np.ndarray]:
    """max_a q and the first action that attains it, action by action: rows are too short to reduce."""
    best, actions = q[:, 0].copy(), np.zeros(len(q), np.intp)
    for a in range(1, q.shape[1]):
        better = q[:, a] > best
        np.copyto(best, q[:, a], where=better)
        np.copyto(actions, a, where=better)
    return best, actions


def _one_hot(q: ActionValues) -> ActionValues:
    """The first greedy action of each state, as a policy."""
    return np.eye(q.shape[1])[_best(q)[1]]


def _unshifted(greedy: _Greedy, pi: ActionValues, iterations: int, stopped: Reason) -> Solution:
    """q as it is: to centre it would bury the small values of distant states."""
    return Solution(greedy.q, pi, iterations, float(greedy.bound + abs(greedy.centre)), stopped)


def _solution(problem: _Problem, greedy: _Greedy, iterations: int, stopped: Reason) -> Solution:
    q = greedy.q + np.where(problem.terminal, 0.0, greedy.centre)[:, None]
    return Solution(q, _one_hot(q), iterations, float(greedy.bound), stopped)
