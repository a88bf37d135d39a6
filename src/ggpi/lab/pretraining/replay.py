"""What the ants did, to learn from it again and for every direction: a ring of trajectories in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ggpi.lab.cells import Metrics
from ggpi.lab.pretraining.walking import Steps

KEPT = ("state", "action", "next_state", "direction", "fell")


class Replay:
    """The newest `capacity` steps, in trajectories of equal length; shared by the four policies."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.columns: dict[str, np.ndarray] = {}
        self.added = 0

    def __len__(self) -> int:
        """Trajectories that are held."""
        return min(self.added, self._slots())

    def _slots(self) -> int:
        return len(self.columns["fell"]) if self.columns else 0

    def add(self, steps: Steps) -> None:
        """Keeps one trajectory of each ant, from steps [time, ants, …]; the oldest make room."""
        rows = {name: np.moveaxis(np.asarray(getattr(steps, name)), 0, 1) for name in KEPT}
        ants, length = rows["fell"].shape
        if not self.columns:
            slots = max(self.capacity // length, ants)
            self.columns = {name: np.zeros((slots, *row.shape[1:]), row.dtype) for name, row in rows.items()}
        places = (self.added + np.arange(ants)) % self._slots()
        for name, row in rows.items():
            self.columns[name][places] = row
        self.added += ants

    def sample(self, batches: int, size: int, length: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """`batches` batches of pieces of trajectories, flattened to steps: columns [batches, size · length, …]."""
        pieces = rng.integers(len(self), size=(batches, size, 1))
        longest = self.columns["fell"].shape[1]
        if not 1 <= length <= longest:
            raise ValueError(f"pieces have between 1 and {longest} steps, got {length}")
        times = rng.integers(longest - length + 1, size=(batches, size, 1)) + np.arange(length)
        chosen = {name: column[pieces, times] for name, column in self.columns.items()}
        return {name: rows.reshape(batches, size * length, *rows.shape[3:]) for name, rows in chosen.items()}

    def save(self) -> tuple[dict[str, np.ndarray], Metrics]:
        """Everything in it, as arrays and JSON."""
        return {name: column.copy() for name, column in self.columns.items()}, {"added": self.added}

    def restore(self, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """The state at the time of `save`."""
        self.columns = {name: np.array(arrays[name]) for name in KEPT if name in arrays}
        self.added = about["added"]
