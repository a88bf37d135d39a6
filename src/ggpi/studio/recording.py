"""Recordings: every frame that was sent to a page, with its time, one JSON object a line."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ggpi.studio.outbox import Frame
from ggpi.studio.protocol import VERSION

HEAD = {"format": "ggpi studio recording", "version": VERSION}


class Recording:
    """A file that grows by one line for each frame; every page has a number."""

    def __init__(self, path: Path):
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._lock, self._begun = threading.Lock(), time.monotonic()
        self._write(HEAD)

    def add(self, page: int, frame: Frame) -> None:
        """One frame of a page."""
        held = {"text": frame} if isinstance(frame, str) else {"data": base64.b64encode(frame).decode()}
        self._write({"time": round(time.monotonic() - self._begun, 3), "page": page, **held})

    def _write(self, line: dict[str, object]) -> None:
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def read_recording(path: Path) -> list[tuple[float, Frame]]:
    """The frames of the first page of a recording, with their times; says what is wrong with another file."""
    with path.open(encoding="utf-8") as file:
        if not _is_recording(file):
            raise ValueError(f"{path} is not a recording of ggpi studio --record, version {VERSION}")
        return list(_frames(path, file))


def _is_recording(file: IO[str]) -> bool:
    """Whether the first line says so."""
    try:
        return json.loads(next(file, "")) == HEAD
    except ValueError:
        return False


def _frames(path: Path, file: IO[str]) -> Iterator[tuple[float, Frame]]:
    page = None
    for number, line in enumerate(file, start=2):
        if not line.endswith("\n"):
            return  # the studio was stopped while it wrote
        try:
            held = json.loads(line)
            page = held["page"] if page is None else page
            if held["page"] == page:
                yield float(held["time"]), _frame(held)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"line {number} of {path} is damaged") from error


def _frame(held: dict[str, Any]) -> Frame:
    if "data" in held:
        return base64.b64decode(held["data"], validate=True)
    if not isinstance(held["text"], str):
        raise TypeError("text is not text")
    return held["text"]
