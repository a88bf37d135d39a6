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

from ggpi.lab import ant, style
from ggpi.lab.ant_models import FitConfig, models
from ggpi.lab.contract import Cells, compute
from ggpi.lab.statistics import mean_interval

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

    @classmethod
    def tiny(cls):
        return cls(0, "tiny", 2, 2, (1, 2), (1.0,), (1.0,))

    @classmethod
    def cpu(cls):
        return cls(preset="cpu", episodes=50, samples=40)

    @classmethod
    def paper(cls):
        return cls()


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Episodes of each depth at each radius and at each distance.

    Beyond the paper: when depth helps
    """
    settings = {f"radius-{r:g}": (r, None) for r in config.radii}
    settings |= {f"distance-{d:g}": (ant.RADIUS, d) for d in config.distances}
    tasks = {
        f"{name}/depth-{depth}": partial(measure, config, depth, *setting)
        for name, setting in settings.items()
        for depth in config.depths
    }
    results = cells(tasks)
    return {
        "episodes": config.episodes,
        "depths": config.depths,
        "radii": config.radii,
        "distances": config.distances,
        "success": {
            name: {str(depth): results[f"{name}/depth-{depth}"] for depth in config.depths}
            for name in settings
        },
    }


def measure(config: Config, depth: int, radius: float, distance: float | None) -> dict[str, Any]:
    """Success at one setting.

    Beyond the paper: when depth helps
    """
    ghms = models(replace(getattr(FitConfig, config.preset)(), seed=config.seed))
    decide = ant.planner(ghms, depth, ant.budget(config.samples, depth), radius)
    seed = ant.REPORTED + 1_000_000 * config.seed
    outcome = ant.episodes(decide, config.episodes, seed, radius, distance)
    return mean_interval(outcome.reached.astype(float), level=0.9)


def table(metrics: dict[str, Any]) -> Table:
    """One row for each setting."""
    shown = Table(title=f"Success, {metrics['episodes']} episodes each", title_justify="left")
    for column in ("target", *(f"depth {d}, %" for d in metrics["depths"])):
        shown.add_column(column, justify="left" if column == "target" else "right")
    for name, row in metrics["success"].items():
        numbers = [f"{100 * row[str(d)]['mean']:.0f}" for d in metrics["depths"]]
        shown.add_row(name.replace("-", " "), *numbers)
    return shown


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
    for depth in metrics["depths"]:
        points = [metrics["success"][f"{name}-{value:g}"][str(depth)] for value in values]
        mean, low, high = (
            100 * np.array([point[part] for point in points]) for part in ("mean", "low", "high")
        )
        ax.fill_between(values, low, high, color=COLOURS[depth], alpha=0.15, linewidth=0)
        ax.plot(values, mean, "-o", color=COLOURS[depth], markersize=3, label=f"depth {depth}")
    ax.set_xlabel(words, fontsize=9)
