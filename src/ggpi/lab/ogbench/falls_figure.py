"""Table and figure of `ogbench-falls`, from its numbers."""

from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.ogbench.episodes import share_words

WANTED = 1.0
"""At most so many, in %, was the aim."""


def table(metrics: Metrics) -> Table:
    """Ants on their backs at each look, and how many of them got up."""
    shown = Table(
        title=f"{metrics['maze']}: ants on their backs while walkers are switched at random, %",
        caption=f"{metrics['ants']:,} ants in each place, turns of 1 to 40 steps, exact 95% intervals; got up: of the "
        "ants on their backs, those that were not at the next look",
    )
    shown.add_column("where")
    for time in metrics["times"]:
        shown.add_column(f"after {time:,} steps", justify="right")
    shown.add_column("got up", justify="right")
    for place, row in metrics["places"].items():
        up = "-" if row["got_up"] is None else share_words(row["got_up"])
        shown.add_row(place, *map(share_words, row["down"]), up)
    return shown


def plot(metrics: Metrics) -> Figure:
    """The share on their backs against steps."""
    canvas, axes = style.figure(1, 1, size=(4.6, 3.2))
    ax, times = axes[0, 0], metrics["times"]
    for (place, row), colour in zip(metrics["places"].items(), (style.BLUE, style.RED), strict=True):
        mean, low, high = ([100 * one[part] for one in row["down"]] for part in ("mean", "low", "high"))
        ax.vlines(times, low, high, color=colour, linewidth=1.2)
        ax.plot(times, mean, "-o", color=colour, markersize=4, linewidth=1, label=place)
    ax.axhline(WANTED, color=style.GREY, linewidth=1, linestyle="--", label="the aim: at most 1%")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("steps of random switching", fontsize=9)
    ax.set_ylabel("ants on their backs, %", fontsize=9)
    ax.legend(loc="upper left", fontsize=8, frameon=False)
    return canvas
