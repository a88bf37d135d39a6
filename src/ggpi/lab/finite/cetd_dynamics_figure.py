"""Tables and figure of `cetd-dynamics`, from its numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.finite.cetd_dynamics import LEARNERS, WORLDS

ROW_COLOURS = style.BLUE, style.GREEN, style.PURPLE


def table(metrics: Metrics) -> Table:
    """The final errors."""
    title = f"Largest total variation error over rows after {metrics['num_steps']:,} steps"
    shown = Table(
        title=title, caption=f"mean over {metrics['num_seeds']} seeds, with a bootstrapped 95% interval"
    )
    for column in ("fixed points", "learner", "mean", "95%", "largest"):
        shown.add_column(column, justify="left" if column in ("fixed points", "learner") else "right")
    for world in metrics["worlds"]:
        for learner in LEARNERS:
            error = world[learner]["final_error"]
            interval = f"{error['low']:.4f} – {error['high']:.4f}"
            largest = f"{world[learner]['largest_final_error']:.4f}"
            shown.add_row(
                f"in the {world['world']}" if world["world"] == "interior" else "on the boundary",
                learner.upper(),
                f"{error['mean']:.4f}",
                interval,
                largest,
            )
    return shown


def plot(metrics: Metrics) -> Figure:
    """For each world: the path on the simplex, and the error against the step."""
    canvas, axes = style.figure(2, 2, size=(4.4, 3.6))
    for row, world in zip(axes, metrics["worlds"], strict=True):
        draw_simplex(row[0], world)
        row[0].set_title(WORLDS[world["world"]], fontsize=10, color=style.INK, pad=16)
        draw_errors(row[1], world, metrics["num_seeds"])
    axes[0, 0].legend(loc="upper right", bbox_to_anchor=(1.08, 1.0), fontsize=8, frameon=False)
    axes[0, 1].legend(loc="lower left", fontsize=8, frameon=False)
    axes[0, 1].set_title("Largest total variation over rows", fontsize=10, color=style.INK)
    axes[-1, 1].set_xlabel("step", fontsize=9)
    return canvas


def draw_simplex(ax: Axes, world: Metrics) -> None:
    """The triangle of distributions over three states, with the path of each row of μ to its fixed point."""
    ax.plot(*on_plane(np.eye(3)[[0, 1, 2, 0]]), color=style.GREY, linewidth=1, zorder=1)
    for x, colour in enumerate(ROW_COLOURS):
        path = on_plane(np.array(world["cetd"]["path"])[:, x])
        ax.plot(*path, color=colour, linewidth=0.5, alpha=0.8, zorder=2)
        ax.plot(*path[:, :1], "o", color="white", markeredgecolor=colour, markersize=6, zorder=3)
        ax.plot([], [], color=colour, linewidth=2, label=f"μ(·|x={x + 1})")
    ax.plot([], [], "o", color="white", markeredgecolor=style.INK, markersize=6, label="start")
    ax.plot(
        *on_plane(np.array(world["fixed_points"])),
        "o",
        color="red",
        markersize=4,
        zorder=4,
        label="fixed points",
    )
    for corner, (away_x, away_y) in enumerate([(-0.04, -0.03), (0.04, -0.03), (0, 0.04)]):
        x, y = on_plane(np.eye(3)[corner])
        ax.text(
            x + away_x,
            y + away_y,
            f"x={corner + 1}",
            ha="center",
            va="bottom" if corner == 2 else "top",
            fontsize=8,
        )
    ax.set_aspect("equal")
    ax.set_axis_off()


def on_plane(distributions: np.ndarray) -> np.ndarray:
    """Distributions over three states [..., 3] as points of an equilateral triangle [2, ...]."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    return np.moveaxis(distributions @ corners, -1, 0)


def draw_errors(ax: Axes, world: Metrics, num_seeds: int) -> None:
    """Mean error over seeds and the band of the middle 80%, both axes logarithmic."""
    styles = {"cetd": (style.RED, "-"), "cemc": (style.INK, "--")}
    for learner, (colour, line) in styles.items():
        curve = world[learner]
        steps = curve["steps"][1:]
        ax.fill_between(
            steps, curve["error_low"][1:], curve["error_high"][1:], color=colour, alpha=0.15, linewidth=0
        )
        label = f"{learner.upper()}, {num_seeds} seeds, 80% band"
        ax.plot(steps, curve["error_mean"][1:], line, color=colour, linewidth=1.2, label=label)
        ax.annotate(
            f"{curve['final_error']['mean']:.3f}",
            (steps[-1], curve["error_mean"][-1]),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(0.004, 1)
