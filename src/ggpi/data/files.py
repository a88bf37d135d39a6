"""Transitions in one `.npz` file: arrays only, never pickle, replaced at one stroke."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ggpi.data.buffer import FIELDS
from ggpi.data.transitions import Transitions
from ggpi.io import replacing

FORMAT = "ggpi transitions 1"


def write_npz(path: str | Path, data: Transitions) -> None:
    """Writes transitions, compressed.

    Beyond the paper: data outlive the process that collected them
    """
    arrays = {name: getattr(data, name) for name in FIELDS}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} has dtype {values.dtype}: only booleans, integers and floats are stored"
            )
    with replacing(path) as aside, aside.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, format=np.array(FORMAT), **arrays)


def read_npz(path: str | Path) -> Transitions:
    """Reads what `write_npz` wrote; says what is wrong with a damaged or foreign file.

    Beyond the paper: data outlive the process that collected them
    """
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if "format" not in file or str(file["format"]) != FORMAT:
                raise ValueError(
                    f"it holds {', '.join(file.files) or 'nothing'}, and is not of format {FORMAT!r}"
                )
            return Transitions(*(file[name] for name in FIELDS))
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as transitions: {error}") from error
