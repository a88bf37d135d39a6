"""Reading files from elsewhere: what is wrong with one becomes a `FileError`, before much memory is spent.

read_bytes    a regular file of at most so many bytes
parse_json    JSON of at most 32 MB, without NaN, infinity, repeated keys or endless nesting
memory        how many bytes a file may fill: the machine's memory
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
"""Bytes of a JSON file; a million empty lists are 3 MB of text and 60 MB of memory."""


def memory() -> int:
    """The bytes of this machine's memory, a bound of what any file may take; 64 GB where it cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**36


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The content of a regular file; anything else (a pipe, a device, a directory), and more bytes, is an error."""
    size = file_size(path)
    if size > limit:
        raise FileError(path, f"has {size} bytes, expected at most {limit}")
    return Path(path).read_bytes()


def file_size(path: str | Path) -> int:
    """The bytes of a regular file; pipes and devices may never end."""
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
    """The value of JSON text; the error names the file and the place."""
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
    """Whatever goes wrong inside is the file's fault, and becomes a `FileError`; only a missing file stays one."""
    try:
        yield
    except (FileError, FileNotFoundError, PermissionError, ImportError, Warning):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        problem = f"cannot be read: {short(error) or type(error).__name__}"
        raise FileError(path, problem, field=field) from error


def short(value: Any, length: int = 200) -> str:
    """At most so many characters of what something is called in an error message."""
    text = str(value)
    return text if len(text) <= length else f"{text[:length]}…"


def abbreviate(value: Any) -> str:
    """`repr` of something that a file holds: a few lines at most and quick, whatever its size and depth."""
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
