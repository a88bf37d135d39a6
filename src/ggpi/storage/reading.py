"""Reads untrusted files within bounds; a problem with the content raises `FileError`.

read_bytes    a regular file, up to a number of bytes
parse_json    JSON without NaN, infinity, repeated keys or deep nesting
memory        the machine's memory, a bound for any file
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import reprlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ggpi.storage.errors import FileError

JSON_LIMIT = 2**25
"""Largest JSON file in bytes; parsed, it may take twenty times as much memory."""


def memory() -> int:
    """The memory of this machine in bytes; 64 GB where it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**36


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; pipes, devices and directories raise `FileError`."""
    size = file_size(path)
    if size > limit:
        raise FileError(path, f"has {size} bytes, expected at most {limit}")
    return Path(path).read_bytes()


def file_size(path: str | Path) -> int:
    """The size of a regular file in bytes; pipes and devices, which may never end, raise `FileError`."""
    found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileError(path, "expected a regular file")
    return found.st_size


def read_text(path: str | Path, limit: int = JSON_LIMIT) -> str:
    """The UTF-8 text of a regular file."""
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8 text: {short(error)}") from error


def parse_json(content: bytes, path: str | Path) -> Any:
    """Parses JSON; raises `FileError` with the position of the problem."""
    try:
        return json.loads(
            content.decode("utf-8"), parse_float=_finite, parse_constant=_finite, object_pairs_hook=_distinct
        )
    except RecursionError as error:
        raise FileError(path, "damaged or not JSON: nested too deeply") from error
    except ValueError as error:
        raise FileError(path, f"damaged or not JSON: {short(error)}") from error


@contextlib.contextmanager
def as_file_errors(path: str | Path, field: str | None = None) -> Iterator[None]:
    """Turns exceptions inside the block into `FileError`; missing files and full disks keep their own."""
    try:
        yield
    except (FileError, FileNotFoundError, PermissionError, ImportError, Warning):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        problem = f"cannot be read: {short(error) or type(error).__name__}"
        raise FileError(path, problem, field=field) from error


def short(value: object, length: int = 200) -> str:
    """`str(value)`, cut to a length for an error message."""
    text = str(value)
    return text if len(text) <= length else f"{text[:length]}…"


def abbreviate(value: object) -> str:
    """`repr` of untrusted content: short and fast, whatever its size and depth."""
    return _BRIEF.repr(value)[:400]


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


_BRIEF = reprlib.Repr()
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother, _BRIEF.maxlong = 3, 200, 200, 40
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxdict = 8
