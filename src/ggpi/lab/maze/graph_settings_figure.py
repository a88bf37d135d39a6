"""Table and figure of `maze-graph-settings`, from its numbers."""

from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.graph_settings import GROUPS


def table(metrics: Metrics) -> list[Table]:
    """Success of every setting, and what was known before the episodes."""
    shown = Table(
        title=f"{metrics['maze']}: targets reached, one setting at a time",
        caption=f"{metrics['episodes']} episodes each, 90% exact binomial intervals; steps: of those that reached "
        "their target; in walls and left out: of the jumps of the graph; ms: of a decision",
    )
    shown.add_column("setting")
    for column in ("", "reached, %", "steps", "in walls, %", "left out, %", "ms"):
        shown.add_column(column, justify="right")
    for row in metrics["rows"]:
        success = row["success"]
        shares = (f"{100 * row[name]:.1f}" if name in row else "" for name in ("in_walls", "left_out"))
        shown.add_row(
            GROUPS[row["group"]],
            row["setting"],
            f"{100 * success['mean']:.0f} [{100 * success['low']:.0f}, {100 * success['high']:.0f}]",
            f"{row['steps']:.0f}" if row["steps"] else "",
            *shares,
            f"{1e3 * row['seconds_per_plan']:.1f}",
        )
    return [shown]


def plot(metrics: Metrics) -> Figure:
    """Success against each setting."""
    groups = dict.fromkeys(row["group"] for row in metrics["rows"])
    canvas, axes = style.figure(1, len(groups), size=(2.5, 2.8), sharey=True)
    for ax, group in zip(axes[0], groups, strict=True):
        rows = [row for row in metrics["rows"] if row["group"] == group]
        names = [
            f"{row['setting']}\n({100 * row['in_walls']:.0f}%)" if group == "training" else row["setting"]
            for row in rows
        ]
        mean, low, high = ([100 * row["success"][part] for row in rows] for part in ("mean", "low", "high"))
        places = range(len(rows))
        ax.vlines(places, low, high, color=style.BLUE, linewidth=1.2)
        ax.plot(places, mean, "-o", color=style.BLUE, markersize=4, linewidth=1)
        ax.set_xticks(places, names, fontsize=7)
        ax.set_xlabel(GROUPS[group] + (" (in walls)" if group == "training" else ""), fontsize=9)
        ax.set_xlim(-0.4, len(rows) - 0.6)
    axes[0, 0].set_ylabel("targets reached, %", fontsize=9)
    axes[0, 0].set_ylim(-3, 104)
    return canvas
