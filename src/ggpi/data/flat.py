"""Flat files that others wrote (HDF5, `.npz`, directories of `.npy`): one array per field, one row per step.

D4RL's and OGBench's files are of this kind. Which rows make an episode is read off the rows themselves:

    next states are given      a row goes on where its next state is the next row's state and no end is marked:
                               shuffled rows are loose transitions, each an episode of its own
    they are not               the next state is the next row's state, up to the marked end of an episode; the
                               row at the end has none and is left out. Terminals alone are not enough: where an
                               episode was cut has to be marked too, or said to be nowhere

Everything is read in blocks and checked on the way: an error names the file and the field.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.data.files import open_npy, read_npy, writing_npy
from ggpi.data.opening import Npz, check_dataset, check_memory, map_npy, open_hdf5
from ggpi.data.transitions import Transitions, blocks, episode_ends, numbered
from ggpi.storage.errors import FileError
from ggpi.storage.reading import as_file_errors, short

NAMES: dict[str, str | None] = {
    "state": "observations",
    "action": "actions",
    "next_state": "next_observations",
    "terminated": "terminals",
    "truncated": "timeouts",
    "behaviour": None,
    "episode": None,
}
"""Field → its name in a file. All but state and action may be missing."""
VECTORS = ("state", "action", "next_state")
Columns = dict[str, Any]


def read_flat(
    path: str | Path, *, names: Mapping[str, str | None] | None = None, mapped: str | Path | None = None
) -> Transitions:
    """Transitions of an HDF5 file (extra `data`), an `.npz` file or a directory of `.npy` files.

    `names` says what fields are called where that is not as in D4RL, `{"state": "data/obs"}`, and None for
    what is not to be read. In OGBench's files `terminals` mark where a record was cut, which is not the end of the
    world: `{"truncated": "terminals", "terminated": None}`. `behaviour` is −1 unless it is named.

    With `mapped`, columns are written to this directory block by block and mapped from there, so that they need
    not fit into memory (some 30 bytes a row have to, while reading); `read_npy` opens it again.
    """
    path, names = Path(path), names or {}
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise ValueError(f"names are given for {', '.join(NAMES)}, got {', '.join(unknown)}")
    with ExitStack() as stack, as_file_errors(path):
        columns = _select(path, _open(path, stack), names)
        _check(path, columns)
        if mapped is None:
            check_memory(
                path, sum(math.prod(values.shape) * values.dtype.itemsize for values in columns.values())
            )
        goes_on = _goes_on(path, columns, names or {})
        return _write(path, columns, goes_on, mapped)


def _open(path: Path, stack: ExitStack) -> Mapping[str, Any]:
    """The arrays of a file by name, not read yet."""
    if path.is_dir():
        return {file.stem: file for file in path.glob("*.npy")}
    if path.suffix not in (".npz", ".hdf5", ".h5"):
        raise FileError(path, "is no .npz, .hdf5 or .h5 file and no directory of .npy files")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return Npz(path, stack) if path.suffix == ".npz" else open_hdf5(path, stack)


def _column(path: Path, name: str, there: Mapping[str, Any]) -> Any:
    values = there[name]
    if isinstance(values, Path):
        return map_npy(values)
    if not isinstance(values, np.ndarray):
        check_dataset(path, name, values)
    return values


def _select(path: Path, there: Mapping[str, Any], names: Mapping[str, str | None]) -> Columns:
    """The columns that are there; those that must be, or were asked for by name, are."""
    columns = {}
    for field, name in (NAMES | dict(names)).items():
        if name is not None and name in there:
            with as_file_errors(path, f"{field} ({name!r})"):
                columns[field] = _column(path, name, there)
        elif field in ("state", "action") or names.get(field) is not None:
            raise FileError(
                path,
                f"has no {name!r} for {field}; it holds {short(', '.join(sorted(there))) or 'nothing'}: "
                f"ggpi.data.read_flat(path, names={{{field!r}: …}}) says what it is called there",
            )
    return columns


def _check(path: Path, columns: Columns) -> None:
    """Shapes and types, before anything is read."""
    shape = columns["state"].shape
    if not shape or not shape[0]:
        raise FileError(path, f"state has shape {shape}, there are no transitions")
    for field, values in columns.items():
        about = f"{field} has shape {values.shape} and type {values.dtype}"
        if values.shape[:1] != shape[:1]:
            raise FileError(path, f"{about}, but state has {shape[0]} rows")
        if field == "next_state" and values.shape != shape:
            raise FileError(path, f"{about}, but state has shape {shape}")
        if field in VECTORS:
            if values.dtype.kind not in {2: "iuf", 1: "iu"}.get(values.ndim, ""):
                raise FileError(path, f"{about}: vectors [N, D] or integers [N] are wanted")
        elif values.size != shape[0] or values.dtype.kind not in "biuf":
            raise FileError(path, f"{about}: one number for each row is wanted")


def _goes_on(path: Path, columns: Columns, names: Mapping[str, str | None]) -> np.ndarray:
    """For each row whether the next row is the same episode's next step."""
    size = len(columns["state"])
    ends = np.zeros(size, bool)
    ends[-1] = True
    for field in ("terminated", "truncated"):
        if field in columns:
            ends |= _flags(path, field, columns[field])
    if "episode" in columns:
        number = _whole(columns["episode"], "episode").reshape(size)
        ends |= episode_ends(number)
    if "next_state" in columns:
        ends[:-1] |= ~_equal(columns["next_state"], columns["state"])
    elif not columns.keys() & {"terminated", "truncated", "episode"}:
        raise FileError(
            path,
            "has neither next states nor the ends of episodes; names={'next_state': …}, or for "
            "one of terminated, truncated and episode, says what they are called there",
        )
    elif not columns.keys() & {"truncated", "episode"} and "truncated" not in names:
        raise FileError(
            path,
            "has neither next states nor marks where episodes were cut (timeouts), so a jump from one episode to the "
            "next would be read as a step; names={'truncated': …} or {'episode': …} says what marks them there, "
            "{'truncated': None} that every episode ends where it terminates",
        )
    return ~ends


