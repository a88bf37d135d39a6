"""Tables and figure of `four-rooms-transfer`, from its numbers."""

from fractions import Fraction

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics


def table(metrics: Metrics) -> list[Table]:
    """Depth against solved states, one table for each world."""
    return [_world_table(world, metrics["num_states"]) for world in metrics["worlds"]]


def _world_table(world: Metrics, num_states: int) -> Table:
    caption = "promised: mean of max_ν,a Q^ν(x, a)/V*(x), which V/V* cannot fall below"
    title = f"Four rooms, {_moves(world['slip'])}"
    shown = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    shown.add_column("depth", justify="right")
    shown.add_column("GSPs", justify="right")
    shown.add_column(f"optimal, of {num_states} states", no_wrap=True)
    shown.add_column("promised", justify="right")
    shown.add_column("mean V/V*", justify="right")
    shown.add_column("ms", justify="right")
    for row in (*world["depths"], world["closed_loop"]):
        bar = "█" * round(24 * row["optimal"] / num_states)
        name = {1: "1 (GPI)", "inf": "∞ (closed loop)"}.get(row["depth"], str(row["depth"]))
        states = f"{row['optimal']:>3} [cyan]{bar}[/cyan]"
        shares = f"{row['promised_share']:.3f}", f"{row['value_share']:.3f}"
        shown.add_row(
            name,
            "–" if row["depth"] == "inf" else str(row["gsps"]),
            states,
            *shares,
            f"{1e3 * row['seconds']:.0f}",
        )
    return shown


def plot(metrics: Metrics) -> Figure:
    """Maps side by side: depths from left to right, one row for each world."""
    worlds = metrics["worlds"]
    columns = len(worlds[0]["depths"]) + 1
    canvas, axes = style.figure(len(worlds), columns, size=(2.3, 2.5))
    for world, row in zip(worlds, axes, strict=True):
        for result, ax in zip((*world["depths"], world["closed_loop"]), row, strict=True):
            colours = {tuple(state): style.MARKED for state in result["states"]}
            colours[tuple(metrics["goal"])] = style.GOAL
            names = {1: "GPI (depth 1)", "inf": "closed loop"}
            name = names.get(result["depth"], f"GGPI, depth {result['depth']}")
            title = f"{name}\n{result['optimal']} of {metrics['num_states']} states optimal"
            style.grid_map(ax, metrics["cells"], colours, title)
        row[0].set_ylabel(_moves(world["slip"]), fontsize=9, color=style.INK)
    handles = [
        Patch(facecolor=style.MARKED, edgecolor=style.GREY, label="every greedy action is optimal"),
        Patch(facecolor=style.FLOOR, edgecolor=style.GREY, label="some greedy action is not"),
        Patch(facecolor=style.GOAL, edgecolor=style.GREY, label="goal, the only reward"),
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return canvas


def _moves(slip: float) -> str:
    chance = Fraction(slip).limit_denominator(99)
    return f"moves slip with probability {chance}" if slip else "deterministic moves"
