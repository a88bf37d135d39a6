"""When does depth help the ant? Success of depth 1 to 3 against the target's radius and its distance.

A large target is hit without a plan; a small one has to be planned for, and only a GSP that turns on the way puts
its samples there.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import MPC, best_alone, plain, planning_one_step, success
from ggpi.lab.ant.calibration import announce, calibrate, calibration_table
from ggpi.lab.ant.models import FITS, FitConfig, models
from ggpi.lab.contract import Cells, compute

COLOURS = {1: style.RED, 2: style.BLUE, 3: style.GREEN}


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes and of the models."""
    preset: str = "paper"
    """How the models are trained: tiny, cpu or paper."""
    episodes: int = 100
    """Episodes of each agent at each setting."""
    samples: int = 100
    """Samples for each GSP of depth 2."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Depths of the plans."""
    radii: tuple[float, ...] = (0.2, 0.3, 0.5, 1.0)
    """Radii of the target, at a distance of 2 to 4."""
    distances: tuple[float, ...] = (1.0, 2.0, 4.0, 6.0)
    """Distances of the target, at the headline's radius."""


PRESETS = {
    "tiny": Config(
        seed=0, preset="tiny", episodes=2, samples=2, depths=(1, 2), radii=(1.0,), distances=(1.0,)
    ),
    "cpu": Config(preset="cpu", episodes=50, samples=40),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Episodes of each depth at each radius and at each distance."""
    fit = replace(FITS[config.preset], seed=config.seed)
    settings = {f"radius-{r:g}": (r, None) for r in config.radii}
    settings |= {f"distance-{d:g}": (ant.RADIUS, d) for d in config.distances}
    ratios = announce(cells({"models": partial(calibrate, fit)})["models"])
    tasks: dict[str, Any] = {}
    for name, (radius, distance) in settings.items():
        given = config.episodes, ant.REPORTED + 1_000_000 * config.seed, radius, distance
        for depth in config.depths:
            tasks[f"{name}/depth-{depth}"] = partial(measure, config, fit, depth, given)
        tasks[f"{name}/plain"] = partial(plain, *given)
        tasks[f"{name}/mpc"] = partial(planning_one_step, fit, radius, *given)
    results = cells(tasks)
    return {
        "ratios": ratios,
        "episodes": config.episodes,
        "depths": config.depths,
        "radii": config.radii,
        "distances": config.distances,
        "success": {
            name: {str(depth): results[f"{name}/depth-{depth}"] for depth in config.depths}
            | results[f"{name}/plain"]
            | {MPC: results[f"{name}/mpc"]}
            for name in settings
        },
    }


def measure(config: Config, fit: FitConfig, depth: int, given: tuple[Any, ...]) -> dict[str, float]:
    """Success at one setting."""
    radius = given[2]
    return success(ant.planner(models(fit), depth, ant.budget(config.samples, depth), radius), *given)


def table(metrics: dict[str, Any]) -> list[Table]:
    """How the models are calibrated, and one row for each setting."""
    shown = Table(title=f"Success in %, {metrics['episodes']} episodes each", title_justify="left")
    depths = [f"depth {d}" for d in metrics["depths"]]
    for column in ("target", *depths, "best policy alone", "random switching", "MPC"):
        shown.add_column(column, justify="left" if column == "target" else "right")
    for name, row in metrics["success"].items():
        numbers = [row[str(d)]["mean"] for d in metrics["depths"]]
        numbers += [best_alone(row), row["random switching"]["mean"], row[MPC]["mean"]]
        shown.add_row(name.replace("-", " "), *(f"{100 * number:.0f}" for number in numbers))
    return [calibration_table(metrics["ratios"]), shown]


def plot(metrics: dict[str, Any]) -> Figure:
    """Success against radius and against distance."""
    canvas, axes = style.figure(1, 2, size=(4.0, 3.0), sharey=True)
    _draw(axes[0, 0], metrics, "radius", metrics["radii"], "radius of the target, at distance 2 to 4")
    _draw(
        axes[0, 1],
        metrics,
        "distance",
        metrics["distances"],
        f"distance of the target, radius {ant.RADIUS:g}",
    )
    axes[0, 0].set(ylabel="targets reached, %", ylim=(0, 103))
    axes[0, 0].legend(frameon=False, fontsize=7)
    return canvas


def _draw(ax: Axes, metrics: dict[str, Any], name: str, values: Any, words: str) -> None:
    looks = {str(depth): (f"depth {depth}", COLOURS[depth], "-o") for depth in metrics["depths"]}
    looks |= {MPC: (MPC, style.YELLOW, "--o"), "random switching": ("random switching", style.GREY, "--o")}
    for agent, (label, colour, line) in looks.items():
        points = [metrics["success"][f"{name}-{value:g}"][agent] for value in values]
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        ax.fill_between(values, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(values, mean, line, color=colour, markersize=3, label=label)
    ax.set_xlabel(words, fontsize=9)
