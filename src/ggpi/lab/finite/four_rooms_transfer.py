"""Zero-shot transfer in four-rooms: where does the improved policy act optimally?

Four policies are known, each always moving left, down, right or up, and a new reward appears: 1 in the
top right cell. Nothing is learned for it. Depth-m GGPI takes all switching policies of m segments,

    Π_m = {π⁽¹⁾ →(α) … →(α) π⁽ᵐ⁾},   π′(x) ∈ argmax_a max_{ν∈Π_m} Q^ν(x, a),

with Q^ν exact, from the models μ_γ and μ_β of the four policies, β = γ(1−α) = 0.8. Depth 1 is GPI: it
sees what one straight line can reach. Each further segment adds a turn.

A state counts as solved when *every* greedy action there is optimal, so a tie in which one action is
wrong does not count (at depth 1 most states are such: Q is 0 for all actions; the two lone states at the
lower left are solved because all four actions are optimal there). Ties are taken within 1e-9 of the values.

The paper shows depths 1 to 3 with deterministic moves. We add depth 4, and a world in which a third of
the moves slip to another direction. There every policy reaches the goal by chance, so GPI already finds
its way; what Π_m promises, max_ν Q^ν, still grows with m, but the policies are no better for it.
Theorem 4.2 bounds π′ from below by the set's values; it does not order the depths.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.table import Table

from ggpi import envs, rewards
from ggpi.evaluation import evaluate
from ggpi.ghm import exact_ghms
from ggpi.improvement import improve, policy_iteration
from ggpi.lab import style
from ggpi.lab.contract import Cells, compute
from ggpi.mdp.optimal import optimal_actions
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


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Solved states of each world at each depth.

    Paper: Ex 5.2, Fig 3
    """
    tasks = {
        _cell(slip, depth): partial(solve, config, slip, depth)
        for slip in config.slips
        for depth in config.depths
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
            {"slip": slip, "depths": [results[_cell(slip, depth)] for depth in config.depths]}
            for slip in config.slips
        ],
    }


def _cell(slip: float, depth: int) -> str:
    return f"slip-{slip:.3g}/depth-{depth}"


def solve(config: Config, slip: float, depth: int) -> dict[str, Any]:
    """Improves over Π_depth and compares with the optimum, state by state.

    Paper: Fig 3
    """
    mdp = envs.four_rooms(slip)
    reward = rewards.state(mdp.indicator(tuple(config.goal)))
    policies = [TabularPolicy.constant(mdp, a, name) for a, name in enumerate(envs.ACTIONS)]
    ghms = exact_ghms(mdp, policies, config.gamma, config.alpha)
    gsps = compositions(len(policies), depth, config.alpha)
    q = evaluate(gsps, ghms, reward)
    policy = improve(q)

    best = policy_iteration(mdp, reward, config.gamma, config.alpha).policy
    q_star = mdp.q(best, reward, config.gamma)
    solved = ((policy.pi > 0) <= optimal_actions(q_star)).all(axis=1)
    v, v_star = mdp.v(policy, reward, config.gamma), q_star.max(axis=1)
    return {
        "depth": depth,
        "gsps": len(gsps),
        "optimal": int(solved.sum()),
        "states": [mdp.labels[x] for x in np.flatnonzero(solved)],
        "promised_share": float((np.asarray(q).max(axis=(0, 2)) / v_star).mean()),
        "value_share": float((v / v_star).mean()),
    }


def table(metrics: dict[str, Any]) -> list[Table]:
    """Depth against solved states, one table for each world."""
    return [_world_table(world, metrics["num_states"]) for world in metrics["worlds"]]


def _world_table(world: dict[str, Any], num_states: int) -> Table:
    caption = "promised: mean of max_ν,a Q^ν(x, a)/V*(x), which V/V* cannot fall below"
    title = f"Four rooms, {_moves(world['slip'])}"
    shown = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    shown.add_column("depth", justify="right")
    shown.add_column("GSPs", justify="right")
    shown.add_column(f"optimal, of {num_states} states", no_wrap=True)
    shown.add_column("promised", justify="right")
    shown.add_column("mean V/V*", justify="right")
    for row in world["depths"]:
        bar = "█" * round(24 * row["optimal"] / num_states)
        name = f"{row['depth']} (GPI)" if row["depth"] == 1 else str(row["depth"])
        states = f"{row['optimal']:>3} [cyan]{bar}[/cyan]"
        shares = f"{row['promised_share']:.3f}", f"{row['value_share']:.3f}"
        shown.add_row(name, str(row["gsps"]), states, *shares)
    return shown


def plot(metrics: dict[str, Any]) -> Figure:
    """Maps side by side: depths from left to right, one row for each world."""
    worlds = metrics["worlds"]
    columns = len(worlds[0]["depths"])
    canvas, axes = style.figure(len(worlds), columns, size=(2.3, 2.5))
    for world, row in zip(worlds, axes, strict=True):
        for result, ax in zip(world["depths"], row, strict=True):
            colours = {tuple(state): style.MARKED for state in result["states"]}
            colours[tuple(metrics["goal"])] = style.GOAL
            name = "GPI (depth 1)" if result["depth"] == 1 else f"GGPI, depth {result['depth']}"
            title = f"{name}\n{result['optimal']} of {metrics['num_states']} states optimal"
            style.grid_map(ax, metrics["cells"], colours, title)
        row[0].set_ylabel(_moves(world["slip"]), fontsize=9, color=style.INK)
    handles = [
        Patch(facecolor=style.MARKED, edgecolor=style.GREY, label="every greedy action is optimal"),
        Patch(facecolor=style.FLOOR, edgecolor=style.GREY, label="some greedy action is not"),
        Patch(facecolor=style.GOAL, edgecolor=style.GREY, label="goal, the only reward"),
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return canvas


def _moves(slip: float) -> str:
    chance = Fraction(slip).limit_denominator(99)
    return f"moves slip with probability {chance}" if slip else "deterministic moves"