def _flags(path: Path, field: str, values: Any) -> np.ndarray:
    values = np.asarray(values).reshape(-1)
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise FileError(path, f"{field} is true or false, got {wrong[0]!r}")
    return values.astype(bool)


def _equal(next_state: Any, state: Any) -> np.ndarray:
    """Whether each next state is the next row's state."""
    result = np.zeros(len(state) - 1, bool)
    for rows in blocks(next_state):
        stop = min(rows.stop, len(result))
        same = _numbers(next_state[rows.start : stop]) == _numbers(state[rows.start + 1 : stop + 1])
        result[rows.start : stop] = same if same.ndim == 1 else same.all(axis=1)
    return result


def _numbers(values: Any) -> np.ndarray:
    """Vectors in single precision, integers [N] or [N, 1] as whole numbers [N]."""
    values = np.asarray(values)
    if values.dtype.kind in "iu" and values.shape[1:] in ((), (1,)):
        return _whole(values, "a state or an action").reshape(-1).astype(np.int32)
    with np.errstate(over="ignore"):  # what becomes infinite is found by who looks for that
        return values.astype(np.float32)


def _whole(values: Any, what: str) -> np.ndarray:
    """Numbers that are whole, and fit into 32 bits."""
    values = np.asarray(values)
    wrong = values[~((values >= -(2**31)) & (values < 2**31))]
    wrong = values[values != np.floor(values)] if not len(wrong) and values.dtype.kind == "f" else wrong
    if len(wrong):
        raise ValueError(f"{what} is a whole number of 32 bits, got {wrong[0]!r}")
    return values


def _write(path: Path, columns: Columns, goes_on: np.ndarray, mapped: str | Path | None) -> Transitions:
    """All rows that have a next state, in memory or in a directory."""
    kept = np.ones(len(goes_on), bool) if "next_state" in columns else goes_on
    if not kept.any():
        raise FileError(path, "has no next states and no two rows of one episode: no transitions")
    with writing_npy(mapped):
        written = {field: _copied(path, field, columns, kept, mapped) for field in VECTORS}
        rest = _bookkeeping(path, columns, goes_on, kept)
        if mapped is None:
            return Transitions(**written, **rest)
        for name, values in rest.items():
            with open_npy(mapped, name, values.shape, values.dtype) as column:
                column[...] = values
    return read_npy(mapped)


def _bookkeeping(path: Path, columns: Columns, goes_on: np.ndarray, kept: np.ndarray) -> Columns:
    """Ends, behaviour, episode and step of the kept rows."""
    episode, step = numbered(np.append(True, ~goes_on[:-1]))
    terminated = np.zeros(len(step), bool)
    if "terminated" in columns:
        terminated = _flags(path, "terminated", columns["terminated"])
    if (terminated & ~kept).any():
        warnings.warn(
            f"{path} has no next states: {(terminated & ~kept).sum()} rows that terminate are left out, and "
            "nobody will learn that the world ends there",
            stacklevel=5,
        )
    behaviour = np.full(len(step), -1, np.int32)
    if "behaviour" in columns:
        behaviour = _whole(columns["behaviour"], "behaviour").reshape(-1).astype(np.int32)
    last = episode_ends(episode[kept])
    return {
        "terminated": terminated[kept],
        "truncated": last & ~terminated[kept],
        "behaviour": behaviour[kept],
        "episode": episode[kept],
        "step": step[kept],
    }


def _copied(path: Path, field: str, columns: Columns, kept: np.ndarray, mapped: Any) -> np.ndarray | None:
    """The kept rows of a column in memory, or None once they are in a directory."""
    later = field == "next_state" and field not in columns  # then it is the state of the row after
    values = columns["state"] if later else columns[field]
    example = _numbers(values[:1])
    shape, dtype = (int(kept.sum()), *example.shape[1:]), example.dtype
    with (
        nullcontext(np.empty(shape, dtype))
        if mapped is None
        else open_npy(mapped, field, shape, dtype) as result
    ):
        done = 0
        for rows in blocks(values):
            chosen = np.flatnonzero(kept[rows])
            block = _numbers(values[rows.start + later : rows.stop + later])[chosen]
            bad = np.flatnonzero(~np.isfinite(block).reshape(len(block), -1).all(axis=1))
            if len(bad):
                at = rows.start + int(chosen[bad[0]])
                raise FileError(path, f"{field} has numbers that are not finite, the first in row {at}")
            result[done : done + len(block)] = block
            done += len(block)
        return result if mapped is None else None
