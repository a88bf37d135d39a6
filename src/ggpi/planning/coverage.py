"""How well landmarks cover where jumps end: distances, and what snapping to neighbours costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

QUANTILES = (0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True)
class Coverage:
    """Distances in units of the data, each by its quantiles 5%, 50%, 95% and 100%."""

    spacing: tuple[float, ...]
    """From a landmark to the nearest other one."""
    ends: tuple[float, ...]
    """From the end of a jump to the nearest landmark, terminal states left out."""
    snapping: tuple[float, ...]
    """From the end of a jump to the weighted mean of its neighbours: how far V is shifted."""
    jump: tuple[float, ...]
    """From a landmark to the end of a jump: errors that are small against it are small."""
    reach: float
    """The distance within which 99.9% of the data have a landmark."""
    far: float
    """The share of jumps that end farther from every landmark than 95% of the landmarks are from each other."""
    dropped: float
    """The share of jumps that are left out because they end out of reach."""

    def __str__(self) -> str:
        rows = {
            "landmark to nearest other": self.spacing,
            "end of a jump to landmark": self.ends,
            "end of a jump to the mean of its neighbours": self.snapping,
            "length of a jump": self.jump,
        }
        width = max(map(len, rows))
        lines = [f"{'distance (standard deviations of the data)':{width}}      5%     50%     95%     max"]
        lines += [f"{name:{width}}" + "".join(f"{x:8.3f}" for x in row) for name, row in rows.items()]
        lines.append(
            f"{self.far:.1%} of the jumps end farther from landmarks than these are from each other, "
            f"{self.dropped:.1%} are left out (farther than {self.reach:.3g})"
        )
        return "\n".join(lines)


def coverage_of(
    points: Float[np.ndarray, "M d"], jumps: Any, units: Float[np.ndarray, "d"], reach: float
) -> Coverage:
    """The coverage of landmarks at these points.

    Args:
        points: the landmarks in units of the data.
        jumps: the `Jumps` between them.
        units: the units.
        reach: the distance beyond which jumps are left out.
    """
    spacing = KDTree(points).query(points, k=min(2, len(points)))[0].reshape(len(points), -1)[:, -1]
    snapped, length = [], []
    for k, ended in enumerate(jumps.ended):  # one policy at a time: memory
        end = np.asarray(jumps.end[k], float).reshape(*ended.shape, -1) / units
        own = jumps.weight[k] / np.maximum(jumps.share[k], 1e-12)[..., None]
        mean = sum(own[..., j, None] * points[jumps.neighbour[k, ..., j]] for j in range(own.shape[-1]))
        counted = (jumps.share[k] > 0) & ~ended
        snapped.append(np.linalg.norm(mean - end, axis=-1)[counted])
        length.append(np.linalg.norm(end - points[:, None], axis=-1).ravel())
    ends = jumps.distance[~jumps.ended]
    far = float((ends > np.quantile(spacing, 0.95)).mean()) if len(ends) else 0.0
    dropped = float((jumps.share == 0).mean())
    rows = spacing, ends, np.concatenate(snapped), np.concatenate(length)
    spacings, nearest, shifts, lengths = map(_quantiles, rows)
    return Coverage(spacings, nearest, shifts, lengths, reach, far, dropped)


def _quantiles(values: np.ndarray) -> tuple[float, ...]:
    return tuple(np.quantile(values, QUANTILES).tolist()) if len(values) else (0.0,) * len(QUANTILES)
