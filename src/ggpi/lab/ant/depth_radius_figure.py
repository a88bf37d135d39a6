"""Tables and figure of `ant-depth-radius`, from its numbers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import MPC, best_alone
from ggpi.lab.ant.calibration import calibration_table
from ggpi.lab.cells import Metrics

COLOURS = {1: style.RED, 2: style.BLUE, 3: style.GREEN}


def table(metrics: Metrics) -> list[Table]:
    """How the models are calibrated, and one row for each setting."""
    shown = Table(title=f"Success in %, {metrics['episodes']} episodes each", title_justify="left")
    depths = [f"depth {d}" for d in metrics["depths"]]
    for column in ("target", *depths, "best policy alone", "random switching", "MPC"):
        shown.add_column(column, justify="left" if column == "target" else "right")
    for name, row in metrics["success"].items():
        numbers = [row[str(d)]["mean"] for d in metrics["depths"]]
        numbers += [best_alone(row), row["random switching"]["mean"], row[MPC]["mean"]]
        shown.add_row(name.replace("-", " "), *(f"{100 * number:.0f}" for number in numbers))
    return [calibration_table(metrics["ratios"]), shown]


def plot(metrics: Metrics) -> Figure:
    """Success against radius and against distance."""
    canvas, axes = style.figure(1, 2, size=(4.0, 3.0), sharey=True)
    _draw(axes[0, 0], metrics, "radius", metrics["radii"], "radius of the target, at distance 2 to 4")
    _draw(
        axes[0, 1],
        metrics,
        "distance",
        metrics["distances"],
        f"distance of the target, radius {ant.RADIUS:g}",
    )
    axes[0, 0].set(ylabel="targets reached, %", ylim=(0, 103))
    axes[0, 0].legend(frameon=False, fontsize=7)
    return canvas


def _draw(ax: Axes, metrics: Metrics, name: str, values: Sequence[float], words: str) -> None:
    looks = {str(depth): (f"depth {depth}", COLOURS[depth], "-o") for depth in metrics["depths"]}
    looks |= {MPC: (MPC, style.YELLOW, "--o"), "random switching": ("random switching", style.GREY, "--o")}
    for agent, (label, colour, line) in looks.items():
        points = [metrics["success"][f"{name}-{value:g}"][agent] for value in values]
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        ax.fill_between(values, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(values, mean, line, color=colour, markersize=3, label=label)
    ax.set_xlabel(words, fontsize=9)
