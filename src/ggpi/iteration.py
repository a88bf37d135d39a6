"""Policy iteration with GGPI: improve over switching policies of all policies seen so far.

    πₖ₊₁ ∈ 𝒢({Q^ν : ν ∈ Π_m(π₀, …, πₖ)})

Depth 1 is policy iteration: GPI over past policies adds nothing, since the newest one dominates them.
Deeper sets can use what an older policy knew and a later one forgot. With `newest_last` only GSPs that
end in the newest policy are kept: each dominates the same GSP with an older end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.evaluation import QValues, evaluate, evaluate_sampled, ghm_draws
from ggpi.ghm import GHMs, exact_ghms, joined_ghms
from ggpi.improvement import improve
from ggpi.mdp import TabularMDP, check_alpha
from ggpi.policies import TabularPolicy
from ggpi.reals import whole
from ggpi.rewards import Reward
from ggpi.switching import GSPs, compositions
from ggpi.typing import Key, Scalar


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """The policies π₀ … πₖ that were visited, and what they cost.

    Paper: Alg 1
    """

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
    depth: int = 1,
    newest_last: bool = False,
    start: ArrayLike | None = None,
    num_samples: int | None = None,
    max_iterations: int = 100,
    optimal: np.ndarray | None = None,
    tolerance: float | None = None,
    key: Key | None = None,
) -> PolicyIteration:
    """Algorithm 1, exact or with `num_samples` chains per (x, a, ν).

    `start` is the first policy (default: uniform). `optimal` marks optimal actions [S, A], if they are
    known: the loop then stops as soon as a policy uses only these. `tolerance` says what is tied, as in `improve`.

    Paper: Alg 1, Ex 5.3
    """
    if num_samples is not None and key is None:
        raise ValueError("sampled policy iteration needs a key: pass key=jax.random.key(0)")
    max_iterations, alpha = whole(max_iterations, "max_iterations"), check_alpha(alpha)
    pi = TabularPolicy.uniform(mdp) if start is None else TabularPolicy(mdp.checked_policy(start))
    policies = [TabularPolicy(pi.pi, "π0")]
    ghms = exact_ghms(mdp, policies, gamma, alpha)
    samples = draws = 0
    for iteration in range(1, max_iterations + 1):
        newest = len(ghms.policies) - 1
        gsps = compositions(newest + 1, depth, alpha, last=newest if newest_last else None)
        if num_samples is not None:
            samples += ghm_draws(gsps, shared=False) * num_samples * mdp.kernel.shape[0]
            draws += ghm_draws(gsps) * num_samples * mdp.kernel.shape[0]
        q = _evaluate(gsps, ghms, reward, num_samples, key, iteration)
        improved = improve(q, tolerance=tolerance, name=f"π{iteration}")
        if np.array_equal(improved.pi, policies[-1].pi):
            return PolicyIteration(tuple(policies), "stable", samples, draws)
        policies.append(improved)
        if optimal is not None and ((improved.pi > 0) <= optimal).all():
            return PolicyIteration(tuple(policies), "optimal", samples, draws)
        plain = newest_last and depth == 1
        ghms = _with_policy(ghms, mdp, improved, forget=plain)
    return PolicyIteration(tuple(policies), "limit", samples, draws)


def _evaluate(
    gsps: GSPs, ghms: GHMs, reward: Any, num_samples: int | None, key: Any, iteration: int
) -> QValues:
    if num_samples is None:
        return evaluate(gsps, ghms, reward)
    return evaluate_sampled(
        gsps, ghms, reward, num_samples=num_samples, key=jax.random.fold_in(key, iteration)
    )


def _with_policy(ghms: GHMs, mdp: TabularMDP, policy: TabularPolicy, forget: bool) -> GHMs:
    """The models with those of one more policy; factorisations of the others are kept, or all forgotten."""
    new = exact_ghms(mdp, [policy], ghms.gamma, ghms.alphas)
    return new if forget else joined_ghms([ghms, new])
