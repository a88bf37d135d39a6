"""Tables and figure of `beta-zero`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.table import Table

from ggpi.envs.gridworlds import MOVES
from ggpi.lab import style
from ggpi.lab.cells import Metrics


def table(metrics: Metrics) -> Table:
    """Steps that a chain covers, measured and expected."""
    title = f"Steps covered by n draws, γ = {metrics['gamma']:g}"
    caption = "expected: (n−1)/(1−β) + 1/(1−γ); X′: row, column of the chain's end"
    shown = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for heading in ("β", "n", "policies", "mean steps", "expected", "mean X′", "exact"):
        shown.add_column(heading, justify="left" if heading == "policies" else "right")
    for panel in metrics["panels"]:
        shown.add_row(
            f"{panel['beta']:g}",
            str(panel["n"]),
            panel["gsp"],
            f"{panel['mean_steps']:.1f} ± {panel['steps_stderr']:.1f}",
            f"{panel['expected_steps']:g}",
            *("{:.1f}, {:.1f}".format(*panel[name]) for name in ("mean_end", "exact_mean_end")),
        )
    return shown


def plot(metrics: Metrics) -> Figure:
    """β = 0 above, β > 0 below, n from left to right."""
    rows = list(dict.fromkeys(panel["alpha"] for panel in metrics["panels"]))
    columns = len(metrics["panels"]) // len(rows)
    canvas, axes = style.figure(len(rows), columns, size=(4.4, 2.9))
    for letter, ax, panel in zip("abcdefghij", axes.flat, metrics["panels"], strict=False):
        title = (
            f"({letter}) β = {panel['beta']:g}, n = {panel['n']}: {panel['gsp']}\n"
            f"{panel['mean_steps']:.1f} steps on average, expected {panel['expected_steps']:g}"
        )
        style.grid_map(ax, metrics["cells"], {}, title)
        for i, chain in enumerate(panel["chains"]):
            draw_chain(ax, chain, 0.16 * (i - (len(panel["chains"]) - 1) / 2), style.PALETTE[i % 6])
    canvas.legend(handles=legend_handles(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return canvas


def draw_chain(ax: Axes, chain: Metrics, shift: float, colour: str) -> None:
    """One chain: black what the models show, white what they pass over, dotted the actions not taken."""
    places = np.array(chain["path"], float)[:, ::-1] + [shift, -shift]
    ax.plot(*places.T, "o-", color=colour, linewidth=1.3, markersize=3.6, mfc="white", mew=0.8, zorder=3)
    for place, action in zip(places[chain["observed"]], chain["actions"], strict=False):
        for other in (MOVES[a] for a in range(len(MOVES)) if a != action):
            stub = np.stack([place, place + 0.9 * other[::-1]])
            ax.plot(*stub.T, ":", color=style.INK, linewidth=1, zorder=2)
    ax.plot(*places[chain["observed"]].T, "o", markersize=5.5, color="black", zorder=5)
    ax.plot(*places[-1], "D", markersize=6.5, color="black", zorder=5)


def legend_handles() -> list[Line2D]:
    """What the marks mean."""
    bare: Metrics = {"linestyle": "", "color": "black"}
    return [
        Line2D([], [], marker="o", label="x₀ and X⁽ᵐ⁾: observed", **bare),
        Line2D([], [], marker="D", label="X′: the chain's end", **bare),
        Line2D([], [], marker="o", mfc="white", markersize=4, color=style.BLUE, label="passed, not sampled"),
        Line2D([], [], linestyle=":", color=style.INK, label="actions not taken"),
    ]
