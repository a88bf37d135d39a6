"""Tables and figure of `ghm-losses`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.models.losses import METHODS, finite

SCORES = {"vae": "negative_elbo", "flow": "nll"}


COLOURS = {"cemc": style.INK, "cetd": style.RED, "n-step": style.BLUE, "ll2td": style.GREEN}


def table(metrics: Metrics) -> list[Table]:
    """The scores at the end, one table for each world."""
    return [_table_of_world(metrics, world) for world in metrics["worlds"]]


def _table_of_world(metrics: Metrics, world: str) -> Table:
    shown = Table(
        title=f"{world}, β = {metrics['beta']:g}, after {metrics['steps']:,} steps; lower is better",
        caption=f"mean over {metrics['num_seeds']} seeds ± half a 95% bootstrap interval; VAE: NLL is a bound",
    )
    for column in ("model", "loss", "−ELBO", "NLL", "energy"):
        shown.add_column(column, justify="left" if column in ("model", "loss") else "right", no_wrap=True)
    for model, losses in METHODS.items():
        for loss, words in losses.items():
            run = select(metrics, world, model, loss)
            cells = [_interval(run["final"].get(name), 2) for name in ("negative_elbo", "nll")]
            words += "" if run["stopped"] is None else " (stopped)"
            shown.add_row(
                model.upper() if model == "vae" else model,
                words,
                *cells,
                _interval(run["final"]["energy"], 3),
            )
        shown.add_section()
    return shown


def select(metrics: Metrics, world: str, model: str, loss: str) -> Metrics:
    """The run of one kind."""
    return next(
        run for run in metrics["runs"] if (run["world"], run["model"], run["loss"]) == (world, model, loss)
    )


def _interval(found: dict[str, float] | None, digits: int) -> str:
    if found is None:
        return ""
    return f"{found['mean']:.{digits}f} ± {(found['high'] - found['low']) / 2:.{digits}f}"


def plot(metrics: Metrics) -> Figure:
    """Scores against training steps: VAEs, flows, and the energy distance of both; one row for each world."""
    canvas, axes = style.figure(len(metrics["worlds"]), 3, size=(3.8, 2.9))
    for world, row in zip(metrics["worlds"], axes, strict=True):
        for ax, (model, losses) in zip(row, METHODS.items(), strict=False):
            for loss, words in losses.items():
                draw_curve(ax, select(metrics, world, model, loss), SCORES[model], COLOURS[loss], "-", words)
            _focus(ax, [select(metrics, world, model, loss)[SCORES[model]] for loss in losses])
            title = "VAE, −ELBO of true futures" if model == "vae" else "flow, NLL of true futures"
            ax.set_title(f"{world}: {title}", fontsize=9, color=style.INK)
        for model, losses in METHODS.items():
            for loss, words in losses.items():
                line = "-" if model == "vae" else "--"
                draw_curve(row[2], select(metrics, world, model, loss), "energy", COLOURS[loss], line, words)
        row[2].set_yscale("log")
        style.plain_log(row[2].yaxis)
        row[2].set_title("energy distance to them: VAE —, flow - -", fontsize=9, color=style.INK)
    for ax in axes[-1]:
        ax.set_xlabel("training step", fontsize=9)
    for ax in axes[0, :2]:
        ax.legend(fontsize=7, frameon=False)
    return canvas


def draw_curve(ax: Axes, run: Metrics, score: str, colour: str, line: str, words: str) -> None:
    """The mean over seeds and the range of them."""
    values = finite(run[score])
    ax.fill_between(
        run["step"], values.min(axis=1), values.max(axis=1), color=colour, alpha=0.15, linewidth=0
    )
    ax.plot(run["step"], values.mean(axis=1), line, color=colour, linewidth=1.3, label=words)


def _focus(ax: Axes, curves: list[list[list[float]]]) -> None:
    """Leaves out the start, where scores are far above the rest."""
    later = np.concatenate([finite(curve)[1:].ravel() for curve in curves])
    low, high = later.min(), np.quantile(later, 0.97)
    ax.set_ylim(low - 0.1 * (high - low), high + 0.3 * (high - low))
