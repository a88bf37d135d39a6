"""Tables and figure of `maze-transfer`, from its numbers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics

SEGMENTS = (style.CYAN, style.PURPLE, style.GREEN)
COLOURS = (style.RED, style.YELLOW, style.BLUE, style.GREEN, style.PURPLE)


def table(metrics: Metrics) -> list[Table]:
    """Models against simulation; success by turns, and beside the oracle's; gains of depth; success by target."""
    return [
        _calibration_table(metrics),
        _success_table(metrics),
        oracle_table(metrics),
        _gain_table(metrics),
        _target_table(metrics),
    ]


def _calibration_table(metrics: Metrics) -> Table:
    shown = Table(
        title="Models against simulation, before planning",
        caption="in brackets: simulation against simulation; lengths in cells",
        title_justify="left",
    )
    for column in ("horizon", "energy", "far from the truth, %", "in walls, %", "mean along", "spread along"):
        shown.add_column(column, justify="right")
    for row in metrics["calibration"]:
        shown.add_row(
            f"{row['horizon']:g}",
            f"{row['energy']:.3f} ({row['energy_floor']:.3f})",
            f"{100 * row['far']:.1f} ({100 * row['far_floor']:.1f})",
            f"{100 * row['wall']:.1f} (0)",
            f"{row['mean']:.2f} (1)",
            f"{row['spread']:.2f} (1)",
        )
    return shown


def _success_table(metrics: Metrics) -> Table:
    learned = (
        f"{metrics['num_models']} seeds of models × {metrics['episodes']} episodes, n = {metrics['samples']}"
    )
    true = f"{metrics['oracle_episodes']} episodes, n = {metrics['oracle_samples']}"
    shown = Table(
        title="Targets reached, %, by the turns of the shortest route",
        caption=f"90% exact binomial intervals; for each number of turns {learned}; oracle: {true}",
        title_justify="left",
    )
    shown.add_column("agent")
    for turns in metrics["turns"]:
        shown.add_column(_turns(turns), justify="right")
    rows = {style.depth_name(d): row for d, row in metrics["learned"].items()}
    rows |= {f"oracle, depth {d}": row for d, row in metrics["oracle"].items()}
    rows |= {f"depth {d} on the oracle's episodes": row for d, row in metrics["same_episodes"].items()}
    for name, row in (rows | metrics["baselines"]).items():
        shown.add_row(name, *(_percent(row[str(turns)], 100) for turns in metrics["turns"]))
    return shown


def oracle_table(metrics: Metrics) -> Table:
    """What models reach less what the oracle does."""
    shown = Table(
        title="Targets reached with models less those with the simulator in their place, points",
        caption=f"the same episodes, {metrics['oracle_episodes']} for each number of turns; 95% bootstrap intervals of "
        f"paired episodes, [+0.0, +0.0] where none differs; n = {metrics['samples']} of models, "
        f"{metrics['oracle_samples']} of the simulator",
        title_justify="left",
    )
    for column in ("depth", *map(_turns, metrics["turns"]), "all"):
        shown.add_column(column, justify="right")
    for depth, row in metrics["minus_oracle"].items():
        shown.add_row(depth, *(f"{x['mean']:+.1f} [{x['low']:+.1f}, {x['high']:+.1f}]" for x in row.values()))
    return shown


def _gain_table(metrics: Metrics) -> Table:
    shown = Table(
        title="Points gained by one more policy in a plan",
        caption="90% bootstrap intervals of paired episodes; [0, 0]: no episode differs, or too few to tell",
        title_justify="left",
    )
    shown.add_column("depth")
    for turns in metrics["turns"]:
        shown.add_column(_turns(turns), justify="right")
    for models, gains in metrics["gains"].items():
        for depths, row in gains.items():
            shown.add_row(
                f"{depths}, {models}", *(_percent(row[str(turns)], 1) for turns in metrics["turns"])
            )
    return shown


