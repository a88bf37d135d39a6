"""`ggpi play --compare`: base policies, random switching and agents on true episodes: table, picture and JSON."""

from pathlib import Path

from matplotlib.figure import Figure
from rich.table import Table

from ggpi.diagnosis.comparison import Comparison
from ggpi.lab import style
from ggpi.lab.contract import write_figure
from ggpi.storage.arrays import write_json

COLOURS = {"policy": style.GREY, "switching": style.YELLOW, "agent": style.BLUE}


def write_comparison(found: Comparison, title: str, out: Path) -> Table:
    """Writes `metrics.json` and `figure.png` to a directory, and gives the table."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "metrics.json", {"reward": title, **found.as_json()})
    write_figure(out, picture(found, title))
    return table(found, title)


def table(found: Comparison, title: str) -> Table:
    """One row for each way of acting."""
    episodes = len(found.scores[0].total)
    shown = Table(
        title=title,
        caption=f"Mean over {episodes} episodes with the same resets; in brackets 95% bootstrap intervals.",
        title_justify="left",
    )
    for heading in ("", "sum of rewards", f"return, γ = {found.gamma:g}", "steps", "ended"):
        shown.add_column(heading, justify="left" if not heading else "right")
    kind = found.scores[0].kind
    for score in found.scores:
        if score.kind != kind:
            shown.add_section()
        kind, (low, high) = score.kind, score.interval()
        cells = [f"{score.mean:.4g} [{low:.4g}, {high:.4g}]", f"{score.discounted.mean():.4g}"]
        shown.add_row(score.name, *cells, f"{score.steps.mean():.0f}", f"{score.terminated.mean():.0%}")
    return shown


def picture(found: Comparison, title: str) -> Figure:
    """Means with their intervals, and every episode as a dot."""
    figure, ((ax,),) = style.figure(size=(6, 0.9 + 0.35 * len(found.scores)))
    for row, score in enumerate(found.scores):
        low, high = score.interval()
        ax.barh(row, score.mean, color=COLOURS[score.kind], height=0.7)
        ax.plot([low, high], [row, row], color=style.INK, linewidth=1.5)
        ax.plot(score.total, [row] * len(score.total), "|", color=style.INK, alpha=0.35, markersize=8)
    ax.set_yticks(range(len(found.scores)), [score.name for score in found.scores])
    ax.invert_yaxis()
    ax.set_xlabel("sum of rewards per episode (bar: mean, line: 95% interval, ticks: episodes)", fontsize=8)
    ax.set_title(title, fontsize=9, color=style.INK, loc="left")
    return figure
