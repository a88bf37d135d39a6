"""Weights that come with the package, each with the command, config, seed and versions that produced it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ggpi.storage.arrays import read_json
from ggpi.storage.objects import load

WEIGHTS = Path(__file__).parent / "weights"


def pretrained(name: str) -> Any:
    """Loads weights that come with the package.

    Args:
        name: "ant-policies", the four base policies right, up, left and down; "ant-ghms", models of them;
            "ogbench-ant-policies", walkers of OGBench's ant in eight directions; "point-mass-ghms" or "maze-ghms",
            one-pass models of four directions in a box and in PointMaze Medium.
    """
    folder = _folder(name)
    (content,) = (path for path in folder.iterdir() if path.is_dir())
    return load(content)


def provenance(name: str) -> dict[str, Any]:
    """How these weights were trained: command, config, versions and training curve."""
    return read_json(_folder(name) / "training.json")


def other_trainings(name: str) -> dict[str, dict[str, Any]]:
    """Trainings of other algorithms on the same task: command, config, versions and curve of each."""
    paths = sorted(_folder(name).glob("training-*.json"))
    return {path.stem.partition("-")[2]: read_json(path) for path in paths}


def names() -> list[str]:
    """The names that `pretrained` accepts."""
    return sorted(path.parent.name for path in WEIGHTS.glob("*/training.json"))


def _folder(name: str) -> Path:
    if name not in names():
        raise ValueError(
            f"there are no pretrained weights {name!r}; available: {', '.join(names()) or 'none'}"
        )
    return WEIGHTS / name
