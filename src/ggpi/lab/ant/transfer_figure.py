"""Tables and figure of `ant-transfer`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.ant.calibration import calibration_table
from ggpi.lab.cells import Metrics

CASES = (
    "depth 2 succeeds, GPI fails",
    "both succeed, depth 2 is faster",
    "both fail",
    "both succeed, GPI is faster",
    "GPI succeeds, depth 2 fails",
    "both succeed, in the same step",
)
PAPER = (50.8, 45.0, 1.0, 2.8, 0.4, None)
COLOURS = {1: style.RED, 2: style.BLUE, 3: style.GREEN}


def table(metrics: Metrics) -> list[Table]:
    """Calibration, Table 1, success of every agent, and models beside the oracle."""
    return [
        calibration_table(metrics["ratios"]),
        _case_table(metrics),
        _success_table(metrics),
        oracle_table(metrics),
    ]


def _case_table(metrics: Metrics) -> Table:
    shown = Table(title=f"Table 1, {max(metrics['samples'])} samples", title_justify="left")
    for column in ("case", "here, %", "paper, %"):
        shown.add_column(column, justify="left" if column == "case" else "right")
    for words, row, paper in zip(CASES, metrics["table"], PAPER, strict=True):
        shown.add_row(
            words,
            f"{row['mean']:.1f} [{row['low']:.1f}, {row['high']:.1f}]",
            "–" if paper is None else f"{paper:.1f}",
        )
    return shown


def _success_table(metrics: Metrics) -> Table:
    shown = Table(
        title=f"Success, {metrics['episodes']} episodes, radius {metrics['radius']:g}",
        caption=f"90% bootstrap intervals; learned: {metrics['num_models']} seeds of models",
        title_justify="left",
    )
    for column in ("agent", "success, %", "mean steps"):
        shown.add_column(column, justify="left" if column == "agent" else "right")
    rows = {style.depth_name(d): curve[-1] for d, curve in metrics["curves"].items()}
    n = metrics["oracle_samples"]
    rows |= {f"oracle, depth {d}, n = {n}": row for d, row in metrics["oracle"].items()}
    rows |= {
        f"depth {d} on the oracle's episodes and budget": row["models_on_the_same"]
        for d, row in metrics["oracle"].items()
    }
    for words, row in (rows | metrics["variants"] | metrics["baselines"]).items():
        interval = f"{100 * row['mean']:.0f} [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
        shown.add_row(words, interval, "–" if row["steps"] is None else f"{row['steps']:.0f}")
    return shown


def oracle_table(metrics: Metrics) -> Table:
    """Models and the simulator in the same episodes, with as many samples."""
    shown = Table(
        title=f"Models and the simulator in their place, n = {metrics['oracle_samples']}",
        caption="the same episodes; 95% bootstrap intervals of the paired difference",
        title_justify="left",
    )
    for column in ("depth", "episodes", "models, %", "simulator, %", "difference, points"):
        shown.add_column(column, justify="right")
    for depth, row in metrics["oracle"].items():
        apart = row["difference"]
        shown.add_row(
            depth,
            str(metrics["oracle_episodes"]),
            f"{100 * row['models_on_the_same']['mean']:.0f}",
            f"{100 * row['mean']:.0f}",
            f"{apart['mean']:+.1f} [{apart['low']:+.1f}, {apart['high']:+.1f}]",
        )
    return shown


def plot(metrics: Metrics) -> Figure:
    """Success against samples; every agent at the largest budget; how the models are calibrated."""
    canvas, axes = style.figure(1, 3, size=(4.0, 3.2))
    _draw_curves(axes[0, 0], metrics)
    _draw_agents(axes[0, 1], metrics)
    _draw_calibration(axes[0, 2], metrics["calibration"])
    return canvas


def _draw_curves(ax: Axes, metrics: Metrics) -> None:
    n = metrics["samples"]
    for depth, curve in metrics["curves"].items():
        colour, words = COLOURS[int(depth)], style.depth_name(depth)
        mean, low, high = (
            100 * np.array([point[part] for point in curve]) for part in ("mean", "low", "high")
        )
        ax.fill_between(n, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(n, mean, "-o", color=colour, linewidth=1.3, markersize=3, label=words)
        oracle = metrics["oracle"][depth]
        ax.plot(metrics["oracle_samples"], 100 * oracle["mean"], "*", color=colour, markersize=10)
    ax.set_xscale("log")
    ax.set_xticks(n, [str(i) for i in n])
    ax.minorticks_off()
    ax.set(xlabel="samples per GSP of depth 2 (equal total)", ylabel="targets reached, %", ylim=(0, 103))
    ax.set_title("stars: the simulator instead of models", fontsize=9, color=style.INK)
    ax.legend(frameon=False, fontsize=7)


def _draw_agents(ax: Axes, metrics: Metrics) -> None:
    rows = {f"depth {d}": (curve[-1], COLOURS[int(d)]) for d, curve in metrics["curves"].items()}
    n = metrics["oracle_samples"]
    rows |= {f"oracle, depth {d}, n = {n}": (row, style.GREY) for d, row in metrics["oracle"].items()}
    rows |= {name: (row, style.CYAN) for name, row in metrics["variants"].items()}
    rows |= {name: (row, style.YELLOW) for name, row in metrics["baselines"].items()}
    for i, (row, colour) in enumerate(rows.values()):
        low, high = row["mean"] - row["low"], row["high"] - row["mean"]
        ax.barh(
            i,
            100 * row["mean"],
            color=colour,
            xerr=[[100 * max(low, 0)], [100 * max(high, 0)]],
            ecolor=style.INK,
        )
    ax.set_yticks(range(len(rows)), list(rows), fontsize=7)
    ax.invert_yaxis()
    ax.set(xlabel="targets reached, %", xlim=(0, 103))


def _draw_calibration(ax: Axes, found: list[Metrics]) -> None:
    marks = {"mean": "o", "along": "s", "across": "^"}
    for (horizon, _), colour in zip(found[0].items(), style.PALETTE, strict=False):
        for name, mark in marks.items():
            points = [(row["true"][name], row["model"][name]) for one in found for row in one[horizon]]
            ax.scatter(*np.array(points).T, marker=mark, s=18, color=colour, label=f"{name}, β = {horizon}")
    largest = ax.get_xlim()[1]
    ax.plot([0, largest], [0, largest], color=style.GREY, linewidth=0.8)
    ax.fill_between(
        [0, largest], [0, 0.8 * largest], [0, 1.2 * largest], color=style.GREY, alpha=0.2, linewidth=0
    )
    ax.set(xlabel="simulated displacement, units", ylabel="the models'")
    ax.set_title("mean, spread along and across; band ±20%", fontsize=9, color=style.INK)
    ax.legend(frameon=False, fontsize=6)
