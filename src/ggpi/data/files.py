"""Our own files of transitions: arrays only, never pickle.

    one `.npz` file           compressed, replaced at one stroke, read into memory
    a directory of `.npy`     one file per column, mapped instead of read: for data larger than memory

A directory is whole when its `about.json` is there, which is written last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.data.opening import Npz, map_npy
from ggpi.data.transitions import FIELDS, Transitions
from ggpi.storage.arrays import read_json, replacing, sweep, write_json
from ggpi.storage.errors import FileError
from ggpi.storage.locking import sole_writer
from ggpi.storage.reading import as_file_errors, short

FORMAT = "ggpi transitions 1"


def write_npz(path: str | Path, data: Transitions) -> None:
    """Writes transitions, compressed."""
    arrays = _plain(data)
    with replacing(path) as aside, aside.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, format=np.array(FORMAT), **arrays)


def read_npz(path: str | Path) -> Transitions:
    """Reads what `write_npz` wrote; says what is wrong with a damaged or foreign file."""
    with contextlib.ExitStack() as stack, as_file_errors(path):
        file = Npz(Path(path), stack)
        if "format" not in file or str(file["format"]) != FORMAT:
            raise FileError(
                path,
                f"it holds {short(', '.join(file)) or 'nothing'}, and is not of format {FORMAT!r}; "
                "ggpi.data.read_flat reads what others wrote",
            )
        data = Transitions(*(file[name] for name in FIELDS))
        data.check(at_least=0)
        return data


def write_npy(directory: str | Path, data: Transitions) -> None:
    """Writes transitions as a directory of columns, to be mapped."""
    arrays = _plain(data)
    with writing_npy(directory):
        for name, values in arrays.items():
            with open_npy(directory, name, values.shape, values.dtype) as column:
                column[...] = values


@contextlib.contextmanager
def writing_npy(directory: str | Path | None) -> Iterator[None]:
    """Prepares a directory for columns and marks it whole once all are written; does nothing for None."""
    if directory is None:
        yield
        return
    about = Path(directory) / "about.json"
    with sole_writer(directory, "writing transitions"):
        sweep(directory)
        about.unlink(missing_ok=True)
        yield
        write_json(about, {"format": FORMAT})


@contextlib.contextmanager
def open_npy(directory: str | Path, name: str, shape: tuple[int, ...], dtype: Any) -> Iterator[np.ndarray]:
    """A column on disk to be filled; who has the old one mapped keeps it."""
    with replacing(Path(directory) / f"{name}.npy") as aside:
        yield np.lib.format.open_memmap(aside, "w+", dtype, shape)


def read_npy(directory: str | Path) -> Transitions:
    """Maps what `write_npy` wrote: rows are read when they are used. NaNs are found by whoever uses them."""
    directory = Path(directory)
    about = read_json(directory / "about.json")
    if about != {"format": FORMAT}:
        raise FileError(
            directory / "about.json", f"is not of format {FORMAT!r}: found {short(about)}", field="format"
        )
    with as_file_errors(directory):
        data = Transitions(*(map_npy(directory / f"{name}.npy") for name in FIELDS))
        data.check_forms(at_least=0)
        return data


def _plain(data: Transitions) -> dict[str, np.ndarray]:
    arrays = {name: getattr(data, name) for name in FIELDS}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} has dtype {values.dtype}: only booleans, integers and floats are stored"
            )
    return arrays
