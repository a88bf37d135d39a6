"""Transitions: what was observed, and which policy acted.

The columns are arrays, in memory or mapped from disk (`np.memmap`): nothing here copies a whole column at once.
An episode is a run of rows with one number, so its boundaries are where that number changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Integer, Real

BLOCK = 2**25
"""Bytes of a column that are processed together."""

Rows = int | slice | np.ndarray | list[int]
Flags = Bool[np.ndarray, "N"] | Integer[np.ndarray, "N"]


@dataclass(frozen=True, eq=False)
class Transitions:
    """(x, a, x′) and how each came about, one row per step; rows of an episode follow each other.

    Vectors are floats [N, D], discrete states and actions are integers [N]; `check` tells. Loose transitions are
    episodes of one row each: nothing follows them.
    """

    state: Real[np.ndarray, "N *S"]
    action: Real[np.ndarray, "N *A"]
    next_state: Real[np.ndarray, "N *S"]
    terminated: Flags
    """Whether the transition enters a terminal state."""
    truncated: Flags
    """Whether it is the last of its episode that was recorded, without entering a terminal state."""
    behaviour: Integer[np.ndarray, "N"]
    """The index of the policy that acted, −1 when unknown."""
    episode: Integer[np.ndarray, "N"]
    step: Integer[np.ndarray, "N"]
    """The time within the episode, from 0."""

    def __post_init__(self) -> None:
        for name in FIELDS:
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        lengths = {name: len(getattr(self, name)) for name in FIELDS}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"all fields of transitions have one length, got {lengths}")
        if self.state.shape != self.next_state.shape:
            raise ValueError(
                f"state and next_state have one shape, got {self.state.shape} and {self.next_state.shape}"
            )

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, rows: Rows) -> Transitions:
        """The chosen rows."""
        return Transitions(*(getattr(self, name)[rows] for name in FIELDS))

    @property
    def nbytes(self) -> int:
        """The size of all columns, in memory or on disk."""
        return sum(getattr(self, name).nbytes for name in FIELDS)

    @property
    def episode_starts(self) -> Bool[np.ndarray, "N"]:
        """True in the first row of each episode."""
        return episode_starts(self.episode)

    @property
    def episode_ends(self) -> Bool[np.ndarray, "N"]:
        """True in the last row of each episode."""
        return episode_ends(self.episode)

    @property
    def is_followed(self) -> Bool[np.ndarray, "N"]:
        """True where the next row is the next step of the same episode, and the episode had not ended."""
        ended = np.asarray(self.terminated, bool) | np.asarray(self.truncated, bool)
        later = np.append(self.step[1:] == self.step[:-1] + 1, False)[: len(self)]
        return ~self.episode_ends & later & ~ended

    def check(self, *, at_least: int = 1) -> None:
        """Raises if nothing can be learned from these transitions, and says which field is wrong and how.

        Args:
            at_least: the number of rows that are needed.
        """
        self.check_forms(at_least=at_least)
        for name in ("state", "action", "next_state"):
            _check_finite(name, getattr(self, name))

    def check_forms(self, *, at_least: int = 1) -> None:
        """The part of `check` that needs shapes and types only."""
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
        """One episode after the other."""
        for rows in np.split(np.arange(len(self)), np.flatnonzero(self.episode_starts)[1:]):
            if len(rows):
                yield self[rows]


FIELDS = tuple(field.name for field in fields(Transitions))


def episode_starts(episode: Integer[np.ndarray, "N"]) -> Bool[np.ndarray, "N"]:
    """True in the first row of each run of equal numbers."""
    return np.append(True, episode[1:] != episode[:-1])[: len(episode)]


def episode_ends(episode: Integer[np.ndarray, "N"]) -> Bool[np.ndarray, "N"]:
    """True in the last row of each run of equal numbers."""
    return np.append(episode[1:] != episode[:-1], True)[: len(episode)]


def numbered(starts: Bool[np.ndarray, "N"]) -> tuple[Int[np.ndarray, "N"], Int[np.ndarray, "N"]]:
    """`episode` and `step` of rows, from where episodes start."""
    first = np.flatnonzero(starts).astype(np.int32)
    episode = np.cumsum(starts, dtype=np.int32) - 1
    return episode, np.arange(len(starts), dtype=np.int32) - first[episode]


def blocks(values: Any) -> Iterator[slice]:
    """The rows of a column, an array or a dataset of HDF5, some megabytes at a time."""
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
