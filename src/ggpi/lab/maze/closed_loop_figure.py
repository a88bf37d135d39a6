"""Tables and figure of `maze-closed-loop`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.tasks import RADIUS
from ggpi.lab.maze.value_maps import draw_maze, draw_values


def table(metrics: Metrics) -> list[Table]:
    """Models and graph before any episode; success by turns."""
    return [_graph_table(metrics), _success_table(metrics)]


def _graph_table(metrics: Metrics) -> Table:
    shown = Table(
        title=f"{metrics['maze']}: jumps of the graph, before any episode",
        caption="left out: jumps that end too far from every landmark; distance: median, to the nearest landmark, in "
        "standard deviations of the data; V too large: of landmarks, in the graph against fresh jumps, in % of its "
        "mean ± the standard error, for a target behind most turns",
    )
    for column in ("seed of models", "landmarks", "in walls, %", "left out, %", "distance", "V too large, %"):
        shown.add_column(column, justify="right")
    for seed, row in enumerate(metrics["graphs"], start=metrics["first_model"]):
        shares = (f"{100 * row[name]:.1f}" for name in ("in_walls", "left_out"))
        excess = f"{100 * row['excess']:+.1f} ± {100 * row['excess_stderr']:.1f}"
        shown.add_row(str(seed), f"{row['landmarks']:,}", *shares, f"{row['distance']:.3f}", excess)
    return shown


def _success_table(metrics: Metrics) -> Table:
    shown = Table(
        title=f"{metrics['maze']}: targets reached, %, by the turns of the shortest route",
        caption=f"90% exact binomial intervals; for each number of turns {metrics['num_models']} seeds of models × "
        f"{metrics['episodes']} episodes of the closed loop, {metrics['few_episodes']} of the others; "
        "ms: of a decision, where episodes are planned together, of one of them",
    )
    shown.add_column("agent")
    for column in (*map(str, metrics["turns"]), "ms"):
        shown.add_column(column, justify="right")
    for name, row in metrics["success"].items():
        cells = (_percent(row[str(turns)]) for turns in metrics["turns"])
        shown.add_row(name, *cells, f"{metrics['milliseconds'][name]:.1f}")
    return shown


def _percent(row: dict[str, float]) -> str:
    return f"{100 * row['mean']:.0f} [{100 * row['low']:.0f}, {100 * row['high']:.0f}]"


def plot(metrics: Metrics) -> Figure:
    """Success by turns; V of the landmarks with the best policy at some of them, and the path of an episode."""
    canvas, axes = style.figure(1, 2, size=(5.0, 4.2))
    _draw_success(axes[0, 0], metrics)
    free = np.array(metrics["free"])
    corner = np.array(free.shape[::-1]) / 2
    draw_maze(axes[0, 1], free, -corner, corner)
    draw_values(axes[0, 1], {"radius": RADIUS} | metrics["picture"])
    return canvas


def _draw_success(ax: Axes, metrics: Metrics) -> None:
    """A row for each agent, a column for each number of turns."""
    agents, turns = list(metrics["success"]), metrics["turns"]
    shares = np.array([[100 * metrics["success"][name][str(k)]["mean"] for k in turns] for name in agents])
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=240, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        ax.text(column, row, f"{share:.0f}", ha="center", va="center", fontsize=8, color=style.INK)
    ax.set_xticks(range(len(turns)), list(map(str, turns)))
    ax.set_yticks(range(len(agents)), agents, fontsize=8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("turns of the shortest route")
    ax.set_title("targets reached, %", fontsize=9, color=style.INK)
