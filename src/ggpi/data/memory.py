"""Data larger than memory: what of it a training can hold.

Training keeps its data on the device and asks for rows at random, so what it learns from has to fit. Of mapped
transitions that do not fit, whole episodes are drawn at random, once: what is learned is then what so many episodes
teach, and a warning says how many they were.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ggpi.data.transitions import Transitions


def is_mapped(data: Transitions) -> bool:
    """Whether states are on disk, and only mapped."""
    values: Any = data.state
    while values is not None and not isinstance(values, np.memmap):
        values = getattr(values, "base", None)
    return values is not None


def within_memory(data: Transitions, gigabytes: float, *, seed: int = 0) -> Transitions:
    """Transitions in memory: all if they take at most so much, else random whole episodes, in their order."""
    if not gigabytes > 0:
        raise ValueError(f"memory is positive, got {gigabytes} GB")
    if data.nbytes <= gigabytes * 1e9:
        return data[np.arange(len(data))] if is_mapped(data) else data
    room = int(gigabytes * 1e9 * len(data) / data.nbytes)
    starts = np.flatnonzero(data.episode_starts)
    lengths = np.diff(np.append(starts, len(data)))
    order = np.random.default_rng(seed).permutation(len(starts))
    taken = order[: np.searchsorted(np.cumsum(lengths[order]), room, side="right")]
    if not len(taken):
        raise ValueError(
            f"{gigabytes:g} GB hold {room} of these transitions, and an episode has {lengths[order[0]]}: "
            "give more memory, or cut episodes into shorter ones"
        )
    rows = np.flatnonzero(np.repeat(np.isin(np.arange(len(starts)), taken), lengths))
    warnings.warn(
        f"{len(data)} transitions need {data.nbytes / 1e9:.3g} GB, more than {gigabytes:g} GB: {len(rows)} of them are "
        f"used, {len(taken)} of {len(starts)} episodes drawn at random",
        stacklevel=2,
    )
    return data[rows]
