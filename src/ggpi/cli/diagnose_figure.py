"""Samples of models and true futures over each other, in the coordinates where the models are worst."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ggpi.data import Transitions
from ggpi.diagnosis import Truth, true_futures
from ggpi.diagnosis.distances import energy_distance
from ggpi.diagnosis.report import names as distinct
from ggpi.diagnosis.samples import draw
from ggpi.ghm import GHMs
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.lab import style
from ggpi.types import GHM

UNITS = (("x", "y", "z"), ("vx", "vy", "vz"))
"""Names of coordinates that have one unit; so have the cosine and the sine of an angle."""
SMALLEST_UNIT = 0.1
"""The least unit of a coordinate in spreads of all states: one in which the truth stands still does not win."""
CANDIDATES = 8
"""Coordinates of which pairs are tried: those that are worst one by one."""
SHOWN = 400
"""Points of a cloud."""
NUM_PAIRS = 4
"""Pairs (x, a) of which the one with the widest true futures is drawn: at a wall there is little to see."""


class Panel(NamedTuple):
    """What one panel shows."""

    start: np.ndarray
    """x [D], or 0 where changes of many states are drawn."""
    ours: np.ndarray
    """Samples of the model [n, D]."""
    true: np.ndarray
    """True futures [n, D]."""
    unit: np.ndarray
    """What counts as one in each coordinate."""
    is_change: bool


def picture(
    ghms: GHMs, source: str | Transitions, names: Sequence[str], keys: Sequence[str], seed: int
) -> Figure:
    """A row for each policy and a column for each horizon; axes are the two coordinates where the row is worst."""
    horizons = [None, *ghms.alphas]
    canvas, axes = style.figure(len(ghms.policies), len(horizons), size=(3.4, 3.0))
    sizes: dict[str, Any] = {"num_pairs": NUM_PAIRS, "num_samples": SHOWN, "keys": keys or None, "seed": seed}
    for k, policy in enumerate(distinct(ghms.policies)):
        truths = [true_futures(source, ghms.policies, k, ghms.horizon(alpha), **sizes) for alpha in horizons]
        panels = [
            panel(ghms.segment(k, alpha), truth, widest(truths[0]), seed)
            for alpha, truth in zip(horizons, truths, strict=True)
        ]
        chosen = worst_coordinates(panels)
        for ax, alpha, shown in zip(axes[k], horizons, panels, strict=True):
            draw_panel(ax, shown, chosen, [names[i] for i in chosen])
            ax.set_title(f"{policy}, β = {ghms.horizon(alpha):g}", fontsize=9, color=style.INK)
    axes[0, 0].legend(fontsize=7, frameon=False)
    return canvas


def widest(truth: Truth) -> int:
    """The pair whose true futures are spread most."""
    spreads = truth.future.std(axis=1) / np.maximum(truth.future.std(axis=(0, 1)), SMALLEST_SCALE)
    return int(np.argmax(spreads.mean(axis=1)))


def panel(model: GHM, truth: Truth, pair: int, seed: int) -> Panel:
    """One pair's futures; changes of many states where each has only one future."""
    drawn = draw(model, truth.state, truth.action, truth.future.shape[1], key=jax.random.key(seed))
    is_change = truth.future.shape[1] == 1
    if is_change:
        ours, true = ((values - truth.state[:, None])[:SHOWN, 0] for values in (drawn, truth.future))
        start = np.zeros(truth.state.shape[1])
    else:
        start, ours, true = truth.state[pair], drawn[pair], truth.future[pair]
    seen = true if truth.visited is None else truth.visited
    unit = np.maximum(true.std(axis=0), np.maximum(SMALLEST_UNIT * seen.std(axis=0), SMALLEST_SCALE))
    return Panel(start, ours, true, unit, is_change)


def worst_coordinates(panels: Sequence[Panel]) -> list[int]:
    """The two coordinates in which samples and truth are farthest apart, by energy; one if there is only one."""

    def apart(chosen: Sequence[int]) -> float:
        return sum(
            energy_distance(
                shown.ours[:, chosen] / shown.unit[chosen], shown.true[:, chosen] / shown.unit[chosen]
            )
            for shown in panels
        )

    size = len(panels[0].start)
    if size == 1:
        return [0]
    worst = sorted(range(size), key=lambda i: -apart([i]))[:CANDIDATES]
    return list(max(itertools.combinations(sorted(worst), 2), key=lambda pair: apart(list(pair))))


def same_unit(one: str, two: str) -> bool:
    """Whether two coordinates have one unit, going by their names."""
    if any(one in group and two in group for group in UNITS):
        return True
    return {one[:3], two[:3]} == {"cos", "sin"} and one[3:] == two[3:]


def draw_panel(ax: Axes, shown: Panel, chosen: Sequence[int], names: Sequence[str]) -> None:
    """Samples below in blue, the truth on top in black, and the start as a star below both."""
    start, ours, true = shown.start[chosen], shown.ours[:, chosen], shown.true[:, chosen]
    labels = [f"change of {name}" if shown.is_change else name for name in names]
    ax.set_xlabel(labels[0], fontsize=8, color=style.INK)
    if len(chosen) == 1:
        low, high = np.quantile(np.concatenate([ours, true]), [0.005, 0.995])
        bins = np.linspace(low, high, 40)
        ax.hist(ours[:, 0], bins, color=style.BLUE, alpha=0.5, label="model")
        ax.hist(true[:, 0], bins, color="black", histtype="step", label="truth")
        return
    ax.plot(*start, "*", color=style.RED, markersize=11, markeredgewidth=0, label="start")
    ax.scatter(*ours.T, s=10, color=style.BLUE, alpha=0.45, linewidths=0, zorder=3, label="model")
    ax.scatter(*true.T, s=6, color="black", alpha=0.8, linewidths=0, zorder=4, label="truth")
    ax.set_ylabel(labels[1], fontsize=8, color=style.INK)
    if same_unit(*names):
        ax.set_aspect("equal", adjustable="datalim")
