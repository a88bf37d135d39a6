"""One writer at a time: a lock on a directory that is released when the process that holds it ends.

`DIR/.lock` is locked by the operating system (`flock`; on Windows, a byte beyond its end), which unlocks it however the
process ends. Its content describes the holder, for error messages. Readers need no lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

NAME = ".lock"
PAUSE = 0.02
"""Seconds between two attempts to take the lock."""
BUSY = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
FAR = 2**30
"""The byte that is locked on Windows, where other processes cannot read a locked byte."""

_own = threading.local()


class InUseError(OSError):
    """Another process or thread is writing to the directory; the message names it and since when."""


@contextlib.contextmanager
def sole_writer(directory: str | Path, doing: str, *, wait: float = 0.0) -> Iterator[None]:
    """Locks a directory for writing, or raises `InUseError`. A thread that holds the lock may take it again.

    Args:
        directory: Created if it does not exist.
        doing: What this process does, for the error message of other processes.
        wait: Seconds to wait for the lock.
    """
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(f"{directory} is a file, expected a directory")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory.resolve() / NAME
    held: set[tuple[int, Path]] = _own.__dict__.setdefault("held", set())
    mine = os.getpid(), path  # a forked child does not hold what its parent does
    if mine in held:
        yield
        return
    descriptor = _acquire(path, doing, wait)
    held.add(mine)
    try:
        yield
    finally:
        held.discard(mine)
        if os.getpid() == mine[0]:
            _release(path, descriptor)


def _acquire(path: Path, doing: str, wait: float) -> int:
    until = time.monotonic() + wait
    while (descriptor := _attempt(path)) is None:
        if time.monotonic() >= until:
            raise InUseError(
                f"{path.parent} is in use by {_holder(path)}; wait for it, or choose another directory"
            )
        time.sleep(PAUSE)
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    about = {"pid": os.getpid(), "host": platform.node(), "since": since, "doing": doing}
    os.ftruncate(descriptor, 0)
    os.write(descriptor, json.dumps(about).encode())
    return descriptor


def _attempt(path: Path) -> int | None:
    """The descriptor of the locked file, or None while another process holds the lock.

    A holder deletes the file before it unlocks it, so a lock on a deleted file does not count.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if _is_locked(descriptor, path) and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except FileNotFoundError:
        pass
    os.close(descriptor)
    return None


def _is_locked(descriptor: int, path: Path) -> bool:
    """Whether the lock was free and is now ours."""
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in BUSY:
            return False
        warnings.warn(
            f"the file system of {path.parent} has no locks ({error.strerror}): only one process may write to it",
            stacklevel=6,
        )
    return True


def _release(path: Path, descriptor: int) -> None:
    if sys.platform != "win32":
        path.unlink(missing_ok=True)
    os.close(descriptor)
    if sys.platform == "win32":
        with contextlib.suppress(OSError):  # another process has already opened it
            path.unlink()


def _holder(path: Path) -> str:
    """Describes the process that holds the lock."""
    try:
        about = json.loads(path.read_text())
        host = "" if about["host"] == platform.node() else f" on {about['host']}"
        which = (
            "this process" if (about["pid"], host) == (os.getpid(), "") else f"process {about['pid']}{host}"
        )
        return f"{which} ({about['doing']}, since {about['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
