"""Optimal values of a finite MDP by dynamic programming: the yardstick of everything else.

    T v (x)  = max_a { r(x, a) + γ E[v(X₁) | x, a] }       the Bellman operator; T V* = V*
    d        = T v − v                                     its residual at v
    Q* − q   ∈ γ/(1−γ) · [min d, max d]                    for q = r + γ P v

The last line bounds the error of any v, however it was found. Every method here centres q in that
interval and reports the half-width, so `error_bound` is a guarantee and not an estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ggpi.mdp import TabularMDP, check_gamma
from ggpi.resolvent import resolvent
from ggpi.rewards import Reward
from ggpi.typing import ActionValues, StateValues


@dataclass(frozen=True, eq=False)
class Solution:
    """What dynamic programming found: |q − Q*| ≤ `error_bound` everywhere, `pi` is greedy in q.

    Beyond the paper: baselines say how good they are and why they stopped
    """

    q: ActionValues
    pi: ActionValues
    iterations: int
    error_bound: float
    stopped: Literal["tolerance", "stable policy", "limit"]

    @property
    def v(self) -> StateValues:
        """V(x) = max_a Q(x, a)."""
        return self.q.max(axis=1)


@dataclass(frozen=True, eq=False)
class _Problem:
    """An MDP, a reward and γ, laid out for repeated products."""

    mdp: TabularMDP
    r: ActionValues
    gamma: float

    def q(self, v: StateValues) -> ActionValues:
        """r + γ P v."""
        q = self.mdp.kernel @ v
        q *= self.gamma
        q = q.reshape(self.r.shape)
        q += self.r
        return q

    def of_actions(self, actions: np.ndarray) -> tuple[Any, StateValues]:
        """(P^π, r^π) of a deterministic policy."""
        pairs = np.arange(len(actions)) * self.r.shape[1] + actions
        return self.mdp.kernel[pairs], self.r.ravel()[pairs]

    def lower_start(self) -> StateValues:
        """v ≤ T v, from where all sweeps rise: the least reward for ever, 0 at terminal states."""
        return np.where(self.mdp.terminal, 0.0, self.r.min() / (1 - self.gamma))


def q_star(mdp: TabularMDP, reward: Reward | ArrayLike, gamma: float, *, tolerance: float = 1e-8) -> ActionValues:
    """Q* with |q − Q*| ≤ tolerance at every (x, a), or an error.

    Beyond the paper: the optimum that every figure measures against
    """
    solution = modified_policy_iteration(mdp, reward, gamma, tolerance=tolerance)
    if solution.stopped == "limit":
        raise ArithmeticError(
            f"Q* is known only within {solution.error_bound:.1e} after {solution.iterations} iterations; "
            f"the tolerance {tolerance:.1e} may be below the rounding errors of values up to {np.abs(solution.q).max():.1e}"
        )
    return solution.q


def value_iteration(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: float,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 100_000,
) -> Solution:
    """v ← T v until the residual says |q − Q*| ≤ tolerance.

    Beyond the paper: a baseline for policy iteration
    """
    problem = _problem(mdp, reward, gamma, tolerance, max_iterations)
    return _iterate(problem, lambda q: q.max(axis=1), tolerance, max_iterations)


def modified_policy_iteration(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: float,
    *,
    num_sweeps: int = 60,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
) -> Solution:
    """v ← (T^π)ᵏ v with π greedy in v and k = num_sweeps, until |q − Q*| ≤ tolerance.

    Beyond the paper: a baseline between value iteration (k = 1) and policy iteration (k = ∞)
    """
    problem = _problem(mdp, reward, gamma, tolerance, max_iterations)
    if num_sweeps < 1:
        raise ValueError(f"num_sweeps is at least 1, got {num_sweeps}")

    def sweep(q):
        v, (P_pi, r_pi) = q.max(axis=1), problem.of_actions(q.argmax(axis=1))
        P_pi = P_pi * gamma
        for _ in range(num_sweeps - 1):
            v = P_pi @ v
            v += r_pi
        return v

    return _iterate(problem, sweep, tolerance, max_iterations)


def policy_iteration(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: float,
    *,
    policy: ArrayLike | None = None,
    tie_tolerance: float = 1e-11,
    max_iterations: int = 1_000,
) -> Solution:
    """Howard's policy iteration, π ← greedy in Q^π, from `policy` or else from the greedy policy of r.

    An action is left only for one that is better by more than tie_tolerance · max(|Q|, |r|), so ties cannot
    make it cycle. `iterations` counts the policies that were evaluated.

    Beyond the paper: the baseline that Algorithm 1 is compared with
    """
    problem = _problem(mdp, reward, gamma, tie_tolerance, max_iterations)
    pi = np.eye(mdp.num_actions)[problem.r.argmax(axis=1)] if policy is None else mdp.checked_policy(policy)
    v, size = None, np.abs(problem.r).max()
    for iteration in range(1, max_iterations + 1):
        v = resolvent(mdp.P_pi(pi), gamma).solve((pi * problem.r).sum(axis=1), guess=v)
        q = problem.q(v)
        better = q.max(axis=1) > (pi * q).sum(axis=1) + tie_tolerance * max(size, np.abs(q).max())
        if not better.any():
            return _solution(problem, q, v, pi, iteration, "stable policy")
        pi = np.where(better[:, None], np.eye(mdp.num_actions)[q.argmax(axis=1)], pi)
    return _solution(problem, q, v, pi, max_iterations, "limit")


def optimal_actions(q: ArrayLike, tolerance: float = 1e-9) -> np.ndarray:
    """True at every (x, a) with Q(x, a) ≥ max_b Q(x, b) − tolerance: all maximisers, [S, A].

    Paper: Ex 5.2
    """
    q = np.asarray(q, float)
    if q.ndim != 2 or not np.isfinite(q).all():
        raise ValueError(f"q is a finite array [S, A], got shape {q.shape} with {(~np.isfinite(q)).sum()} bad values")
    if not tolerance >= 0:
        raise ValueError(f"tolerance is at least 0, got {tolerance}")
    return q >= q.max(axis=1, keepdims=True) - tolerance


def _problem(mdp, reward, gamma, tolerance, max_iterations) -> _Problem:
    check_gamma(gamma)
    if not tolerance > 0:
        raise ValueError(f"tolerance is positive, got {tolerance}")
    if max_iterations < 1:
        raise ValueError(f"max_iterations is at least 1, got {max_iterations}")
    return _Problem(mdp, mdp.r(reward), gamma)


def _iterate(problem: _Problem, step: Callable, tolerance: float, max_iterations: int) -> Solution:
    """v ← step(q) from below until the bound meets the tolerance."""
    v = problem.lower_start()
    q = problem.q(v)
    for iteration in range(max_iterations + 1):
        _, bound = _centre(problem, q, v)
        if bound <= tolerance or iteration == max_iterations:
            return _solution(problem, q, v, None, iteration, "tolerance" if bound <= tolerance else "limit")
        v = step(q)
        q = problem.q(v)


def _centre(problem: _Problem, q: ActionValues, v: StateValues) -> tuple[float, float]:
    """The middle and the half-width of γ/(1−γ) · [min d, max d], where Q* − q lies."""
    residual = q.max(axis=1) - v
    low, high = residual.min(), residual.max()
    factor = problem.gamma / (1 - problem.gamma) / 2
    return factor * (low + high), factor * (high - low)


def _solution(problem, q, v, pi, iterations, stopped) -> Solution:
    shift, bound = _centre(problem, q, v)
    q = q + np.where(problem.mdp.terminal, 0.0, shift)[:, None]
    pi = np.eye(q.shape[1])[q.argmax(axis=1)] if pi is None else pi
    return Solution(q, pi, iterations, float(bound), stopped)
