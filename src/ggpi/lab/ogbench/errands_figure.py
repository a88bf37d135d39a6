"""Table and figure of `ogbench-errands`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.value_maps import draw_maze, draw_values


def table(metrics: Metrics) -> Table:
    """Tours of three rooms, and tasks with a corridor to avoid."""
    shown = Table(
        title=f"{metrics['maze']}: rewards that are not goals",
        caption=f"one seed of models; {metrics['episodes']} tours of three rooms, within {metrics['max_steps']:,} "
        f"steps; {metrics['corridors']['0']['episodes']} episodes with a corridor; exact 95% intervals of success, "
        "steps of those that succeeded",
    )
    for column in ("reward", "agent", "succeeded, %", "steps", "steps in the corridor"):
        shown.add_column(column, justify="left" if column in ("reward", "agent") else "right")
    for name, row in metrics["tours"].items():
        shown.add_row("three rooms", name, *_numbers(row), "-")
    for penalty, row in metrics["corridors"].items():
        shown.add_row("a corridor", f"penalty {penalty}", *_numbers(row), f"{row['inside']['mean']:.1f}")
    return shown


def _numbers(row: Metrics) -> tuple[str, str]:
    """Success and steps."""
    share = f"{100 * row['mean']:.0f} [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"
    return share, "-" if row["steps"] is None else f"{row['steps']:.0f}"


def plot(metrics: Metrics) -> Figure:
    """A tour, and a task with and without the penalty."""
    canvas, axes = style.figure(1, 2, size=(5.6, 4.4))
    for ax in axes[0]:
        draw_maze(ax, np.array(metrics["free"]), np.array(metrics["low"]), np.array(metrics["high"]))
    _draw_tour(axes[0, 0], metrics["picture"]["tour"], metrics["picture"]["corridor"]["radius"])
    _draw_corridor(axes[0, 1], metrics["picture"]["corridor"])
    return canvas


def _draw_tour(ax: Axes, tour: Metrics, radius: float) -> None:
    path = np.array(tour["path"])
    ax.scatter(*path.T, c=np.arange(len(path)), s=4, cmap="viridis", linewidths=0)
    ax.plot(*path[0], "o", color=style.INK, markersize=5)
    for place in tour["rooms"]:
        ax.add_patch(Circle(place, radius, fill=False, edgecolor=style.RED, linewidth=1.8))
    ended = f"all visited in {tour['steps']} steps" if tour["steps"] else "not all visited"
    ax.set_title(f"three rooms in any order: {ended}", fontsize=9, color=style.INK)


def _draw_corridor(ax: Axes, corridor: Metrics) -> None:
    half = corridor["half"]
    for place in np.array(corridor["squares"]):
        ax.add_patch(Rectangle(place - half, 2 * half, 2 * half, color=style.RED, alpha=0.3, linewidth=0))
    draw_values(ax, corridor)
    ax.plot(*np.array(corridor["other"]).T, "--", color=style.PURPLE, linewidth=1.5)
    ax.set_title("a corridor to avoid (red): path with the penalty, and without (dashed)", fontsize=9)
