"""Reads members of an untrusted zip within a limit: headers may be wrong, and a small zip can expand to gigabytes.

Only requested members are read, in pieces. The list of members, which is read whole, is limited too.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

PIECE = 2**20
"""Bytes read at once, and so the longest list of members: about 10,000."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """The members of a zip by name; `path` and `field` name it in errors."""

    def __init__(self, file: io.RawIOBase | io.BufferedIOBase, path: str | Path, field: str | None = None):
        self._path, self._field = path, field
        with damaged(path, field, "not a zip file, or a damaged one"):
            self._zip = zipfile.ZipFile(_SmallReads(file))
        self.names = self._zip.namelist()
        (name, count), *_ = Counter(self.names).most_common(1) or [("", 0)]
        if count > 1:
            raise FileError(path, f"the zip has {count} members called {abbreviate(name)}", field=field)

    def read(self, name: str, most: int) -> bytes:
        """The content of a member of at most `most` bytes."""
        field = f"{self._field}: {name[:200]}" if self._field else name
        if name not in self.names:
            there = abbreviate(sorted(self.names))
            raise FileError(self._path, f"the zip has no such member; its members are {there}", field=field)
        info = self._zip.getinfo(name)
        if info.flag_bits & 1 or info.compress_type not in METHODS:
            raise FileError(self._path, "is encrypted, or not compressed with deflate", field=field)
        content = io.BytesIO()
        with damaged(self._path, field, "damaged"), self._zip.open(info) as member:
            while content.tell() <= most and (piece := member.read(PIECE)):
                content.write(piece)
        if content.tell() > most:
            raise FileError(self._path, f"is larger than {most} bytes, the limit", field=field)
        return content.getvalue()


@contextlib.contextmanager
def damaged(path: str | Path, field: str | None, problem: str) -> Iterator[None]:
    """Turns any exception inside the block into a `FileError`."""
    try:
        yield
    except (FileError, MemoryError):
        raise
    except Exception as error:
        what = f"{problem} ({type(error).__name__}: {str(error)[:300]})"
        raise FileError(path, what, field=field) from error


class _SmallReads(io.BufferedReader):
    """A file that returns at most PIECE bytes at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        limited = PIECE + 1 if size is None or size < 0 else min(size, PIECE + 1)
        content = super().read(limited)
        if len(content) > PIECE:
            raise ValueError(f"the list of members is longer than {PIECE} bytes")
        return content
