"""Tables and figure of `td-flows`, from its numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics

COLOURS = {
    "vae": style.GREY,
    "flow": style.YELLOW,
    "mc-cfm": style.INK,
    "td-cfm": style.RED,
    "td-cfm-c": style.GREEN,
    "td2-cfm": style.BLUE,
    "td-dd": style.PURPLE,
    "td2-dd": style.CYAN,
}
PICTURED = ("td2-cfm", "td2-dd", "td-cfm-c", "td-cfm", "mc-cfm", "flow", "vae")
"""The first of these that was trained is pictured."""


def table(metrics: Metrics) -> list[Table]:
    """For each environment and horizon: the scores at the end, paired differences, and scores by solver steps."""
    return [
        shown
        for problem in metrics["problems"]
        for shown in (_scores(metrics, problem), _differences(problem), _solver(problem))
        if shown.row_count
    ]


def words(run: Mapping[str, Any], name: str) -> str:
    """A method: TD²-CFM, 50 steps, curved."""
    steps = {0: "", 1: ", 1 step"}.get(run["n_step"], f", {run['n_step']} steps")
    return name + steps + (", curved" if run["path"] == "curved" else "")


def _scores(metrics: Metrics, problem: Metrics) -> Table:
    shown = Table(
        title=f"{problem['world']}, γ = {problem['gamma']:g}, after {metrics['steps']:,} updates; lower is better",
        caption=(
            f"mean over {metrics['num_seeds']} seeds ± half a 95% bootstrap interval; {metrics['num_starts']} starts × "
            f"{metrics['num_samples']} samples, {metrics['num_rewards']} random rewards; VAE: NLL is a bound; walls: "
            "samples inside them; core s: seconds of one core for all seeds, without scoring; true futures: a second "
            "set of them"
        ),
        title_justify="left",
    )
    for column in ("method", "EMD", "NLL/dim", "MSE(V)", "walls, %", "core s"):
        shown.add_column(column, justify="left" if column == "method" else "right")
    for run in problem["runs"]:
        final, stopped = run["final"], "" if run["stopped"] is None else " (stopped)"
        cells = [
            _interval(final.get(name), digits) for name, digits in (("emd", 3), ("nll", 2), ("value_mse", 1))
        ]
        wall = _interval(final.get("impossible"), 1, 100)
        shown.add_row(words(run, run["name"]) + stopped, *cells, wall, f"{run['core_seconds']:.0f}")
    truth = problem["truth"]
    wall = f"{100 * truth['impossible']:.1f}" if "impossible" in truth else ""
    shown.add_row("true futures", f"{truth['emd']:.3f}", "", f"{truth['value_mse']:.1f}", wall, "")
    return shown


def _interval(found: Mapping[str, float] | None, digits: int, unit: float = 1.0) -> str:
    if found is None:
        return ""
    return f"{unit * found['mean']:.{digits}f} ± {unit * (found['high'] - found['low']) / 2:.{digits}f}"


def _differences(problem: Metrics) -> Table:
    shown = Table(
        title=f"{problem['world']}, γ = {problem['gamma']:g}: differences, and how many times lower the first is",
        caption="95% bootstrap intervals, paired, over seeds and starts; below 0 the first method is better",
        title_justify="left",
    )
    for column in ("methods", "EMD", "EMD, times lower", "MSE(V)", "MSE(V), times lower"):
        shown.add_column(column, justify="left" if column == "methods" else "right")
    names = {run["loss"]: run["name"] for run in problem["runs"]}
    for found in problem["compared"]:
        one, two = (words(found[part], names[found[part]["loss"]]) for part in ("row", "other"))
        cells = []
        for name, digits in (("emd", 3), ("value_mse", 1)):
            score = found[name]
            low, high = f"{score['low']:.{digits}f}", f"{score['high']:.{digits}f}"
            times = "" if score["ratio"] is None else f"{score['ratio']:.2f}"
            cells += [f"{score['mean']:.{digits}f} [{low}, {high}]", times]
        shown.add_row(f"{one} − {two}", *cells)
    return shown


def _solver(problem: Metrics) -> Table:
    runs = [run for run in problem["runs"] if run["solver"]]
    steps = list(runs[0]["solver"]) if runs else []
    shown = Table(
        title=f"{problem['world']}, γ = {problem['gamma']:g}: EMD / MSE(V) by solver steps of a sample",
        title_justify="left",
    )
    shown.add_column("method", no_wrap=True)
    for count in steps:
        shown.add_column(str(count), justify="right", no_wrap=True)
    for run in runs:
        cells = [run["solver"][count] for count in steps]
        pairs = (f"{cell['emd']['mean']:.3f} / {cell['value_mse']['mean']:.1f}" for cell in cells)
        shown.add_row(words(run, run["name"]), *pairs)
    return shown


def plot(metrics: Metrics) -> Figure:
    """EMD against updates, one panel per number of steps; EMD against solver steps; samples over true futures."""
    problems = metrics["problems"]
    counts = sorted({run["n_step"] for problem in problems for run in problem["runs"]} - {0}) or [0]
    canvas, axes = style.figure(len(problems), len(counts) + 2, size=(3.4, 2.9))
    for problem, row in zip(problems, axes, strict=True):
        for ax, count in zip(row, counts, strict=False):
            runs = [run for run in problem["runs"] if run["n_step"] in (0, count)]
            _curves(ax, runs, problem["truth"]["emd"])
            steps = "1 step" if count == 1 else f"{count} steps"
            ax.set_title(
                f"{problem['world']}, γ = {problem['gamma']:g}: {steps}", fontsize=9, color=style.INK
            )
        _solver_curves(row[-2], problem)
        _samples(row[-1], problem)
    axes[0, 0].set_ylabel("EMD", fontsize=9)
    axes[0, 0].legend(fontsize=7, frameon=False)
    axes[0, -1].legend(fontsize=7, frameon=False)
    return canvas


def _curves(ax: Axes, runs: list[Metrics], floor: float) -> None:
    for run in runs:
        emd, line = np.array(run["emd"]), "--" if run["path"] == "curved" else "-"
        label = run["name"] + (", curved" if run["path"] == "curved" else "")
        ax.fill_between(
            run["step"], emd.min(axis=1), emd.max(axis=1), color=COLOURS[run["loss"]], alpha=0.15, linewidth=0
        )
        ax.plot(run["step"], emd.mean(axis=1), line, color=COLOURS[run["loss"]], linewidth=1.3, label=label)
    ax.axhline(floor, color=style.GREY, linewidth=0.8, linestyle=":")
    ax.set_yscale("log")
    style.plain_log(ax.yaxis)
    ax.set_xlabel("updates", fontsize=9)


def _solver_curves(ax: Axes, problem: Metrics) -> None:
    lines = set()
    for run in problem["runs"]:
        counts = [int(count) for count in run["solver"]]
        emd = [found["emd"]["mean"] for found in run["solver"].values()]
        line = "--" if run["path"] == "curved" else "-" if run["n_step"] != 1 else "-."
        ax.plot(counts, emd, line, marker=".", color=COLOURS[run["loss"]], linewidth=1.2)
        lines |= {line} if counts else set()
    ax.set_yscale("log")
    style.plain_log(ax.yaxis)
    ax.set_xlabel("solver steps", fontsize=9)
    notes = [note for line, note in (("-.", "1 step -·-"), ("--", "curved - -")) if line in lines]
    title = "EMD by solver steps" + ("; " + ", ".join(notes) if notes else "")
    ax.set_title(title, fontsize=9, color=style.INK)


def _samples(ax: Axes, problem: Metrics) -> None:
    """Samples of one model from one start, over true futures."""
    truth = problem["truth"]
    run = min(problem["runs"], key=lambda run: PICTURED.index(run["loss"]) if run["loss"] in PICTURED else 9)
    same = [each for each in problem["runs"] if (each["loss"], each["path"]) == (run["loss"], "straight")]
    run = (same or [run])[-1]
    ax.scatter(
        *np.array(run["shown"]).T, s=9, color=style.BLUE, alpha=0.5, linewidths=0, label="model", zorder=3
    )
    ax.scatter(
        *np.array(truth["shown"]).T, s=5, color="black", alpha=0.7, linewidths=0, label="truth", zorder=4
    )
    ax.plot(*truth["start"], "*", color=style.RED, markersize=10, markeredgewidth=0, label="start", zorder=5)
    ax.set_xlabel(truth["coordinates"][0], fontsize=9)
    ax.set_ylabel(truth["coordinates"][1], fontsize=9)
    ax.set_title(words(run, run["name"]), fontsize=9, color=style.INK)
