"""Table and figure of `ogbench-growth`, from its numbers."""

from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.ogbench.episodes import share_words, steps_words


def table(metrics: Metrics) -> Table:
    """Success with every size, and the seconds of each phase."""
    shown = Table(
        title=f"{metrics['maze']}: growth of the closed loop, one size at a time",
        caption=f"{metrics['episodes']} episodes each, one seed of models, exact 95% intervals; steps: of those that "
        "reached their goal; in walls: of the jumps of the graph; training, graph, a goal: seconds; ms: of a decision",
    )
    shown.add_column("size")
    for column in ("", "reached, %", "steps", "in walls, %", "training", "graph", "a goal", "ms"):
        shown.add_column(column, justify="right")
    for row in metrics["rows"]:
        found, seconds = row["success"], row["seconds"]
        shown.add_row(
            row["group"],
            f"{row['setting']:,}",
            share_words(found, 0),
            steps_words(found["steps"]),
            f"{100 * row['in_walls']:.1f}",
            "-" if seconds["training"] is None else f"{seconds['training']:.0f}",
            f"{seconds['graph']:.0f}",
            f"{seconds['goal']:.2f}",
            f"{1e3 * row['seconds_per_plan']:.1f}",
        )
    return shown


def plot(metrics: Metrics) -> Figure:
    """Success against each size."""
    groups = dict.fromkeys(row["group"] for row in metrics["rows"])
    canvas, axes = style.figure(1, len(groups), size=(2.5, 2.8), sharey=True)
    for ax, group in zip(axes[0], groups, strict=True):
        rows = [row for row in metrics["rows"] if row["group"] == group]
        sizes = [row["setting"] for row in rows]
        mean, low, high = ([100 * row["success"][part] for row in rows] for part in ("mean", "low", "high"))
        ax.vlines(sizes, low, high, color=style.BLUE, linewidth=1.2)
        ax.plot(sizes, mean, "-o", color=style.BLUE, markersize=4, linewidth=1)
        ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7)
        ax.set_xticks([], minor=True)
        ax.set_xlabel(group, fontsize=9)
    axes[0, 0].set_ylabel("goals reached, %", fontsize=9)
    axes[0, 0].set_ylim(-3, 104)
    return canvas
