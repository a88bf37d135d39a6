"""Arrays and JSON on disk: plain files, written aside and then renamed, never pickle.

A saved directory holds `about.json` and one `arrays-….safetensors`. The JSON names the arrays' file and its
digest and is replaced last, so at every moment the directory holds either the old pair or the new one.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

FORMAT = "ggpi arrays 1"


def save(directory: str | Path, arrays: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> None:
    """Writes named arrays and JSON-able facts about them, replacing an older save at one stroke.

    Beyond the paper: storage.
    """
    directory = Path(directory)
    content = safetensors.numpy.save({name: _storable(name, value) for name, value in arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    name = f"arrays-{digest[:12]}.safetensors"
    index = {"format": FORMAT, "arrays": name, "sha256": digest, "about": dict(about or {})}
    text = to_json(index)
    directory.mkdir(parents=True, exist_ok=True)
    with replacing(directory / name) as aside:
        aside.write_bytes(content)
    write_text(directory / "about.json", text)
    for old in directory.glob("arrays-*.safetensors"):
        if old.name != name:
            old.unlink()


def load(directory: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Reads back `(arrays, about)`; says which file is missing, damaged or not ours.

    Beyond the paper: storage.
    """
    directory = Path(directory)
    index = read_json(directory / "about.json")
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        found = index.get("format") if isinstance(index, dict) else type(index).__name__
        raise ValueError(f"{directory / 'about.json'} is not of format {FORMAT!r}: found {found!r}")
    path = directory / Path(index["arrays"]).name
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != index["sha256"]:
        raise ValueError(f"{path} is damaged: {len(content)} bytes whose digest is not the one in about.json")
    try:
        return safetensors.numpy.load(content), index["about"]
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} cannot be read as safetensors: {error}") from error


def to_json(value: Any) -> str:
    """JSON text of plain values and arrays; NaN and infinity are refused.

    Beyond the paper: storage.
    """
    try:
        return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
    except ValueError as error:
        raise ValueError(f"not representable in JSON: {error}") from error


def write_json(path: str | Path, value: Any) -> None:
    """Writes JSON aside, then renames it to `path`.

    Beyond the paper: storage.
    """
    write_text(path, to_json(value))


def write_text(path: str | Path, text: str) -> None:
    """Writes UTF-8 text aside, then renames it to `path`.

    Beyond the paper: storage.
    """
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Reads a JSON file; the error names the file and the place.

    Beyond the paper: storage.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged or not JSON: {error}") from error


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Gives a hidden path beside `path` to write to; renames it to `path` on success, deletes it on failure.

    Beyond the paper: storage.
    """
    path = Path(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.aside")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _storable(name: str, value: Any) -> np.ndarray:
    """A native-endian, C-ordered array: safetensors would misread the raw bytes of anything else."""
    array = np.asarray(value, order="C")
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"array {name!r} has dtype {array.dtype}: only booleans, integers and floats are stored"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError(f"{type(value).__name__} {value!r}")
