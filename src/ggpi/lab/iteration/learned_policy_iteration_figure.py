"""Tables and figure of `learned-policy-iteration`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.iteration.learned_policy_iteration import METHODS
from ggpi.lab.iteration.policies import STARTS

COLOURS = {"newest": style.GREEN, "gpi": style.BLUE, "depth-2": style.RED, "depth-inf": style.INK}


def table(metrics: Metrics) -> list[Table]:
    """Iterations until the stated return, and the returns on the way, for each first policy."""
    return [_table_of_start(metrics, start) for start in metrics["learned"]]


def _table_of_start(metrics: Metrics, start: str) -> Table:
    shown = Table(
        title=f"Returns in % of the optimum, {STARTS[start]}",
        caption=f"means over {metrics['num_seeds']} seeds (90% bootstrap); until: iterations to "
        f"{100 * metrics['stated']:.0f}%, ≥ when some runs never got there",
    )
    count = metrics["iterations"][start] + 1
    for column in ("", "until", *(f"π{k}" for k in range(count))):
        shown.add_column(column, justify="right" if column else "left", no_wrap=True)
    rows = {METHODS[m]: metrics["learned"][start][m] for m in metrics["methods"]}
    rows |= {f"exact, depth {_shown(depth)}": row for depth, row in metrics["oracle"][start].items()}
    for name, row in rows.items():
        mean, low, high = (row["until"][part] for part in ("mean", "low", "high"))
        least = "≥ " if row["censored"] else ""
        until = f"{least}{mean:.1f} ({low:.1f}–{high:.1f})"
        shown.add_row(name, until, *(f"{100 * point['mean']:.0f}" for point in row["returns"]))
    return shown


def plot(metrics: Metrics) -> Figure:
    """Return against iteration: one panel for each first policy, exact models dotted."""
    canvas, axes = style.figure(1, len(metrics["learned"]), size=(4.4, 3.2), sharey=True)
    for ax, start in zip(axes[0], metrics["learned"], strict=True):
        _draw(ax, metrics, start)
        ax.set_title(STARTS[start], fontsize=9, color=style.INK)
        ax.set_xlabel("iteration", fontsize=9)
    axes[0, 0].set_ylabel("return, % of the optimum", fontsize=9)
    named = axes[0, 0].get_legend_handles_labels()
    canvas.legend(*named, loc="outside right upper", fontsize=7, frameon=False)
    return canvas


def _draw(ax: Axes, metrics: Metrics, start: str) -> None:
    ax.axhline(100 * metrics["stated"], color=style.GREY, linewidth=0.8, linestyle="--")
    for method in metrics["methods"]:
        points = metrics["learned"][start][method]["returns"]
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        ax.fill_between(range(len(mean)), low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
        ax.plot(mean, "-o", color=COLOURS[method], markersize=3, label=METHODS[method])
    for depth, method in (("1", "newest"), ("2", "depth-2"), ("inf", "depth-inf")):
        exact = [100 * point["mean"] for point in metrics["oracle"][start][depth]["returns"]]
        ax.plot(
            exact, ":", color=COLOURS[method], linewidth=1.5, label=f"exact models, depth {_shown(depth)}"
        )
    ax.set_xticks(range(metrics["iterations"][start] + 1))
    ax.set_ylim(0, 105)


def _shown(depth: str) -> str:
    return "∞" if depth == "inf" else depth
