"""Table and figure of `ghm-vs-one-step`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.models.one_step import KINDS

COLOURS = {"ghm": style.BLUE, "one-step": style.RED, "truth": style.GREY}


def table(metrics: Metrics) -> Table:
    """Errors near and far, lost samples, and energy distances."""
    shown = Table(
        title=f"Distance to the nearest simulated state, β = {metrics['beta']:g}",
        caption=f"medians by horizon in steps, in units of the true displacement; {metrics['num_seeds']} seeds",
    )
    for column in ("world", "samples", "1", "4–5", "13–18", "28–60", "lost", "energy"):
        shown.add_column(column, justify="left" if column in ("world", "samples") else "right", no_wrap=True)
    for world in metrics["worlds"]:
        for kind, words in KINDS.items():
            row, name = world[kind], world["world"] if kind == "ghm" else ""
            means = [_mean(row["by_horizon"][i]) for i in (0, 3, 6, 8)]
            shown.add_row(name, words, *means, f"{row['lost']['mean']:.1%}", _mean(row["energy"]))
        shown.add_section()
    return shown


def _mean(found: dict[str, float] | None) -> str:
    return "–" if found is None else f"{found['mean']:{'.3f' if abs(found['mean']) < 100 else '.3g'}}"


def plot(metrics: Metrics) -> Figure:
    """Samples at one pair on the left, errors against the horizon on the right; one row for each world."""
    canvas, axes = style.figure(len(metrics["worlds"]), 2, size=(4.4, 3.3))
    for world, row in zip(metrics["worlds"], axes, strict=True):
        draw_samples(row[0], world)
        draw_errors(row[1], world, metrics["edges"])
        row[0].set_title(f"{world['world']}: samples from one pair (x, a)", fontsize=9, color=style.INK)
        row[1].set_title("distance to the nearest simulated state (median)", fontsize=9, color=style.INK)
    axes[-1, 1].set_xlabel("horizon (steps)", fontsize=9)
    for ax, corner in zip(axes[0], ("upper right", "upper left"), strict=True):
        ax.legend(fontsize=7, framealpha=0.8, edgecolor="none", loc=corner)
    return canvas


def draw_samples(ax: Axes, world: Metrics) -> None:
    """Two coordinates of samples and of simulated futures."""
    for kind, size in (("truth", 14), ("one-step", 6), ("ghm", 6)):
        cloud = np.array(world["scatter"][kind])
        ax.scatter(*cloud.T, s=size, color=COLOURS[kind], alpha=0.6, linewidth=0, label=KINDS[kind])
    ax.plot(*world["scatter"]["start"], "*", color=style.INK, markersize=9, label="x")
    _focus(ax, [np.array(world["scatter"][kind]) for kind in KINDS])
    ax.set_xlabel(world["coordinates"][0], fontsize=9)
    ax.set_ylabel(world["coordinates"][1], fontsize=9)


def _focus(ax: Axes, clouds: list[np.ndarray]) -> None:
    """Shows the middle 94% of each cloud, and says how many points lie outside."""
    middles = np.concatenate([np.quantile(cloud, [0.03, 0.97], axis=0) for cloud in clouds])
    low, high = middles.min(axis=0), middles.max(axis=0)
    low, high = low - 0.3 * (high - low), high + 0.3 * (high - low)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    outside = sum(int(((cloud < low) | (cloud > high)).any(axis=1).sum()) for cloud in clouds)
    if outside:
        words = f"{outside} of {sum(map(len, clouds))} points lie outside"
        ax.text(0.02, 0.02, words, fontsize=7, color=style.INK, transform=ax.transAxes)


def draw_errors(ax: Axes, world: Metrics, edges: list[int]) -> None:
    """Median errors, their means over seeds with intervals, against the middle of each range of horizons."""
    middles = np.sqrt(np.array(edges[:-1]) * (np.array(edges[1:]) - 1))
    lines = [(kind, "by_horizon", "-o", words) for kind, words in KINDS.items()]
    lines.append(("one-step", "by_steps", ":", "one-step, by the steps it took"))
    for kind, name, line, words in lines:
        known = [
            (x, point)
            for x, point in zip(middles, world[kind][name], strict=True)
            if point and point["low"] > 0
        ]
        x = [x for x, _ in known]
        mean, low, high = ([point[part] for _, point in known] for part in ("mean", "low", "high"))
        ax.fill_between(x, low, high, color=COLOURS[kind], alpha=0.15, linewidth=0)
        ax.plot(x, mean, line, color=COLOURS[kind], linewidth=1.3, markersize=3, label=words)
    ax.set_xscale("log")
    ax.set_yscale("log")
    style.plain_log(ax.xaxis)
    style.plain_log(ax.yaxis)
