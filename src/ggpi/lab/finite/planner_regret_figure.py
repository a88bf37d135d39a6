"""Tables and figure of `planner-regret`, from its numbers."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics

NAMES = {
    "uniform": "uniform",
    "halving": "halving",
    "branch-and-bound": "branch and bound",
    "kl-olop": "KL-OLOP",
}
LEAST = 0.01
"""Planners are compared at this regret where that of uniform is even smaller."""


def table(metrics: Metrics) -> list[Table]:
    """Draws to reach a regret, for each world, depth and planner; and the certificates."""
    parts = [_compared(metrics, samples) for samples in metrics["compared"]]
    return [part for part in parts if part.rows] + [_certificates(metrics)] * bool(metrics["certificates"])


def _compared(metrics: Metrics, samples: int) -> Table:
    """Draws until the regret that uniform has with so many samples of every plan."""
    shown = Table(
        title=f"Draws for the regret that uniform has with {samples} samples of every plan",
        caption="regret as a share of the range of values; interpolated; ≤: with the smallest budget; –: not reached",
    )
    for column in ("world", "plans", "regret", *NAMES.values(), "uniform / halving"):
        shown.add_column(column, justify="left" if column == "world" else "right", no_wrap=True)
    for world, depth in dict.fromkeys((curve["world"], curve["depth"]) for curve in metrics["curves"]):
        mine = {curve["planner"]: curve["rows"] for curve in select(metrics, world, depth)}
        if (target := target_of(mine["uniform"], samples)) is not None:
            cells = [_cell(mine[name], target) for name in NAMES]
            ratio = _ratio(mine["uniform"], mine["halving"], target)
            shown.add_row(world, f"{4**depth:,}", f"{target:.1%}", *cells, ratio)
    return shown


def target_of(rows: list[Metrics], samples: int) -> float | None:
    """The regret of uniform with so many samples of every plan; None where they were too many."""
    mine = [row["regret"]["mean"] for row in rows if row["samples"] == samples]
    return max(mine[0], LEAST) if mine else None


def _cell(rows: list[Metrics], target: float) -> str:
    draws = draws_until(rows, target)
    if draws is None:
        return "–"
    return f"{'≤ ' if draws == rows[0]['draws'] else ''}{draws:,.0f}"


def _ratio(uniform: list[Metrics], halving: list[Metrics], target: float) -> str:
    """How many times fewer draws halving takes; a bound where it reaches the target with its smallest budget."""
    one, other = draws_until(uniform, target), draws_until(halving, target)
    if one is None or other is None:
        return "–"
    if one == uniform[0]["draws"]:
        return "–" if other == halving[0]["draws"] else f"≤ {one / other:.1f}"
    return f"{'≥ ' if other == halving[0]['draws'] else ''}{one / other:.1f}"


def _certificates(metrics: Metrics) -> Table:
    shown = Table(
        title="Certified stops of branch and bound",
        caption="within ε: share of the plans; stopped: one plan is left, or the gap is at most ε, if only after the "
        "last round; wrong: share of all runs, 95% Clopper–Pearson interval; halving and KL-OLOP have no certificates",
    )
    columns = (
        "world",
        "plans",
        "δ",
        "ε",
        "within ε",
        "runs",
        "stopped",
        "draws at stops",
        "budget",
        "best",
        "wrong",
    )
    for column in columns:
        shown.add_column(column, justify="left" if column == "world" else "right")
    for row in metrics["certificates"]:
        low, high = row["wrong_interval"]
        stops = row["draws_of_stopped"]
        shown.add_row(
            row["world"],
            str(row["plans"]),
            f"{row['delta']:g}",
            f"{row['epsilon']:g}",
            f"{row['good_enough']:.0%}",
            f"{row['runs']:,}",
            f"{row['stopped']:.0%}",
            "–" if stops is None else f"{stops:,.0f}",
            f"{row['budget']:,}",
            f"{row['best']:.0%}",
            f"{row['wrong']:.2%} [{low:.2%}, {high:.2%}]",
        )
    return shown


def select(metrics: Metrics, world: str, depth: int) -> list[Metrics]:
    """The curves of one problem."""
    return [curve for curve in metrics["curves"] if (curve["world"], curve["depth"]) == (world, depth)]


def draws_until(rows: list[Metrics], target: float) -> float | None:
    """The least draws with a regret of at most `target`, interpolated on log scales."""
    before = None
    for row in rows:
        draws, regret = row["draws"], max(row["regret"]["mean"], 1e-6)
        if regret <= target:
            if before is None:
                return draws
            share = np.log(before[1] / target) / max(np.log(before[1] / regret), 1e-9)
            return float(np.exp(np.log(before[0]) + share * np.log(draws / before[0])))
        before = draws, regret
    return None


def plot(metrics: Metrics) -> Figure:
    """Regret against draws: worlds from top to bottom, sizes of the set from left to right."""
    worlds = list(dict.fromkeys(curve["world"] for curve in metrics["curves"]))
    colours = dict(zip(NAMES, (style.GREY, style.BLUE, style.RED, style.INK), strict=True))
    canvas, axes = style.figure(len(worlds), len(metrics["depths"]), size=(3.0, 2.2))
    for row, world in zip(axes, worlds, strict=True):
        for ax, depth in zip(row, metrics["depths"], strict=True):
            for curve in select(metrics, world, depth):
                rows = curve["rows"]
                if not rows:
                    continue
                draws, mean = [one["draws"] for one in rows], [one["regret"]["mean"] for one in rows]
                low, high = ([one["regret"][part] for one in rows] for part in ("low", "high"))
                ax.plot(
                    draws,
                    mean,
                    "o-",
                    markersize=3,
                    color=colours[curve["planner"]],
                    label=NAMES[curve["planner"]],
                )
                ax.fill_between(draws, low, high, color=colours[curve["planner"]], alpha=0.15, linewidth=0)
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_ylim(bottom=0)
            ax.set_title(f"{world}, {4**depth:,} plans", fontsize=9, color=style.INK)
    for ax in axes[-1]:
        ax.set_xlabel("draws", fontsize=9)
    for row in axes:
        row[0].set_ylabel("regret", fontsize=9)
    columns = min(len(NAMES), 2 * len(metrics["depths"]))
    canvas.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False
    )
    return canvas
