"""Greedy improvement, GPI and GGPI: one function over a set of Q-functions.

    π′(a|x) > 0  ⟹  a ∈ argmax_{a′} max_ν Q^ν(x, a′)

One Q-function gives the greedy policy, those of Markov policies GPI, those of a suffix-closed set of
switching policies GGPI, for which Q^{π′} ≥ max_ν Q^ν. Without closure there is no such promise, so an
open set raises an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.evaluation import QValues, evaluate, evaluate_pairs_sampled, ghm_draws
from ggpi.ghm import GHMs, exact_ghms, joined_ghms
from ggpi.mdp.tabular import TabularMDP
from ggpi.mdp.ties import UNKNOWN, is_best
from ggpi.planning.closed_loop import evaluate_closed_loop
from ggpi.planning.closed_loop_sampled import evaluate_closed_loop_sampled
from ggpi.policies import TabularPolicy
from ggpi.rewards import Reward
from ggpi.switching import GSPs, check_alpha, compositions, missing_suffixes
from ggpi.types import Key, Scalar, real, reals, whole

Ties = Literal["uniform", "first", "random"]
Depth = int | Literal["inf"]
"""Of Π_m; "inf" is the closed loop, where every switch chooses the best policy of the state."""


class OpenSetWarning(UserWarning):
    """Improvement over a set that is not suffix-closed: nothing is promised.

    Paper: Ex D.3
    """


def improve(
    q: QValues | ArrayLike,
    *,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    seed: int = 0,
    allow_open_set: bool = False,
    name: str = "improved",
) -> TabularPolicy:
    """A policy that is greedy in max_ν Q^ν.

    Actions that cannot be told from the best are tied: the policy spreads over them evenly, or takes the
    first, or one at random. `tolerance` is relative to the values of each state (see `ggpi.mdp.ties`): by default
    9e-13 for exact values, and 1e-9 for others. An array [S, A] or [n, S, A] is taken as it is; a `QValues` is
    checked.

    Paper: Eq 1, Prop 2.1, Thm 4.2
    """
    if isinstance(q, QValues):
        _check_closed(q, allow_open_set)
    values = _checked_values(q.array if isinstance(q, QValues) else reals(q, "Q-values"))
    sizes = q.sizes if isinstance(q, QValues) else np.abs(values)
    if values.ndim == 3:
        best = values.argmax(axis=0)[None]
        values, sizes = (np.take_along_axis(array, best, axis=0)[0] for array in (values, sizes))
    maximisers = is_best(values, sizes, axis=1, **_limits(q, tolerance))
    return TabularPolicy(break_ties(maximisers, ties, seed), name)


def improve_head(q: QValues, *, tolerance: float | None = None, name: str = "head rule") -> TabularPolicy:
    """Acts in x as the head policies of the GSPs with the best V^ν(x), averaged over those tied, as in `improve`.

    Paper: Thm 4.2
    """
    _check_closed(q, allow_open_set=False)
    _checked_values(q.array)
    chosen = is_best(q.v, q.of_heads(q.sizes), axis=0, **_limits(q, tolerance))
    heads = np.stack([np.asarray(q.policies[gsp.head]) for gsp in q.gsps])
    pi = np.einsum("nx,nxa->xa", chosen / chosen.sum(axis=0), heads)
    return TabularPolicy(pi, name)


def _limits(q: Any, tolerance: float | None) -> dict[str, float]:
    """The tolerance and the error by which ties are judged."""
    accuracy = q.accuracy if isinstance(q, QValues) else UNKNOWN
    chosen = accuracy.tolerance if tolerance is None else real(tolerance, "tolerance")
    return {"tolerance": chosen, "error": accuracy.error}


def break_ties(maximisers: np.ndarray, ties: Ties, seed: int = 0) -> np.ndarray:
    """π [S, A] over the marked actions: all of them evenly, the first, or one at random.

    Paper: Eq 1
    """
    if ties == "uniform":
        weights = maximisers
    elif ties == "first":
        weights = np.cumsum(maximisers, axis=1) * maximisers == 1
    elif ties == "random":
        lots = np.random.default_rng(seed).random(maximisers.shape) * maximisers
        weights = lots == lots.max(axis=1, keepdims=True)
    else:
        raise ValueError(f"ties are broken 'uniform', 'first' or 'random', got {ties!r}")
    return weights / weights.sum(axis=1, keepdims=True)


def _check_closed(q: QValues, allow_open_set: bool) -> None:
    missing = missing_suffixes(q.gsps)
    if not missing:
        return
    names = _names(q.policies)
    listed = ", ".join(gsp.name(names) for gsp in missing[:5]) + (", …" if len(missing) > 5 else "")
    said = f"the set is not suffix-closed: it lacks {len(missing)} suffixes ({listed})"
    if not allow_open_set:
        raise ValueError(
            f"{said}, so improvement is not guaranteed; evaluate suffix_closure(gsps), "
            "or pass allow_open_set=True to continue"
        )
    warnings.warn(f"{said}; the improved policy may be worse than its parts", OpenSetWarning, stacklevel=3)


def _names(policies: Sequence[Any]) -> list[str]:
    return [policy.name for policy in policies]


def _checked_values(values: np.ndarray) -> np.ndarray:
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ValueError(f"Q-values have shape [S, A] or [n, S, A], got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{(~np.isfinite(values)).sum()} Q-values are not finite")
    return values


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """The policies π₀ … πₖ that were visited, and what they cost."""

    policies: tuple[TabularPolicy, ...]
    stopped: Literal["optimal", "stable", "limit"]
    """On a known optimum, because π′ = π, or at the limit."""
    ghm_samples: int
    """Model samples over all x, a and ν, each ν on its own as in Algorithm 1; 0 when exact."""
    ghm_draws: int
    """Model samples that were drawn: prefixes are shared."""

    @property
    def policy(self) -> TabularPolicy:
        """The last policy."""
        return self.policies[-1]

    @property
    def iterations(self) -> int:
        """Improvement steps."""
        return len(self.policies) - 1


def policy_iteration(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: Scalar,
    alpha: Scalar,
    *,
    depth: Depth = 1,
    newest_last: bool = False,
    start: ArrayLike | None = None,
    max_iterations: int = 100,
    optimal: np.ndarray | None = None,
    tolerance: float | None = None,
) -> PolicyIteration:
    """Algorithm 1 with exact values: πₖ₊₁ ∈ 𝒢({Q^ν : ν ∈ Π_m(π₀, …, πₖ)}).

    Args:
        mdp: the dynamics.
        reward: a reward of the MDP.
        gamma: the discount of the return.
        alpha: the switching probability of the GSPs.
        depth: m; depth 1 is policy iteration, because the newest policy dominates the older ones. "inf" is the closed
            loop over π₀, …, πₖ (`ggpi.evaluate_closed_loop`).
        newest_last: whether only GSPs that end in the newest policy are kept; each dominates the same GSP with an
            older end.
        start: the first policy; uniform by default.
        max_iterations: the most improvement steps.
        optimal: optimal actions [S, A], if they are known: the loop stops at a policy that uses only these.
        tolerance: what counts as a tie, as in `improve`.

    Paper: Alg 1
    """
    solver = _Solver(mdp, gamma, check_alpha(alpha), depth, newest_last, max_iterations, optimal, tolerance)

    def values(gsps: GSPs | None, ghms: GHMs, _: int) -> QValues:
        return evaluate_closed_loop(ghms, reward) if gsps is None else evaluate(gsps, ghms, reward)

    return solver.run(start, values, 0)


def policy_iteration_sampled(
    mdp: TabularMDP,
    reward: Reward | ArrayLike,
    gamma: Scalar,
    alpha: Scalar,
    *,
    num_samples: int,
    depth: Depth = 1,
    newest_last: bool = False,
    start: ArrayLike | None = None,
    max_iterations: int = 100,
    optimal: np.ndarray | None = None,
    tolerance: float | None = None,
    key: Key,
) -> PolicyIteration:
    """Algorithm 1 with values estimated from `num_samples` chains per (x, a, ν); see `policy_iteration`.

    At depth "inf" these are jumps per (x, a, k), drawn for every policy in every iteration.

    Paper: Alg 1, Ex 5.3
    """
    solver = _Solver(mdp, gamma, check_alpha(alpha), depth, newest_last, max_iterations, optimal, tolerance)

    def estimate(gsps: GSPs | None, ghms: GHMs, iteration: int) -> QValues:
        noise = jax.random.fold_in(key, iteration)
        if gsps is None:
            return evaluate_closed_loop_sampled(ghms, reward, num_samples=num_samples, key=noise)
        return evaluate_pairs_sampled(gsps, ghms, reward, num_samples=num_samples, key=noise)

    return solver.run(start, estimate, whole(num_samples, "num_samples"))


@dataclass(frozen=True)
class _Solver:
    """Algorithm 1 for any way to evaluate a set of GSPs; the set is None at depth "inf"."""

    mdp: TabularMDP
    gamma: Scalar
    alpha: float
    depth: Depth
    newest_last: bool
    max_iterations: int
    optimal: np.ndarray | None
    tolerance: float | None

    def run(
        self, start: ArrayLike | None, values: Callable[[GSPs | None, GHMs, int], QValues], num_samples: int
    ) -> PolicyIteration:
        pi = (
            TabularPolicy.uniform(self.mdp)
            if start is None
            else TabularPolicy(self.mdp.checked_policy(start))
        )
        policies = [TabularPolicy(pi.pi, "π0")]
        ghms = exact_ghms(self.mdp, policies, self.gamma, self.alpha)
        chains, samples, draws = num_samples * self.mdp.kernel.shape[0], 0, 0
        for iteration in range(1, whole(self.max_iterations, "max_iterations") + 1):
            gsps = self._set(len(ghms.policies) - 1)
            samples += chains * (len(ghms.policies) if gsps is None else sum(map(len, gsps)))
            draws += chains * (len(ghms.policies) if gsps is None else ghm_draws(gsps))
            improved = improve(values(gsps, ghms, iteration), tolerance=self.tolerance, name=f"π{iteration}")
            if np.array_equal(improved.pi, policies[-1].pi):
                return PolicyIteration(tuple(policies), "stable", samples, draws)
            policies.append(improved)
            if self.optimal is not None and ((improved.pi > 0) <= self.optimal).all():
                return PolicyIteration(tuple(policies), "optimal", samples, draws)
            ghms = self._with_policy(ghms, improved)
        return PolicyIteration(tuple(policies), "limit", samples, draws)

    def __post_init__(self):
        if self.depth == "inf" and self.newest_last:
            raise ValueError(
                'depth="inf" has no last policy: leave newest_last out, or give a number as depth'
            )

    def _set(self, newest: int) -> GSPs | None:
        if self.depth == "inf":
            return None
        return compositions(newest + 1, self.depth, self.alpha, last=newest if self.newest_last else None)

    def _with_policy(self, ghms: GHMs, policy: TabularPolicy) -> GHMs:
        """The models with those of one more policy; at depth 1 with the newest last, of that one alone."""
        new = exact_ghms(self.mdp, [policy], ghms.gamma, ghms.alphas)
        return new if self.newest_last and self.depth == 1 else joined_ghms([ghms, new])
