"""Zero-shot transfer in four-rooms: where does the improved policy act optimally?

Four policies are known, each always moving left, down, right or up, and a new reward appears: 1 in the
top right cell. Nothing is learned for it. Depth-m GGPI takes all switching policies of m segments,

    Π_m = {π⁽¹⁾ →(α) … →(α) π⁽ᵐ⁾},   π′(x) ∈ argmax_a max_{ν∈Π_m} Q^ν(x, a),

with Q^ν exact, from the models μ_γ and μ_β of the four policies, β = γ(1−α) = 0.8. Depth 1 is GPI: it
sees what one straight line can reach. Each further segment adds a turn.

A state counts as solved when *every* greedy action there is optimal, so a tie in which one action is
wrong does not count (at depth 1 most states are such: Q is 0 for all actions; the two lone states at the
lower left are solved because all four actions are optimal there). Ties are taken within 1e-9 of the values.

The paper shows depths 1 to 3 with deterministic moves. We add depth 4, the closed loop (depth ∞: every switch chooses
the policy that is best in the state reached, `ggpi.evaluate_closed_loop`), and a world in which a third of
the moves slip to another direction. There every policy reaches the goal by chance, so GPI already finds
its way; what Π_m promises, max_ν Q^ν, still grows with m, up to the closed loop, which no depth exceeds, but the
policies are hardly better for it.
Theorem 4.2 bounds π′ from below by the set's values; it does not order the depths.
"""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from ggpi import envs, rewards
from ggpi.evaluation import evaluate
from ggpi.ghm import exact_ghms
from ggpi.improvement import Depth, improve
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.mdp.optimal import howard, optimal_actions
from ggpi.planning import evaluate_closed_loop
from ggpi.policies import TabularPolicy
from ggpi.switching import compositions


@dataclass(frozen=True)
class Config:
    gamma: float = 0.9
    """Discount γ of the new reward."""
    alpha: float = 1 / 9
    """Probability α of a switch after each step; with γ = 0.9 the models of a segment have β = 0.8."""
    depths: tuple[int, ...] = (1, 2, 3, 4)
    """Depths m of Π_m; the paper shows 1, 2 and 3."""
    goal: tuple[int, int] = (1, 11)
    """Row and column of the only rewarded cell."""
    slips: tuple[float, ...] = (0.0, 1 / 3)
    """Probability that a move goes to another direction, one world for each; the paper has 0."""
    seed: int = 0
    """Changes nothing: all of this is exact."""


PRESETS = {"tiny": Config(depths=(1, 2, 3)), "cpu": Config(), "paper": Config()}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Solved states of each world at each depth.

    Paper: Ex 5.2, Fig 3
    """
    tasks = {
        _cell(slip, depth): partial(solve, config, slip, depth)
        for slip in config.slips
        for depth in (*config.depths, "inf")
    }
    results = cells(tasks)
    layout = envs.four_rooms()
    return {
        "gamma": config.gamma,
        "alpha": config.alpha,
        "goal": config.goal,
        "num_states": layout.num_states,
        "cells": layout.labels,
        "worlds": [
            {
                "slip": slip,
                "depths": [results[_cell(slip, depth)] for depth in config.depths],
                "closed_loop": results[_cell(slip, "inf")],
            }
            for slip in config.slips
        ],
    }


def _cell(slip: float, depth: Depth) -> str:
    return f"slip-{slip:.3g}/depth-{depth}"


def solve(config: Config, slip: float, depth: Depth) -> Metrics:
    """Improves over Π_depth, or over the closed loop, and compares with the optimum, state by state.

    Paper: Fig 3
    """
    mdp = envs.four_rooms(slip)
    reward = rewards.state(mdp.indicator(tuple(config.goal)))
    policies = [TabularPolicy.constant(mdp, a, name) for a, name in enumerate(envs.ACTIONS)]
    ghms = exact_ghms(mdp, policies, config.gamma, config.alpha)
    begun = time.perf_counter()
    if depth == "inf":
        q = evaluate_closed_loop(ghms, reward)
    else:
        q = evaluate(compositions(len(policies), depth, config.alpha), ghms, reward)
    policy = improve(q)
    seconds = time.perf_counter() - begun

    best = howard(mdp, reward, config.gamma).q
    solved = ((policy.pi > 0) <= optimal_actions(best)).all(axis=1)
    v, v_star = mdp.v(policy, reward, config.gamma), best.max(axis=1)
    return {
        "depth": depth,
        "gsps": len(q.gsps),
        "optimal": int(solved.sum()),
        "states": [mdp.labels[x] for x in np.flatnonzero(solved)],
        "promised_share": float((np.asarray(q).max(axis=(0, 2)) / v_star).mean()),
        "value_share": float((v / v_star).mean()),
        "seconds": seconds,
    }
