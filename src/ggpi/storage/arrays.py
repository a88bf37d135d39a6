"""Arrays and JSON on disk: safetensors and `about.json`, replaced atomically, never pickle.

`about.json` names the arrays' file and its digest and is replaced last, so the directory always holds either the old
pair or the new one, also after a power cut: a file is flushed to the disk before it is renamed. The first entry is a
digest of the rest of the file, so a changed byte in either file is detected. One process at a time saves to a
directory.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from ggpi.storage.errors import FileError
from ggpi.storage.locking import sole_writer
from ggpi.storage.reading import JSON_LIMIT, memory, parse_json, read_bytes, short
from ggpi.types import ArrayLike

FORMAT = "ggpi arrays 2"
FIRST = "ggpi arrays 1"
"""The format before `about.json` had a digest of itself; such directories stay loadable."""
NAME = re.compile(r"arrays-[0-9a-f]{12}\.safetensors")
PATIENCE = 60.0
"""Seconds that a save waits for another save to the same directory."""
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
"""Identifies this computer in the names of temporary files."""


def save_arrays(
    directory: str | Path, arrays: Mapping[str, ArrayLike], about: Mapping[str, object] | None = None
) -> None:
    """Writes named arrays and JSON metadata, atomically replacing an older save.

    Args:
        directory: Created if it does not exist.
        arrays: Booleans, integers or floats by name.
        about: Metadata that JSON can represent; arrays become lists.
    """
    directory = Path(directory)
    content = safetensors.numpy.save({name: _storable(name, value) for name, value in arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    name = f"arrays-{digest[:12]}.safetensors"
    index = {"format": FORMAT, "arrays": name, "sha256": digest, "about": dict(about or {})}
    text = signed(to_json(index))
    with sole_writer(directory, "saving", wait=PATIENCE):
        sweep(directory)
        with replacing(directory / name) as temporary:
            temporary.write_bytes(content)
        write_text(directory / "about.json", text)
        for old in directory.glob("arrays-*.safetensors"):
            if old.name != name:
                with contextlib.suppress(PermissionError):  # Windows keeps what a reader has open
                    old.unlink()


def load_arrays(directory: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns `(arrays, about)`; raises `FileError` if a file is missing, damaged or of another format.

    Needs no lock: if another process replaces the pair in the meantime, the new one is read.
    """
    directory = Path(directory)
    about = directory / "about.json"
    index = _index(about)
    path = directory / index["arrays"]
    try:
        content = read_bytes(path, memory())
    except (FileNotFoundError, FileError) as error:
        if _index(about) != index:  # another process has saved in the meantime
            return load_arrays(directory)
        if isinstance(error, FileError):
            raise
        raise FileError(about, f"there is no file {path.name} beside it", field="arrays") from error
    if hashlib.sha256(content).hexdigest() != index["sha256"]:
        raise FileError(path, f"is damaged: its {len(content)} bytes do not have the digest in about.json")
    return _arrays(path, content), index["about"]


def _index(path: Path) -> dict[str, Any]:
    """The content of `about.json`, with its digest, format and fields checked."""
    content = read_bytes(path, JSON_LIMIT)
    index = parse_json(content, path)
    if not isinstance(index, dict) or index.get("format") not in (FORMAT, FIRST):
        found = index.get("format") if isinstance(index, dict) else type(index).__name__
        raise FileError(path, f"is not of format {FORMAT!r}: found {short(found)!r}", field="format")
    is_first = index["format"] == FIRST
    fields = {"format", "arrays", "sha256", "about"} | (set() if is_first else {"digest"})
    if index.keys() != fields:
        raise FileError(path, f"expected the fields {', '.join(sorted(fields))}, got {short(sorted(index))}")
    if not is_first and content != signed(content.decode().partition("\n")[2].partition("\n")[2]).encode():
        raise FileError(path, "is damaged: its content does not match its digest", field="digest")
    if not isinstance(index["about"], dict):
        raise FileError(path, "expected an object", field="about")
    if not isinstance(index["arrays"], str) or not NAME.fullmatch(index["arrays"]):
        raise FileError(path, f"expected {NAME.pattern}, got {short(index['arrays'])!r}", field="arrays")
    return index


def signed(text: str) -> str:
    """The JSON text of an object with a first entry `digest`: the SHA-256 of everything after this entry."""
    rest = text.removeprefix("{\n")
    return f'{{\n "digest": "{hashlib.sha256(rest.encode()).hexdigest()}",\n{rest}'


def _arrays(path: Path, content: bytes) -> dict[str, np.ndarray]:
    try:
        arrays = safetensors.numpy.load(content)
    except Exception as error:  # safetensors has no common exception for dtypes that NumPy lacks
        raise FileError(path, f"cannot be read as safetensors: {short(error)}") from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf" or max(array.shape, default=0) >= 2**31:
            raise FileError(path, f"has dtype {array.dtype} and shape {array.shape}", field=short(name))
    return arrays


def to_json(value: object) -> str:
    """JSON text of plain values and arrays; NaN and infinity raise `ValueError`."""
    try:
        return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
    except ValueError as error:
        raise ValueError(f"not representable in JSON: {error}") from error


def write_json(path: str | Path, value: object) -> None:
    """Writes JSON, atomically replacing `path`."""
    write_text(path, to_json(value))


def write_text(path: str | Path, text: str) -> None:
    """Writes UTF-8 text, atomically replacing `path`."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_json(path: str | Path) -> Any:
    """Reads a JSON file; raises `FileError` with the position of the problem."""
    return parse_json(read_bytes(path, JSON_LIMIT), path)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yields a hidden temporary path beside `path`; renames it to `path` on success, deletes it on failure.

    The content is flushed to the disk before it is renamed.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{HOST}-{os.getpid()}-{secrets.token_hex(4)}.aside")
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
        temporary.replace(path)
        if sys.platform != "win32":
            _flush(path.parent, os.O_RDONLY)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(directory: str | Path, pattern: str = ".*.aside") -> None:
    """Deletes temporary files of processes of this computer that no longer exist."""
    for left in Path(directory).glob(pattern):
        match = re.fullmatch(rf"\..*\.{HOST}-(\d{{1,9}})-[0-9a-f]{{8}}\.aside", left.name)
        if match and not _is_alive(int(match[1])):
            left.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    """Whether the process exists; assumed on Windows, where `os.kill(pid, 0)` would terminate it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot flush directories
            raise
    finally:
        os.close(descriptor)


def _storable(name: str, value: ArrayLike) -> np.ndarray:
    """A native-endian, C-ordered array: safetensors would misread the raw bytes of anything else."""
    array = np.asarray(value, order="C")
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"array {name!r} has dtype {array.dtype}: only booleans, integers and floats are stored"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return value.tolist()
    raise ValueError(f"{type(value).__name__} {value!r}")
