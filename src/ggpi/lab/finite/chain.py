"""The chain: policy iteration forgets what its first policy knew, GGPI does not.

On x₀ … x_k, right moves on for 0 and from x_k ends for a large reward R; up ends at once for 1. The first
policy π₀ goes right, but up in x_k. Greedy improvement repairs x_k and turns every other state to up,

    π₀ = → … → ↑,   π₁ = 𝒢(π₀) = ↑ … ↑ →,   𝒢(π₁) = 𝒢({π₀, π₁}) = ↑ … ↑ → →,   …

because up's 1 beats the 1 that π₀ gets later. From there policy iteration mends one state at a time and is
optimal after k + 1 steps. The switching policy π₀ → π₁ goes right until it switches, and if that happens in
x_k it collects R. So 𝒢({π₀ → π₁, π₁}), over a suffix-closed set, is optimal after two steps if

    f(k) = Σ_{j=1}^{k−1} γα β^{j−1} + γ β^{k−1} (αR + 1 − α) > 1,   β = γ(1−α),  k ≥ 2.

Since f(k) = γ(α + (1−α) f(k−1)), f(k) > 1 implies f(k−1) > 1: what holds from x₀ holds from all later states,
and γᵏR > 1 follows, so that right is optimal at all. Solving for R gives the bound. With γ⁻ᵏ < R < bound GGPI
needs more than two steps. With α = 1 π₀ has only the first action, so that Q of π₀ → π₁ is Q of π₁: depth 2
is then policy iteration, whatever R is.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ggpi import envs
from ggpi.evaluation import evaluate
from ggpi.ghm import exact_ghms
from ggpi.improvement import improve, policy_iteration
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.mdp.optimal import optimal_actions, q_star
from ggpi.policies import TabularPolicy
from ggpi.switching import GSP, gsp_set

ARROWS = ("→", "↑")


@dataclass(frozen=True)
class Config:
    k: int = 6
    """Moves from x₀ to x_k, in the table of policies."""
    gamma: float = 0.95
    """Discount γ."""
    alpha: float = 0.1
    """Probability α of a switch after each step."""
    margin: float = 1.2
    """The end reward R is this many times the least one for which two steps are enough."""
    ks: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    """Lengths k for which improvement steps are counted."""
    seed: int = 0
    """Changes nothing: all of this is exact."""

    def __post_init__(self):
        if min(self.k, *self.ks) < 2:
            raise ValueError(f"the table and the bound are for k ≥ 2, got k = {min(self.k, *self.ks)}")


PRESETS = {"tiny": Config(ks=(2, 3, 5)), "cpu": Config(), "paper": Config()}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """The table of policies at one k, and improvement steps at many.

    Paper: Ex D.4, Fig 13
    """
    sweep = {f"steps/k-{k}": partial(count_steps, config, k) for k in config.ks}
    results = cells({"table": partial(improvement_table, config), **sweep})
    return {
        "k": config.k,
        "gamma": config.gamma,
        "alpha": config.alpha,
        **results["table"],
        "sweep": [results[name] for name in sweep],
    }


def improvement_table(config: Config) -> Metrics:
    """What each improvement operator makes of π₀, state by state.

    Paper: Fig 13
    """
    bound = envs.chain_reward_bound(config.k, config.gamma, config.alpha)
    reward = config.margin * bound
    policies = improved_policies(config.k, config.gamma, config.alpha, reward)
    optimal = best_actions(config.k, config.gamma, reward)
    return {
        "bound": bound,
        "end_reward": reward,
        "rows": [
            {
                "name": name,
                "actions": ["".join(np.array(ARROWS)[row > 0]) for row in policy.pi[:-1]],
                "optimal": np.all((policy.pi > 0) <= optimal, axis=1)[:-1],
            }
            for name, policy in policies.items()
        ],
    }


def improved_policies(k: int, gamma: float, alpha: float, end_reward: float) -> dict[str, TabularPolicy]:
    """The rows of the paper's table."""
    mdp, reward = envs.chain(k, end_reward)
    pi_0 = first_policy(k)
    pi_1 = improve(mdp.q(pi_0, reward, gamma))
    ghms = exact_ghms(mdp, [pi_0, pi_1], gamma, alpha)
    both = gsp_set([GSP((0,)), GSP((1,))])
    switching = gsp_set([GSP((0, 1), (alpha,)), GSP((1,))])
    return {
        "π₀": pi_0,
        "π₁ = 𝒢(π₀)": pi_1,
        "𝒢(π₁)": improve(mdp.q(pi_1, reward, gamma)),
        "𝒢({π₀, π₁})": improve(evaluate(both, ghms, reward)),
        "𝒢({π₀→π₁, π₁})": improve(evaluate(switching, ghms, reward)),
    }


def first_policy(k: int) -> TabularPolicy:
    """π₀: right, but up in x_k."""
    return TabularPolicy.deterministic([0] * k + [1, 0], 2, "π₀")


def best_actions(k: int, gamma: float, end_reward: float) -> np.ndarray:
    """Marks [S, A] of the optimal actions."""
    return optimal_actions(q_star(*envs.chain(k, end_reward), gamma, tolerance=1e-12))


def count_steps(config: Config, k: int) -> Metrics:
    """Improvement steps until first optimal, and that the bound on R is sharp."""
    gamma, alpha = config.gamma, config.alpha
    bound, least = envs.chain_reward_bound(k, gamma, alpha), gamma**-k
    large, small = config.margin * bound, (bound + least) / 2

    def steps(end_reward: float, alpha: float, depth: int) -> int:
        mdp, reward = envs.chain(k, end_reward)
        known = {"start": first_policy(k), "optimal": best_actions(k, gamma, end_reward)}
        path = policy_iteration(mdp, reward, gamma, alpha, depth=depth, max_iterations=k + 2, **known)
        if path.stopped != "optimal":
            raise ArithmeticError(f"no optimal policy after {path.iterations} improvement steps, k = {k}")
        return path.iterations

    def two_are_enough(end_reward: float) -> bool:
        policy = improved_policies(k, gamma, alpha, end_reward)["𝒢({π₀→π₁, π₁})"]
        return bool(((policy.pi > 0) <= best_actions(k, gamma, end_reward)).all())

    return {
        "k": k,
        "right_is_optimal_above": least,
        "bound": bound,
        "enough_just_above_bound": two_are_enough(bound * (1 + 1e-6)),
        "enough_just_below_bound": two_are_enough(bound * (1 - 1e-6)),
        "large_reward": large,
        "small_reward": small,
        "policy_iteration": steps(large, alpha, depth=1),
        "ggpi": steps(large, alpha, depth=2),
        "ggpi_alpha_one": steps(large, 1.0, depth=2),
        "ggpi_small_reward": steps(small, alpha, depth=2),
    }
