"""Tables and figure of `discrete-control`, from its numbers."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.discrete.control import MODES

COLOURS = {"head": style.BLUE, "all": style.RED, "step": style.GREEN}


def table(metrics: Metrics) -> list[Table]:
    """One table for each world and reward; columns are the kinds of data."""
    shown = []
    for name in dict.fromkeys(panel["world"] for panel in metrics["panels"]):
        panels = [panel for panel in metrics["panels"] if panel["world"] == name]
        for task in panels[0]["tasks"]:
            one = Table(
                title=f"{name}: {task}",
                title_justify="left",
                caption=f"sum of rewards in {metrics['max_steps']} steps, mean of {metrics['episodes']} episodes "
                "[95% interval], and steps",
            )
            one.add_column("")
            for panel in panels:
                one.add_column(f"{panel['explore']:.0%} random turns", justify="right")
            for rows in zip(*(panel["tasks"][task] for panel in panels), strict=True):
                one.add_row(rows[0]["name"], *map(_said, rows))
            shown.append(one)
    return shown


def _said(row: Metrics) -> str:
    low, high = row["interval"]
    steps = sum(row["steps"]) / len(row["steps"])
    return f"{row['mean']:.1f} [{low:.1f}, {high:.1f}] {steps:4.0f}"


def plot(metrics: Metrics) -> Figure:
    """A picture for each world and reward: agents by depth, the best base policy and random switching as lines."""
    panels = metrics["panels"]
    tasks = list(dict.fromkeys((panel["world"], task) for panel in panels for task in panel["tasks"]))
    explores = list(dict.fromkeys(panel["explore"] for panel in panels))
    figure, axes = style.figure(len(explores), len(tasks), size=(2.5, 2.2), sharey="col")
    for row, explore in enumerate(explores):
        for column, (world, task) in enumerate(tasks):
            found = next(p for p in panels if p["world"] == world and p["explore"] == explore)
            _draw(axes[row, column], found["tasks"][task])
            if not row:
                axes[row, column].set_title(f"{world}\n{task}", fontsize=8, color=style.INK)
        axes[row, 0].set_ylabel(f"{explore:.0%} random turns", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("depth", fontsize=8)
    shown = axes[0, 0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower center", ncols=len(shown[1]), fontsize=8, frameon=False)
    return figure


def _draw(ax: Axes, scores: Sequence[Metrics]) -> None:
    best = max(score["mean"] for score in scores if score["kind"] == "policy")
    switching = next(score["mean"] for score in scores if score["kind"] == "switching")
    ax.axhline(best, color=style.INK, linestyle="--", linewidth=1, label="best base policy")
    ax.axhline(switching, color=style.GREY, linewidth=1, label="random switching")
    for place, mode in enumerate(MODES):
        own = [score for score in scores if score["name"].startswith(f"{mode}, depth")]
        depths = [int(score["name"].rsplit(" ", 1)[1]) + 0.12 * (place - 1) for score in own]
        means = [score["mean"] for score in own]
        lows, highs = zip(*(score["interval"] for score in own), strict=True)
        ax.vlines(depths, lows, highs, color=COLOURS[mode], linewidth=1.2)
        ax.plot(
            depths, means, "o-", color=COLOURS[mode], markersize=3.5, linewidth=1, label=mode, clip_on=False
        )
    ax.set_xticks(
        sorted({int(score["name"].rsplit(" ", 1)[1]) for score in scores if ", depth" in score["name"]})
    )
    ax.set_ylim(bottom=0)
