"""Our own files of transitions: arrays only, never pickle.

    one `.npz` file           compressed, replaced at one stroke, read into memory
    a directory of `.npy`     one file per column, mapped instead of read: for data larger than memory

A directory is whole when its `about.json` is there, which is written last.
"""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ggpi import io
from ggpi.data.buffer import FIELDS
from ggpi.data.transitions import Transitions

FORMAT = "ggpi transitions 1"
WRONG = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)
"""What NumPy and we say of files that are damaged or not ours."""


def write_npz(path: str | Path, data: Transitions) -> None:
    """Writes transitions, compressed.

    Beyond the paper: data outlive the process that collected them
    """
    arrays = _plain(data)
    with io.replacing(path) as aside, aside.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, format=np.array(FORMAT), **arrays)


def read_npz(path: str | Path) -> Transitions:
    """Reads what `write_npz` wrote; says what is wrong with a damaged or foreign file.

    Beyond the paper: data outlive the process that collected them
    """
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if "format" not in file or str(file["format"]) != FORMAT:
                raise ValueError(
                    f"it holds {', '.join(file.files) or 'nothing'}, and is not of format {FORMAT!r}; "
                    "ggpi.data.read_flat reads what others wrote"
                )
            data = Transitions(*(file[name] for name in FIELDS))
            data.check(at_least=0)
            return data
    except WRONG as error:
        raise ValueError(f"{path} cannot be read as transitions: {error}") from error


def write_npy(directory: str | Path, data: Transitions) -> None:
    """Writes transitions as a directory of columns, to be mapped.

    Beyond the paper: data may be larger than memory
    """
    arrays = _plain(data)
    begin_npy(directory)
    for name, values in arrays.items():
        with open_npy(directory, name, values.shape, values.dtype) as column:
            column[...] = values
    finish_npy(directory)


def begin_npy(directory: str | Path) -> None:
    """An empty directory for columns, or one whose old columns no longer count.

    Beyond the paper: data may be larger than memory
    """
    Path(directory).mkdir(parents=True, exist_ok=True)
    (Path(directory) / "about.json").unlink(missing_ok=True)


@contextlib.contextmanager
def open_npy(directory: str | Path, name: str, shape: tuple[int, ...], dtype: Any) -> Iterator[np.ndarray]:
    """A column on disk to be filled; who has the old one mapped keeps it.

    Beyond the paper: data may be larger than memory
    """
    with io.replacing(Path(directory) / f"{name}.npy") as aside:
        yield np.lib.format.open_memmap(aside, "w+", dtype, shape)


def finish_npy(directory: str | Path) -> None:
    """Says that all columns of a directory are written.

    Beyond the paper: data may be larger than memory
    """
    io.write_json(Path(directory) / "about.json", {"format": FORMAT})


def read_npy(directory: str | Path) -> Transitions:
    """Maps what `write_npy` wrote: rows are read when they are used. NaNs are found by whoever uses them.

    Beyond the paper: data may be larger than memory
    """
    directory = Path(directory)
    about = io.read_json(directory / "about.json")
    if about != {"format": FORMAT}:
        raise ValueError(f"{directory / 'about.json'} is not of format {FORMAT!r}: found {about!r}")
    return Transitions(*(map_npy(directory / f"{name}.npy") for name in FIELDS))


def map_npy(path: Path) -> np.ndarray:
    """One column, mapped.

    Beyond the paper: data may be larger than memory
    """
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except WRONG as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _plain(data: Transitions) -> dict[str, np.ndarray]:
    arrays = {name: getattr(data, name) for name in FIELDS}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} has dtype {values.dtype}: only booleans, integers and floats are stored"
            )
    return arrays
