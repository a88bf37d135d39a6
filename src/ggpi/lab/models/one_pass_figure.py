"""Table and figure of `one-pass`, from its numbers."""

from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics

COLOURS = {"student": style.GREEN, "VAE": style.GREY}


def table(metrics: Metrics) -> list[Table]:
    """For each environment: energy distance and rate of every sampler."""
    return [_table(metrics, world, found) for world, found in metrics["worlds"].items()]


def _table(metrics: Metrics, world: str, found: Metrics) -> Table:
    difference, seconds = found["difference"], found["core_seconds"]
    shown = Table(
        title=(
            f"{world}, γ = {metrics['gamma']:g}: the student has {found['energy_ratio']:.2f} times the energy distance "
            f"of 10 solver steps, at {found['speedup']:.1f} times the rate"
        ),
        caption=(
            f"mean over {metrics['num_seeds']} seeds ± half a 95% bootstrap interval; {metrics['num_starts']} starts × "
            f"{metrics['num_samples']} samples; two sets of true futures are {found['floor']:.4f} apart. Student less "
            f"10 solver steps: {difference['mean']:.4f} [{difference['low']:.4f}, {difference['high']:.4f}], paired. "
            f"Samples per second of one model, {metrics['batch']} at a time, on two cores. "
            f"Training: {metrics['steps']:,} updates of the teacher, {seconds['teacher']:.0f} core seconds; "
            f"{metrics['student_steps']:,} of the student, {seconds['student']:.0f}"
        ),
        title_justify="left",
    )
    for column in ("samples by", "energy distance", "samples/s"):
        shown.add_column(column, justify="left" if column == "samples by" else "right")
    for row in found["rows"]:
        energy = row["energy"]
        half = (energy["high"] - energy["low"]) / 2
        shown.add_row(row["name"], f"{energy['mean']:.4f} ± {half:.4f}", f"{row['rate']:,.0f}")
    return shown


def plot(metrics: Metrics) -> Figure:
    """Energy distance against samples per second."""
    worlds = metrics["worlds"]
    canvas, axes = style.figure(1, len(worlds), size=(4, 3))
    for ax, (world, found) in zip(axes[0], worlds.items(), strict=True):
        solver = [row for row in found["rows"] if row["solver_steps"]]
        ax.plot(
            [row["rate"] for row in solver],
            [row["energy"]["mean"] for row in solver],
            marker=".",
            color=style.BLUE,
            linewidth=1.3,
            label="flow matching, by solver steps",
        )
        for row in solver:
            place = row["rate"], row["energy"]["mean"]
            ax.annotate(str(row["solver_steps"]), place, (-3, 5), textcoords="offset points", fontsize=7)
        for row in found["rows"]:
            if not row["solver_steps"]:
                place = row["rate"], row["energy"]["mean"]
                ax.plot(*place, "o", color=COLOURS[row["name"]], label=row["name"])
        ax.set_xscale("log")
        ax.set_yscale("log")
        style.plain_log(ax.yaxis)
        ax.set_xlabel("samples per second", fontsize=9)
        ax.set_title(f"{world}, γ = {metrics['gamma']:g}", fontsize=9, color=style.INK)
    axes[0, 0].set_ylabel("energy distance", fontsize=9)
    axes[0, 0].legend(fontsize=7, frameon=False)
    return canvas
