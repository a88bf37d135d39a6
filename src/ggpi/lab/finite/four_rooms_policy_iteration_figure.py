"""Tables and figure of `four-rooms-policy-iteration`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.finite.four_rooms_policy_iteration import CLOSED, COUNTS, STARTS, VARIANTS


def table(metrics: Metrics) -> list[Table]:
    """Means over seeds, with 95% intervals; the fewest samples of each set are bold."""
    return [_table_of_start(metrics, start) for start in STARTS]


def _table_of_start(metrics: Metrics, start: str) -> Table:
    shown = Table(
        title=f"Until exactly optimal, {STARTS[start]}",
        caption=f"mean over {metrics['num_seeds']} seeds (95% bootstrap); bold: fewest; ≥: some censored",
    )
    for column in ("set", "depth", "iterations", "10⁶ samples", "drawn", "censored"):
        shown.add_column(column, justify="left" if column == "set" else "right", no_wrap=True)
    names = VARIANTS | {CLOSED: "closed loop"}
    for variant in names:
        rows = select(metrics, start, variant)
        fewest = min(rows, key=lambda row: row["ghm_samples"]["mean"])
        for row in rows:
            least = "≥ " if row["censored"] else ""
            shown.add_row(
                names[variant] if row is rows[0] else "",
                str(row["depth"]).replace("inf", "∞"),
                least + _interval(row["iterations"]),
                least + _interval(row["ghm_samples"], unit=1e6),
                least + _short(row["ghm_draws"]["mean"] / 1e6),
                str(row["censored"]),
                style="bold" if row is fewest else "",
            )
        shown.add_section()
    return shown


def select(metrics: Metrics, start: str, variant: str) -> list[Metrics]:
    """The summary's rows of one kind of run, by depth."""
    return [row for row in metrics["summary"] if (row["start"], row["variant"]) == (start, variant)]


def _interval(count: dict[str, float], unit: float = 1.0) -> str:
    low, mean, high = (_short(count[part] / unit) for part in ("low", "mean", "high"))
    return f"{mean} ({low}–{high})"


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 100 else f"{number:.0f}"


def plot(metrics: Metrics) -> Figure:
    """Iterations on the left, model samples on the right; one row for each kind of first policy."""
    canvas, axes = style.figure(len(STARTS), 2, size=(4.2, 3.0), sharex=True)
    for (start, words), row in zip(STARTS.items(), axes, strict=True):
        for ax, count in zip(row, ("iterations", "ghm_samples"), strict=True):
            draw_counts(ax, metrics, start, count)
            ax.set_title(f"{COUNTS[count]}, {words}", fontsize=9, color=style.INK)
    for ax in axes[-1]:
        ax.set_xlabel("depth m", fontsize=9)
    axes[0, 0].legend(fontsize=8, frameon=False)
    axes[0, 1].legend(fontsize=8, frameon=False)
    return canvas


def draw_counts(ax: Axes, metrics: Metrics, start: str, count: str) -> None:
    """Means with their intervals against depth; hollow if runs were censored, fewest samples ringed."""
    colours = {"newest-last": style.BLUE, "full": style.RED}
    for shift, (variant, colour) in zip((-0.06, 0.06), colours.items(), strict=True):
        rows = select(metrics, start, variant)
        depth = np.array([row["depth"] for row in rows]) + shift
        mean, low, high = (np.array([row[count][part] for row in rows]) for part in ("mean", "low", "high"))
        ax.errorbar(depth, mean, [mean - low, high - mean], color=colour, capsize=3, linewidth=1.2)
        ax.plot(depth, mean, "o", color=colour, markersize=5, label=VARIANTS[variant])
        for x, y in [(x, y) for x, y, row in zip(depth, mean, rows, strict=True) if row["censored"]]:
            ax.plot(x, y, "o", color="white", markeredgecolor=colour, markersize=5, zorder=5)
            ax.annotate("≥", (x, y), xytext=(-12, -2), textcoords="offset points", fontsize=9, color=colour)
        if count == "ghm_samples":
            drawn = [row["ghm_draws"]["mean"] for row in rows]
            ax.plot(depth, drawn, ":", color=colour, linewidth=1, label="… prefixes shared")
            fewest = mean.argmin()
            ax.plot(depth[fewest], mean[fewest], "o", color="none", markeredgecolor=style.INK, markersize=11)
    for row in select(metrics, start, CLOSED):
        ax.axhline(row[count]["mean"], color=style.GREY, linestyle="--", linewidth=1, label="closed loop")
    ax.set_yscale("log")
    ax.set_xticks(metrics["depths"])
