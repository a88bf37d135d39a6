"""Table and figure of `ogbench-errands`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.value_maps import draw_maze, draw_values
from ggpi.lab.ogbench.episodes import share_words, steps_words


def table(metrics: Metrics) -> Table:
    """Tours of three rooms, patrols of two, and tasks with a corridor to avoid."""
    shown = Table(
        title=f"{metrics['maze']}: rewards that are not goals",
        caption=f"one seed of models; {metrics['episodes']} tours of three rooms, within {metrics['max_steps']:,} "
        f"steps; {metrics['patrols']['in turn']['episodes']} patrols of {metrics['max_steps']:,} steps, in which two "
        f"rooms count in turn; {metrics['corridors']['0']['episodes']} episodes with a corridor; exact 95% intervals "
        "of success, bootstrap intervals of visits and of the steps of those that succeeded",
    )
    for column in ("reward", "agent", "succeeded, %", "steps", "steps in the corridor", "visits"):
        shown.add_column(column, justify="left" if column in ("reward", "agent") else "right")
    for name, row in metrics["tours"].items():
        shown.add_row("three rooms", name, *_numbers(row), "-", "-")
    for name, row in metrics["patrols"].items():
        visits = f"{row['mean']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"
        shown.add_row("a patrol", name, "-", "-", "-", visits)
    for penalty, row in metrics["corridors"].items():
        inside = f"{row['inside']['mean']:.1f}"
        shown.add_row("a corridor", f"penalty {penalty}", *_numbers(row), inside, "-")
    return shown


def _numbers(row: Metrics) -> tuple[str, str]:
    """Success and steps."""
    return share_words(row, 0), steps_words(row["steps"])


def plot(metrics: Metrics) -> Figure:
    """A tour, a patrol, and a task with and without the penalty."""
    canvas, axes = style.figure(1, 3, size=(5.6, 4.4))
    for ax in axes[0]:
        draw_maze(ax, np.array(metrics["free"]), np.array(metrics["low"]), np.array(metrics["high"]))
    shown, radius = metrics["picture"], metrics["picture"]["corridor"]["radius"]
    tour, patrol = shown["tour"], shown["patrol"]
    _draw_rooms(axes[0, 0], tour, radius)
    ended = f"all visited in {tour['steps']} steps" if tour["steps"] else "not all visited"
    axes[0, 0].set_title(f"three rooms in any order: {ended}", fontsize=9, color=style.INK)
    _draw_rooms(axes[0, 1], patrol, radius)
    words = f"two rooms in turn: {patrol['visits']} visits in {len(patrol['path']) - 1:,} steps"
    axes[0, 1].set_title(words, fontsize=9, color=style.INK)
    _draw_corridor(axes[0, 2], shown["corridor"])
    return canvas


def _draw_rooms(ax: Axes, errand: Metrics, radius: float) -> None:
    """Rooms, and a path whose colour is its time."""
    path = np.array(errand["path"])
    ax.scatter(*path.T, c=np.arange(len(path)), s=4, cmap="viridis", linewidths=0)
    ax.plot(*path[0], "o", color=style.INK, markersize=5)
    for place in errand["rooms"]:
        ax.add_patch(Circle(place, radius, fill=False, edgecolor=style.RED, linewidth=1.8))


def _draw_corridor(ax: Axes, corridor: Metrics) -> None:
    half = corridor["half"]
    for place in np.array(corridor["squares"]):
        ax.add_patch(Rectangle(place - half, 2 * half, 2 * half, color=style.RED, alpha=0.3, linewidth=0))
    draw_values(ax, corridor)
    ax.plot(*np.array(corridor["other"]).T, "--", color=style.PURPLE, linewidth=1.5)
    ax.set_title("a corridor to avoid (red): path with the penalty, and without (dashed)", fontsize=9)
