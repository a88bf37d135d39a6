"""Tables and figure of `vae-ablations`, from its numbers."""

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.models.ablations import SETTINGS
from ggpi.lab.models.losses import finite

SCORES = {"negative_elbo": "−ELBO", "energy": "energy distance", "kl": "KL of the latent"}


def describe(name: str) -> str:
    """What a setting changes of the default."""
    return SETTINGS[name][0]


def table(metrics: Metrics) -> list[Table]:
    """All scores, one table for each world."""
    return [_table_of_world(metrics, world) for world in metrics["worlds"]]


def _table_of_world(metrics: Metrics, world: str) -> Table:
    shown = Table(
        title=f"VAEs in {world}, β = {metrics['beta']:g}, after {metrics['steps']:,} steps",
        caption="default: rate 1e-3, KL weight 1, 20-step; paper: 3e-4, 20, one-step\n"
        f"mean over {metrics['num_seeds']} seeds ± half a 95% bootstrap interval; bold: least",
    )
    for column in ("setting", "−ELBO", "energy", "KL"):
        shown.add_column(
            column, justify="left" if column == "setting" else "right", no_wrap=column != "setting"
        )
    rows = select(metrics, world)
    best = {score: min(rows, key=lambda row: row[score]["mean"]) for score in ("negative_elbo", "energy")}
    for row in rows:
        cells = []
        for score, digits in (("negative_elbo", 2), ("energy", 3), ("kl", 2)):
            half = (row[score]["high"] - row[score]["low"]) / 2
            text = f"{row[score]['mean']:.{digits}f} ± {half:.{digits}f}"
            cells.append(f"[bold]{text}[/bold]" if best.get(score) is row else text)
        shown.add_row(describe(row["setting"]), *cells)
    return shown


def select(metrics: Metrics, world: str) -> list[Metrics]:
    """The runs of one world."""
    return [run for run in metrics["runs"] if run["world"] == world]


def plot(metrics: Metrics) -> Figure:
    """One row of three panels for each world: every score of every setting."""
    count = max(len(select(metrics, world)) for world in metrics["worlds"])
    canvas, axes = style.figure(len(metrics["worlds"]), 3, size=(3.8, 0.9 + 0.28 * count), sharey="row")
    for world, row in zip(metrics["worlds"], axes, strict=True):
        runs = select(metrics, world)
        for ax, (score, words) in zip(row, SCORES.items(), strict=True):
            for place, run in enumerate(runs):
                seeds = finite(run[score]["seeds"])
                colour = style.RED if run["setting"] in ("default", "paper") else style.BLUE
                ax.plot(seeds, np.full(len(seeds), place), "o", color=colour, alpha=0.4, markersize=4)
                ax.plot(run[score]["mean"], place, "|", color=colour, markersize=12, markeredgewidth=2)
            ax.set_title(words, fontsize=9, color=style.INK)
            ax.grid(axis="x", color=style.GREY, linewidth=0.3)
        row[1].set_xscale("log")
        style.plain_log(row[1].xaxis)
        row[0].set_yticks(range(len(runs)), [describe(run["setting"]) for run in runs], fontsize=7)
        row[0].invert_yaxis()
        row[0].set_ylabel(world, fontsize=9)
    return canvas
