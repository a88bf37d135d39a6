"""Tables and figure of `ant-training-budget`, from its numbers."""

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import MPC
from ggpi.lab.cells import Metrics


def table(metrics: Metrics) -> Table:
    """One row for each budget."""
    alone = ", ".join(f"{name} {100 * row['mean']:.0f}%" for name, row in metrics["baselines"].items())
    shown = Table(
        title=f"Success after training, {metrics['episodes']} episodes; models of β = {ant.GAMMA:g} over truth",
        caption=f"without models: {alone}",
        title_justify="left",
    )
    words = [f"depth {d}, %" for d in metrics["depths"]]
    for column in ("steps", *words, "MPC, %", "mean along", "spread along", "spread across", "energy"):
        shown.add_column(column, justify="right")
    for steps, run in zip(metrics["steps"], metrics["runs"], strict=True):
        far = run["ratios"][f"{ant.GAMMA:g}"]
        rates = [run["success"][name]["mean"] for name in (*map(str, metrics["depths"]), MPC)]
        shown.add_row(
            f"{steps:,}",
            *(f"{100 * rate:.0f}" for rate in rates),
            *(f"{far[name]:.2f}" for name in ("mean", "along", "across")),
            f"{far['energy']:.3f}",
        )
    return shown


def plot(metrics: Metrics) -> Figure:
    """Success and energy distance against training steps."""
    canvas, axes = style.figure(1, 2, size=(4.0, 3.0))
    agents = {str(depth): f"depth {depth}" for depth in metrics["depths"]} | {MPC: MPC}
    for (name, words), colour in zip(agents.items(), (style.RED, style.BLUE, style.YELLOW), strict=False):
        points = [run["success"][name] for run in metrics["runs"]]
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        axes[0, 0].fill_between(metrics["steps"], low, high, color=colour, alpha=0.15, linewidth=0)
        axes[0, 0].plot(metrics["steps"], mean, "-o", color=colour, markersize=3, label=words)
    random = 100 * metrics["baselines"]["random switching"]["mean"]
    axes[0, 0].axhline(random, color=style.GREY, linestyle="--", linewidth=1, label="random switching")
    for horizon, colour in zip(metrics["runs"][0]["ratios"], style.PALETTE, strict=False):
        energy = [run["ratios"][horizon]["energy"] for run in metrics["runs"]]
        axes[0, 1].plot(metrics["steps"], energy, "-o", color=colour, markersize=3, label=f"β = {horizon}")
    for ax in axes[0]:
        ax.set_xscale("log")
        ax.set_xlabel("training steps", fontsize=9)
    axes[0, 0].legend(frameon=False, fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.32))
    axes[0, 1].legend(frameon=False, fontsize=7)
    axes[0, 0].set(ylabel="targets reached, %", ylim=(0, 103))
    axes[0, 1].set(ylabel="energy distance of displacement", ylim=(0, None))
    return canvas