def _target_table(metrics: Metrics) -> Table:
    named = {name: found["targets"] for name, found in metrics["depth_3_needed"].items()}
    words = "; ".join(f"{name}: {_cells(cells)}" for name, cells in named.items())
    shown = Table(
        title="Targets reached, %, target by target",
        caption=f"depth 3 is at least 20 points above depth 2 with models {words}",
        title_justify="left",
    )
    shown.add_column("models")
    shown.add_column("target (row, column)")
    for depth in metrics["depths"]:
        shown.add_column(f"depth {depth}", justify="right")
    for name, rows in metrics["by_target"].items():
        for row in rows:
            numbers = (f"{100 * row['success'][str(depth)]:.0f}" for depth in metrics["depths"])
            shown.add_row(name, _cells([row["cell"]]), *numbers)
    return shown


def _cells(cells: Sequence[Sequence[int]]) -> str:
    return ", ".join(f"({row}, {column})" for row, column in cells) or "none"


def _turns(turns: int) -> str:
    return "1 turn" if turns == 1 else f"{turns} turns"


def _percent(row: dict[str, float], unit: float) -> str:
    return f"{unit * row['mean']:.0f} [{unit * row['low']:.0f}, {unit * row['high']:.0f}]"


def plot(metrics: Metrics) -> Figure:
    """Success against depth, with learned models and with the simulator; a plan of depth 3; its episode."""
    canvas, axes = style.figure(1, 4, size=(2.9, 3.1))
    _draw_success(axes[0, 0], metrics, "learned", "learned models")
    _draw_success(axes[0, 1], metrics, "oracle", "the simulator instead")
    axes[0, 0].set_ylabel("targets reached, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower left", ncols=len(labels), fontsize=8, frameon=False)
    _draw_plan(axes[0, 2], metrics)
    _draw_path(axes[0, 3], metrics)
    return canvas


def _draw_success(ax: Axes, metrics: Metrics, which: str, title: str) -> None:
    depths = np.array(metrics["depths"])
    for i, turns in enumerate(metrics["turns"]):
        points = [metrics[which][str(depth)][str(turns)] for depth in depths]
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        reach = np.maximum(np.array([mean - low, high - mean]), 0)
        apart = depths + 0.06 * (i - (len(metrics["turns"]) - 1) / 2)
        ax.errorbar(
            apart, mean, reach, fmt="-o", color=COLOURS[i], markersize=4, linewidth=1.3, label=_turns(turns)
        )
    ax.set(xlabel="depth", ylim=(-3, 104), xticks=depths)
    ax.set_title(title, fontsize=9, color=style.INK)


def _draw_maze(ax: Axes, metrics: Metrics, title: str) -> None:
    free = np.array(metrics["free"], bool)
    rows, columns = free.shape
    extent = (-columns / 2, columns / 2, -rows / 2, rows / 2)
    ax.imshow(~free, cmap="Greys", vmin=0, vmax=1.6, extent=extent, interpolation="nearest", zorder=0)
    shown = metrics["picture"]
    ax.add_patch(
        Circle(tuple(shown["target"]), metrics["radius"], color=style.GREEN, alpha=0.35, linewidth=0)
    )
    ax.plot(*shown["path"][0], "o", color=style.INK, markersize=5, zorder=4)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    ax.set_title(title, fontsize=9, color=style.INK)


def _draw_plan(ax: Axes, metrics: Metrics) -> None:
    _draw_maze(ax, metrics, metrics["picture"]["plan"])
    for i, (places, colour) in enumerate(zip(metrics["picture"]["samples"], SEGMENTS, strict=False), 1):
        ax.scatter(*np.array(places).T, s=9, color=colour, linewidth=0, label=f"segment {i}", zorder=3)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, fontsize=7, frameon=False, handletextpad=0
    )


def _draw_path(ax: Axes, metrics: Metrics) -> None:
    shown = metrics["picture"]
    path = np.array(shown["path"])
    ending = (
        f"reached in {shown['steps']} steps" if shown["steps"] else f"not reached in {len(path) - 1} steps"
    )
    _draw_maze(ax, metrics, ending)
    lines = LineCollection(np.stack([path[:-1], path[1:]], axis=1).tolist(), cmap="coolwarm", linewidth=2)
    lines.set_array(np.arange(len(path) - 1))
    ax.add_collection(lines)
