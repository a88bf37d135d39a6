"""A ring of transitions: the last million, kept on the host, sampled uniformly."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from ggpi.data.transitions import Transitions

FIELDS = tuple(field.name for field in fields(Transitions))


class RingBuffer:
    """Holds the newest `capacity` transitions; memory is set aside once, when the first ones come."""

    def __init__(self, capacity: int = 10**6):
        if capacity < 1:
            raise ValueError(f"a buffer holds at least one transition, got capacity {capacity}")
        self.capacity = capacity
        self.added = 0
        """How many transitions were ever added."""
        self._arrays: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, data: Transitions) -> None:
        """Adds rows in their order; the oldest give way."""
        for name in FIELDS:
            self._room(name, getattr(data, name))
        skipped = max(0, len(data) - self.capacity)
        places = (self.added + skipped + np.arange(len(data) - skipped)) % self.capacity
        for name in FIELDS:
            self._arrays[name][places] = getattr(data, name)[skipped:]
        self.added += len(data)

    def _room(self, name: str, values: np.ndarray) -> None:
        if name not in self._arrays:
            self._arrays[name] = np.empty((self.capacity, *values.shape[1:]), values.dtype)
        kept = self._arrays[name]
        if kept.shape[1:] != values.shape[1:] or not np.can_cast(values.dtype, kept.dtype, "same_kind"):
            raise ValueError(
                f"this buffer holds {name} of shape {kept.shape[1:]} and type {kept.dtype}, "
                f"got {values.shape[1:]} and {values.dtype}"
            )

    def sample(self, size: int, rng: np.random.Generator) -> Transitions:
        """`size` rows, drawn uniformly and with replacement."""
        self._check_filled()
        return self._rows(rng.integers(len(self), size=size))

    def ordered(self) -> Transitions:
        """All rows from the oldest to the newest; a view until the ring is full, a copy then."""
        self._check_filled()
        if self.added <= self.capacity:
            return self._rows(slice(0, self.added))
        return self._rows((self.added + np.arange(self.capacity)) % self.capacity)

    def _check_filled(self) -> None:
        if not len(self):
            raise ValueError("nothing was added to this buffer yet")

    def _rows(self, rows) -> Transitions:
        return Transitions(*(self._arrays[name][rows] for name in FIELDS))
