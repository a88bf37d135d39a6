"""Table and figure of `maze-policy-iteration`, from its numbers."""

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.iteration.maze_policy_iteration import METHODS

COLOURS = {"gpi": style.BLUE, "depth-2": style.RED, "depth-inf": style.INK}


def table(metrics: Metrics) -> list[Table]:
    """Returns after each iteration."""
    shown = Table(
        title=f"{metrics['maze']}: returns of learned policies in % of a guide's, who knows the maze",
        caption=f"means over {metrics['num_seeds']} seeds (90% bootstrap); first: the best of four directions",
    )
    shown.add_column("")
    for column in ("first", *(f"π{k}" for k in range(1, _count(metrics)))):
        shown.add_column(column, justify="right")
    for method, points in metrics["returns"].items():
        cells = (f"{100 * p['mean']:.0f} [{100 * p['low']:.0f}, {100 * p['high']:.0f}]" for p in points)
        shown.add_row(METHODS[method], *cells)
    return [shown]


def plot(metrics: Metrics) -> Figure:
    """Return against iteration."""
    canvas, axes = style.figure(1, 1, size=(4.6, 3.2))
    ax = axes[0, 0]
    for method, points in metrics["returns"].items():
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        ax.fill_between(range(len(mean)), low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
        ax.plot(mean, "-o", color=COLOURS[method], markersize=4, label=METHODS[method])
    ax.axhline(100, color=style.GREY, linewidth=0.8, linestyle="--")
    ax.set(xlabel="learned policies", ylabel="return, % of a guide's", ylim=(0, None))
    ax.set_xticks(range(_count(metrics)))
    ax.legend(fontsize=8, frameon=False)
    return canvas


def _count(metrics: Metrics) -> int:
    return len(next(iter(metrics["returns"].values())))
