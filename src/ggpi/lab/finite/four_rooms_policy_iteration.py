"""Policy iteration with GGPI in four-rooms: iterations and model samples against depth.

Algorithm 1 with perfect models. In each iteration Q^ν(x, a) is estimated for every pair and every ν ∈ Π from
1000 chains through Eq 6, and the next policy is greedy in max_ν of the estimates. Π is one of

    full          Π_m(π₀, …, πₖ): all switching policies of m policies seen so far
    newest-last   those that end in the newest policy πₖ; at depth 1 this is plain policy iteration
    closed loop   every switch chooses the best of π₀, …, πₖ in the state reached: depth ∞, from jumps of k + 1 models

The noise of 1000 samples is the point. Far from the goal the actions' values differ by less than the noise,
so plain policy iteration, which sees one estimate of one policy, wanders among nearly optimal policies for
hundreds of iterations until one happens to be exactly optimal. Deeper sets see the goal through many more
chains and reach it in a few. An iteration at depth m costs about kᵐ, so somewhere the gain is eaten up.

With exact values the full set at depth 1 would add nothing to plain policy iteration (§5.2). With noise it
does: a state keeps the best of k estimates of nearly equal policies, which helps wherever the problem is that
no chain hit the goal. So Π_1 in full is a strong baseline, and the paper's claim, fewest samples at depth 2,
is one about newest-last.

Samples are counted twice: as Algorithm 1 spends them, each ν on its own, and as they are drawn here, shared
among switching policies with a common prefix. A run that is not exactly optimal within `max_iterations`, or
that stops because π′ = π before, is censored: it counts with what it spent, and the mean is a lower bound.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product

import jax
import numpy as np

from ggpi import envs, rewards
from ggpi.improvement import Depth, policy_iteration_sampled
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.mdp.optimal import optimal_actions, q_star

STARTS = {"uniform": "first policy uniform", "deterministic": "first policy random and deterministic"}


VARIANTS = {"newest-last": "newest last", "full": "full Πₘ"}


CLOSED = "closed-loop"
"""The variant without a depth."""


COUNTS = {
    "iterations": "Iterations",
    "ghm_samples": "GHM samples",
    "ghm_draws": "GHM samples, prefixes shared",
}


@dataclass(frozen=True)
class Config:
    gamma: float = 0.95
    """Discount γ."""
    alpha: float = 0.1
    """Probability α of a switch after each step."""
    num_samples: int = 1_000
    """Chains for each estimate of Q^ν(x, a)."""
    depths: tuple[int, ...] = (1, 2, 3, 4)
    """Depths m of Π_m."""
    goal: tuple[int, int] = (1, 11)
    """Row and column of the only rewarded cell."""
    num_seeds: int = 100
    """Runs of each kind."""
    max_iterations: int = 5_000
    """Runs that need more are censored."""
    seed: int = 0
    """Random seed of the first run."""

    def __post_init__(self):
        if self.num_seeds < 1 or not self.depths or min(self.depths) < 1:
            raise ValueError(f"num_seeds ≥ 1 and depths ≥ 1, got {self.num_seeds} and {self.depths}")


PRESETS = {
    "tiny": Config(depths=(1, 2), num_seeds=1, max_iterations=20),
    "cpu": Config(num_seeds=8),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Solves four-rooms again and again.

    Paper: Ex 5.3, Fig 4
    """
    kinds = [*product(STARTS, VARIANTS, config.depths), *product(STARTS, [CLOSED], ["inf"])]
    seeds = [config.seed + i for i in range(config.num_seeds)]
    tasks = {
        f"{start}/{variant}/depth-{depth}/seed-{seed}": partial(solve, config, start, variant, depth, seed)
        for seed in seeds
        for start, variant, depth in kinds
    }
    runs = list(cells(tasks).values())
    return {
        "gamma": config.gamma,
        "alpha": config.alpha,
        "num_samples": config.num_samples,
        "num_seeds": config.num_seeds,
        "max_iterations": config.max_iterations,
        "depths": config.depths,
        "summary": [summarise(kind, runs) for kind in kinds],
        "runs": runs,
    }


def solve(config: Config, start: str, variant: str, depth: Depth, seed: int) -> Metrics:
    """One run of Algorithm 1, until the policy is exactly optimal."""
    mdp = envs.four_rooms()
    reward = rewards.state(mdp.indicator(tuple(config.goal)))
    first = None
    if start == "deterministic":
        first = np.eye(mdp.num_actions)[
            np.random.default_rng(seed).integers(mdp.num_actions, size=mdp.num_states)
        ]
    key = jax.random.key(seed)
    variants = [*VARIANTS, CLOSED]
    for number in (
        list(STARTS).index(start),
        variants.index(variant),
        max(config.depths) + 1 if depth == "inf" else depth,
    ):
        key = jax.random.fold_in(key, number)
    found = policy_iteration_sampled(
        mdp,
        reward,
        config.gamma,
        config.alpha,
        depth=depth,
        newest_last=variant == "newest-last",
        start=first,
        num_samples=config.num_samples,
        max_iterations=config.max_iterations,
        optimal=optimal_actions(q_star(mdp, reward, config.gamma, tolerance=1e-12)),
        key=key,
    )
    counts = {count: getattr(found, count) for count in COUNTS}
    return {
        "start": start,
        "variant": variant,
        "depth": depth,
        "seed": seed,
        "stopped": found.stopped,
    } | counts


def summarise(kind: tuple[str, str, Depth], runs: list[Metrics]) -> Metrics:
    """Means and intervals over the runs of one kind."""
    start, variant, depth = kind
    mine = [run for run in runs if (run["start"], run["variant"], run["depth"]) == kind]
    return {
        "start": start,
        "variant": variant,
        "depth": depth,
        "censored": sum(run["stopped"] != "optimal" for run in mine),
        **{count: mean_interval([run[count] for run in mine]) for count in COUNTS},
    }
