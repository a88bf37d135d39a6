"""Scores of `maze-transfer`: success by turns, gains by depth, and the targets that need depth 3.

All agents have the same tasks in the same order, group after group: an array of steps is [tasks of a group, groups].
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ggpi.lab.bootstrap import mean_interval, points_apart, share_interval
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.tasks import Cell

LEVEL = 0.9
POINTS = 20
"""A depth is needed for a target if it is this many points above the depth below."""

Played = Sequence[Mapping[str, Any]]
"""What each seed of models reached: `steps` of every episode, 0 where the target was not reached."""


def steps_of(found: Played, num_groups: int) -> np.ndarray:
    """[models, tasks of a group, groups]"""
    return np.array([cell["steps"] for cell in found]).reshape(len(found), -1, num_groups)


def by_turns(turns: Sequence[int], found: Played) -> Metrics:
    """Share of targets reached for each number of turns, with its exact interval, and mean steps."""
    summary = {}
    for group, own in zip(turns, np.moveaxis(steps_of(found, len(turns)), 2, 0), strict=True):
        reached = own > 0
        summary[str(group)] = {
            **share_interval(reached, level=LEVEL),
            "steps": float(own[reached].mean()) if reached.any() else None,
            "per_model": reached.mean(axis=1),
        }
    return summary


def minus_oracle(turns: Sequence[int], found: Played, oracle: Played) -> Metrics:
    """Targets reached minus those that the oracle reaches in the same episodes, in points; by turns and of all."""
    ours, true = (steps_of(each, len(turns)) > 0 for each in (found, oracle))
    groups = {str(group): points_apart(ours[:, :, i], true[0, :, i]) for i, group in enumerate(turns)}
    return groups | {"all": points_apart(ours.reshape(len(ours), -1), true.ravel())}


def by_target(cells: Sequence[Cell], found: Mapping[int, Played]) -> list[Metrics]:
    """Share of episodes that reached each target, at each depth."""
    rows = []
    for cell in dict.fromkeys(cells):
        own = np.array([each == cell for each in cells])
        success = {
            str(depth): float(np.mean([np.array(part["steps"])[own] > 0 for part in parts]))
            for depth, parts in found.items()
        }
        rows.append({"cell": cell, "success": success})
    return rows


def gains(turns: Sequence[int], found: Mapping[int, Played]) -> dict[str, dict[str, dict[str, float]]]:
    """Points by which each depth is above the depth before, episode by episode, for each number of turns."""
    depths, gained = list(found), {}
    for below, above in itertools.pairwise(depths):
        reached = [steps_of(found[depth], len(turns)) > 0 for depth in (above, below)]
        apart = 100.0 * reached[0] - 100.0 * reached[1]
        gained[f"{above} over {below}"] = {
            str(group): mean_interval(apart[:, :, i].ravel(), level=LEVEL) for i, group in enumerate(turns)
        }
    return gained


def depth_3_needed(maze: str, rows: Sequence[Mapping[str, Any]]) -> Metrics:
    """The maze, and the targets for which depth 3 is at least 20 points above depth 2; of the rows of `by_target`."""
    points = [100 * (row["success"]["3"] - row["success"]["2"]) for row in rows]
    named = [i for i, gained in enumerate(points) if gained >= POINTS]
    return {
        "maze": maze,
        "targets": [rows[i]["cell"] for i in named],
        "points": [points[i] for i in named],
    }


def mean_calibration(found: Sequence[Sequence[Mapping[str, Any]]]) -> list[Metrics]:
    """The mean over seeds and policies, for each horizon."""
    rows = [row for one in found for row in one]
    numbers = ("energy", "energy_floor", "wall", "far", "far_floor", "mean", "spread")
    return [
        {"horizon": horizon}
        | {name: float(np.mean([row[name] for row in rows if row["horizon"] == horizon])) for name in numbers}
        for horizon in dict.fromkeys(row["horizon"] for row in rows)
    ]
