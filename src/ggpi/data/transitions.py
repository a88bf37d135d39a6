"""Transitions of a world: what was seen, and who acted.

The columns are arrays, in memory or mapped from disk (`np.memmap`): nothing here copies all of a column at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool

BLOCK = 2**25
"""Bytes of a column that are looked at together."""


@dataclass(frozen=True, eq=False)
class Transitions:
    """(x, a, x′) and how each came about, one row per step; rows of an episode follow each other.

    A `terminated` transition enters a terminal state. A `truncated` one is merely the last that was
    recorded: the world goes on. `behaviour` is the index of the acting policy, −1 when unknown. Loose transitions
    are episodes of one row each: nothing follows them.
    """

    state: Any
    action: Any
    next_state: Any
    terminated: Any
    truncated: Any
    behaviour: Any
    episode: Any
    step: Any

    def __post_init__(self):
        for field in fields(self):
            object.__setattr__(self, field.name, np.asarray(getattr(self, field.name)))
        lengths = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"all fields of transitions have one length, got {lengths}")
        if self.state.shape != self.next_state.shape:
            raise ValueError(
                f"state and next_state have one shape, got {self.state.shape} and {self.next_state.shape}"
            )

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, rows: Any) -> Transitions:
        """The chosen rows."""
        return Transitions(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def nbytes(self) -> int:
        """The size of all columns, wherever they are."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    @property
    def episode_starts(self) -> Bool[np.ndarray, "N"]:
        """True in the first row of each episode."""
        return np.append(True, self.episode[1:] != self.episode[:-1])[: len(self)]

    @property
    def episode_ends(self) -> Bool[np.ndarray, "N"]:
        """True in the last row of each episode."""
        return np.append(self.episode[1:] != self.episode[:-1], True)[: len(self)]

    @property
    def is_followed(self) -> Bool[np.ndarray, "N"]:
        """True where the next row is the next step of the same episode, and the episode had not ended."""
        ended = np.asarray(self.terminated, bool) | np.asarray(self.truncated, bool)
        later = np.append(self.step[1:] == self.step[:-1] + 1, False)[: len(self)]
        return ~self.episode_ends & later & ~ended

    def check(self, *, at_least: int = 1) -> None:
        """Refuses what nothing can be learned from, and says which field is wrong and how.

        Fewer rows than `at_least`, shapes or types that are neither of vectors nor of integers, numbers that
        are not finite.
        """
        self.check_forms(at_least=at_least)
        for name in ("state", "action", "next_state"):
            _check_finite(name, getattr(self, name))

    def check_forms(self, *, at_least: int = 1) -> None:
        """The part of `check` that looks at shapes and types only."""
        if len(self) < at_least:
            raise ValueError(f"{len(self)} transitions are too few, {at_least} are needed")
        for name in ("state", "action", "next_state"):
            _check_form(name, getattr(self, name))
        for name, kinds, wanted in (
            *((name, "biu", "booleans") for name in ("terminated", "truncated")),
            *((name, "iu", "integers") for name in ("behaviour", "episode", "step")),
        ):
            values = getattr(self, name)
            if values.dtype.kind not in kinds or values.ndim != 1:
                raise ValueError(
                    f"{name} has type {values.dtype} and shape {values.shape}: {wanted} [N] are wanted"
                )

    def episodes(self) -> Iterator[Transitions]:
        """One after the other."""
        if len(self):
            ends = np.flatnonzero(np.diff(self.episode)) + 1
            for rows in np.split(np.arange(len(self)), ends):
                yield self[rows]


def blocks(values: Any) -> Iterator[slice]:
    """The rows of a column, some megabytes at a time."""
    row = values.dtype.itemsize * int(np.prod(values.shape[1:]))
    size = max(1, BLOCK // max(1, row))
    return (slice(start, min(start + size, len(values))) for start in range(0, len(values), size))


def _check_form(name: str, values: np.ndarray) -> None:
    """Vectors are floats [N, D], discrete values are integers [N]."""
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{name} has type {values.dtype}: floats [N, D] or integers [N] are wanted")
    wanted, form = (2, "[N, D]") if values.dtype.kind == "f" else (1, "[N]")
    if values.ndim != wanted:
        kind = "floats" if wanted == 2 else "integers"
        raise ValueError(f"{name}: {kind} have shape {form}, got {values.shape} of type {values.dtype}")


def _check_finite(name: str, values: np.ndarray) -> None:
    """Says how many numbers are not finite, and where the first is."""
    if values.dtype.kind != "f":
        return
    count, first = 0, None
    for rows in blocks(values):
        bad = np.argwhere(~np.isfinite(values[rows]))
        if len(bad) and first is None:
            first = (rows.start + int(bad[0, 0]), *map(int, bad[0, 1:]))
        count += len(bad)
    if count:
        raise ValueError(f"{name}: {count} of {values.size} numbers are not finite, the first at {first}")
