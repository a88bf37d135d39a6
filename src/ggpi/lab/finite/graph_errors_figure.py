"""Table and figure of `jumpy-graph-errors`, from its numbers."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.finite.graph_errors import GROUPS

SHOWN = {
    "error": ("error of V", style.BLUE),
    "bias": ("its mean", style.CYAN),
    "loss": ("loss of acting", style.RED),
}


def table(metrics: Metrics) -> Table:
    """Errors of every setting."""
    shown = Table(
        title=f"Errors of graphs in {metrics['cells']} cells, %",
        caption=f"means over {metrics['num_seeds']} seeds of landmarks and jumps (95% bootstrap); error: root mean "
        "square, in % of the largest V; loss: of the largest value, which the exact closed loop's agent misses by "
        f"{metrics['exact_loss']:.2f}",
    )
    shown.add_column("setting")
    for column in ("", *(words for words, _ in SHOWN.values())):
        shown.add_column(column, justify="right")
    for row in metrics["rows"]:
        shown.add_row(GROUPS[row["group"]], str(row["value"]), *(_interval(row[name]) for name in SHOWN))
    return shown


def _interval(part: dict[str, float]) -> str:
    return f"{part['mean']:.2f} [{part['low']:.2f}, {part['high']:.2f}]"


def plot(metrics: Metrics) -> Figure:
    """Errors against each setting."""
    groups = dict.fromkeys(row["group"] for row in metrics["rows"])
    canvas, axes = style.figure(1, len(groups), size=(3.2, 2.8), sharey=True)
    for ax, group in zip(axes[0], groups, strict=True):
        _draw(ax, [row for row in metrics["rows"] if row["group"] == group])
        ax.set_xlabel(GROUPS[group], fontsize=9)
    axes[0, 0].set_ylabel("%", fontsize=9)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return canvas


def _draw(ax: Axes, rows: list[Metrics]) -> None:
    values = [row["value"] for row in rows]
    for name, (words, colour) in SHOWN.items():
        mean, low, high = ([row[name][part] for row in rows] for part in ("mean", "low", "high"))
        ax.fill_between(values, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(values, mean, "-o", color=colour, markersize=3.5, linewidth=1.2, label=words)
    ax.axhline(0, color=style.GREY, linewidth=0.8, zorder=0)
    ax.set_xscale("log", base=2)
    ax.set_xticks(values, list(map(str, values)))
    ax.minorticks_off()
