"""Policy iteration with GGPI in four-rooms: iterations and model samples against depth.

Algorithm 1 with perfect models. In each iteration Q^ν(x, a) is estimated for every pair and every ν ∈ Π from
1000 chains through Eq 6, and the next policy is greedy in max_ν of the estimates. Π is one of

    full          Π_m(π₀, …, πₖ): all switching policies of m policies seen so far
    newest-last   those that end in the newest policy πₖ; at depth 1 this is plain policy iteration

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
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi import envs, rewards
from ggpi.improvement import policy_iteration_sampled
from ggpi.lab import style
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.contract import Cells, compute
from ggpi.mdp.optimal import optimal_actions, q_star

STARTS = {"uniform": "first policy uniform", "deterministic": "first policy random and deterministic"}
VARIANTS = {"newest-last": "newest last", "full": "full Πₘ"}
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


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Solves four-rooms again and again.

    Paper: Ex 5.3, Fig 4
    """
    kinds = list(product(STARTS, VARIANTS, config.depths))
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


def solve(config: Config, start: str, variant: str, depth: int, seed: int) -> dict[str, Any]:
    """One run of Algorithm 1, until the policy is exactly optimal."""
    mdp = envs.four_rooms()
    reward = rewards.state(mdp.indicator(tuple(config.goal)))
    first = None
    if start == "deterministic":
        first = np.eye(mdp.num_actions)[
            np.random.default_rng(seed).integers(mdp.num_actions, size=mdp.num_states)
        ]
    key = jax.random.key(seed)
    for number in (list(STARTS).index(start), list(VARIANTS).index(variant), depth):
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


def summarise(kind: tuple[str, str, int], runs: list[dict[str, Any]]) -> dict[str, Any]:
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


def table(metrics: dict[str, Any]) -> list[Table]:
    """Means over seeds, with 95% intervals; the fewest samples of each set are bold."""
    return [_table_of_start(metrics, start) for start in STARTS]


def _table_of_start(metrics: dict[str, Any], start: str) -> Table:
    shown = Table(
        title=f"Until exactly optimal, {STARTS[start]}",
        caption=f"mean over {metrics['num_seeds']} seeds (95% bootstrap); bold: fewest; ≥: some censored",
    )
    for column in ("set", "depth", "iterations", "10⁶ samples", "drawn", "censored"):
        shown.add_column(column, justify="left" if column == "set" else "right", no_wrap=True)
    for variant in VARIANTS:
        rows = select(metrics, start, variant)
        fewest = min(rows, key=lambda row: row["ghm_samples"]["mean"])
        for row in rows:
            least = "≥ " * (row["censored"] > 0)
            shown.add_row(
                VARIANTS[variant] if row is rows[0] else "",
                str(row["depth"]),
                least + _interval(row["iterations"]),
                least + _interval(row["ghm_samples"], unit=1e6),
                least + _short(row["ghm_draws"]["mean"] / 1e6),
                str(row["censored"]),
                style="bold" if row is fewest else "",
            )
        shown.add_section()
    return shown


def select(metrics: dict[str, Any], start: str, variant: str) -> list[dict[str, Any]]:
    """The summary's rows of one kind of run, by depth."""
    return [row for row in metrics["summary"] if (row["start"], row["variant"]) == (start, variant)]


def _interval(count: dict[str, float], unit: float = 1.0) -> str:
    low, mean, high = (_short(count[part] / unit) for part in ("low", "mean", "high"))
    return f"{mean} ({low}–{high})"


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 100 else f"{number:.0f}"


def plot(metrics: dict[str, Any]) -> Figure:
    """Iterations on the left, model samples on the right; one row for each kind of first policy."""
    canvas, axes = style.figure(len(STARTS), 2, size=(4.2, 3.0), sharex=True)
    for (start, words), row in zip(STARTS.items(), axes, strict=True):
        for ax, count in zip(row, ("iterations", "ghm_samples"), strict=True):
            draw_counts(ax, metrics, start, count)
            ax.set_title(f"{COUNTS[count]}, {words}", fontsize=9, color=style.INK)
    for ax in axes[-1]:
        ax.set_xlabel("depth m", fontsize=9)
    axes[0, 0].legend(fontsize=8, frameon=False)
    axes[0, 1].legend(fontsize=8, frameon=False)
    return canvas


def draw_counts(ax: Axes, metrics: dict[str, Any], start: str, count: str) -> None:
    """Means with their intervals against depth; hollow if runs were censored, fewest samples ringed."""
    colours = {"newest-last": style.BLUE, "full": style.RED}
    for shift, (variant, colour) in zip((-0.06, 0.06), colours.items(), strict=True):
        rows = select(metrics, start, variant)
        depth = np.array([row["depth"] for row in rows]) + shift
        mean, low, high = (np.array([row[count][part] for row in rows]) for part in ("mean", "low", "high"))
        ax.errorbar(depth, mean, [mean - low, high - mean], color=colour, capsize=3, linewidth=1.2)
        ax.plot(depth, mean, "o", color=colour, markersize=5, label=VARIANTS[variant])
        for x, y in [(x, y) for x, y, row in zip(depth, mean, rows, strict=True) if row["censored"]]:
            ax.plot(x, y, "o", color="white", markeredgecolor=colour, markersize=5, zorder=5)
            ax.annotate("≥", (x, y), xytext=(-12, -2), textcoords="offset points", fontsize=9, color=colour)
        if count == "ghm_samples":
            drawn = [row["ghm_draws"]["mean"] for row in rows]
            ax.plot(depth, drawn, ":", color=colour, linewidth=1, label="… prefixes shared")
            fewest = mean.argmin()
            ax.plot(depth[fewest], mean[fewest], "o", color="none", markeredgecolor=style.INK, markersize=11)
    ax.set_yscale("log")
    ax.set_xticks(metrics["depths"])
