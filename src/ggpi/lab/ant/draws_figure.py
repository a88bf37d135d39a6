"""Table and figure of `ant-draws`, from its numbers."""

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.ant.draws import PLANNERS
from ggpi.lab.cells import Metrics


def table(metrics: Metrics) -> Table:
    """Success, steps and time of every planner with every budget."""
    shown = Table(
        title=f"The ant, radius {metrics['radius']:g}",
        caption=f"90% bootstrap intervals; {metrics['num_models']} seeds of models × {metrics['episodes']} episodes; "
        "ms: of a decision, with those of the other episodes computed at the same time",
    )
    for column in ("planner", "draws", "success, %", "mean steps", "ms"):
        shown.add_column(column, justify="left" if column == "planner" else "right")
    order = list(PLANNERS)
    for row in sorted(metrics["rows"], key=lambda row: (order.index(row["planner"]), row["draws"])):
        interval = f"{100 * row['mean']:.0f} [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
        steps = "–" if row["steps"] is None else f"{row['steps']:.0f}"
        shown.add_row(PLANNERS[row["planner"]], f"{row['draws']:,}", interval, steps, f"{row['ms']:.1f}")
    return shown


def plot(metrics: Metrics) -> Figure:
    """Success and mean steps against draws."""
    canvas, axes = style.figure(1, 2, size=(3.6, 3.0))
    shown = [name for name in PLANNERS if any(row["planner"] == name for row in metrics["rows"])]
    for name, colour in zip(shown, (style.GREY, *style.PALETTE), strict=False):
        rows = sorted(
            (row for row in metrics["rows"] if row["planner"] == name), key=lambda row: row["draws"]
        )
        draws = [row["draws"] for row in rows]
        mean, low, high = (100 * np.array([row[part] for row in rows]) for part in ("mean", "low", "high"))
        axes[0, 0].fill_between(draws, low, high, color=colour, alpha=0.12, linewidth=0)
        axes[0, 0].plot(draws, mean, "-o", color=colour, markersize=4, label=PLANNERS[name])
        steps = [np.nan if row["steps"] is None else row["steps"] for row in rows]
        axes[0, 1].plot(draws, steps, "-o", color=colour, markersize=4)
    for ax in axes.flat:
        ax.set_xscale("log")
        style.plain_log(ax.xaxis)
        ax.set_xlabel("draws of a decision")
    axes[0, 0].set_ylabel("targets reached, %")
    axes[0, 1].set_ylabel("mean steps to the target")
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return canvas
