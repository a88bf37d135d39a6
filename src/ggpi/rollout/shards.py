"""Collecting in shards: independent collections with their own seeds, which any executor may run in any order.

The rows of a shard are known before it runs, so its transitions are written to their place as soon as they are there:
memory holds those of the shards that are being collected, and the rest may be on disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ggpi.data import Transitions
from ggpi.data.files import open_npy, read_npy, writing_npy
from ggpi.data.transitions import FIELDS
from ggpi.progress import progress

if TYPE_CHECKING:
    from ggpi.cluster import Executor

SHARDS = 16
"""How many shards there are unless another number is given; transitions depend on it, not on the executor."""


@dataclass(frozen=True)
class Shard:
    """Some rows of the whole, and the seed that they are collected with."""

    first: int
    count: int
    seed: int

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + self.count)


def planned(num_steps: int, shards: int, seed: int) -> dict[str, Shard]:
    """The shards of a collection by name. The first has the given seed, so one shard is the undivided collection."""
    ends = np.linspace(0, num_steps, min(shards, num_steps) + 1).astype(int)
    seeds = [
        seed,
        *(int(np.random.SeedSequence([seed, i]).generate_state(1)[0]) for i in range(1, len(ends))),
    ]
    return {
        f"shard-{i}": Shard(int(ends[i]), int(ends[i + 1] - ends[i]), seeds[i]) for i in range(len(ends) - 1)
    }


def collect_shards(
    collect: Callable[..., Transitions],
    shards: dict[str, Shard],
    executor: Executor | None,
    mapped: str | Path | None,
) -> Transitions:
    """The transitions of all shards, in their order; with `mapped`, in a directory, from which they are mapped.

    Args:
        collect: called with `num_steps` and `seed` of each shard.
        shards: as `planned`.
        executor: where shards are collected; None for here, one after the other.
        mapped: a directory for the columns; None keeps them in memory.
    """
    num_steps, done = sum(shard.count for shard in shards.values()), 0
    columns: dict[str, np.ndarray] = {}
    with contextlib.ExitStack() as files:
        files.enter_context(writing_npy(mapped))
        advance = files.enter_context(progress(num_steps, "collecting", ""))
        one = partial(_collected, collect)
        here = ((name, one(shard)) for name, shard in shards.items())
        for name, part in executor.completed(one, shards) if executor else here:
            columns = columns or {field: _column(files, mapped, field, part, num_steps) for field in FIELDS}
            for field in FIELDS:
                columns[field][shards[name].rows] = getattr(part, field)
            done += len(part)
            advance(done, "")
        _number_episodes(columns["episode"], shards)
    return read_npy(mapped) if mapped is not None else Transitions(*(columns[field] for field in FIELDS))


def _collected(collect: Callable[..., Transitions], shard: Shard) -> Transitions:
    return collect(num_steps=shard.count, seed=shard.seed)


def _column(
    files: contextlib.ExitStack, mapped: str | Path | None, field: str, part: Transitions, num_steps: int
) -> np.ndarray:
    """Room for a column of all shards, in memory or on disk."""
    values = getattr(part, field)
    shape = num_steps, *values.shape[1:]
    if mapped is None:
        return np.empty(shape, values.dtype)
    return files.enter_context(open_npy(mapped, field, shape, values.dtype))


def _number_episodes(episode: np.ndarray, shards: dict[str, Shard]) -> None:
    """Each shard counts from 0; the episodes of later ones follow those of earlier ones."""
    count = 0
    for shard in shards.values():
        episode[shard.rows] += count
        count = int(episode[shard.first + shard.count - 1]) + 1
