"""Frames on their way to one page: bounded, so that a slow page drops frames and slows no one else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

Frame = str | bytes
MOST = 64
"""Messages that wait at most; a page that leaves more unread is disconnected."""


class Outbox:
    """Filled by a planner's thread, emptied by the server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_frame: Callable[[Frame], None] | None = None):
        self._loop, self._on_frame = loop, on_frame
        self._frames: dict[object, Frame] = {}
        self._lock, self._filled, self._count = threading.Lock(), asyncio.Event(), 0
        self.is_full = False
        self.dropped = 0

    def put(self, frame: Frame, kind: str | None = None) -> None:
        """Adds a frame; one with a kind replaces the waiting one of this kind."""
        with self._lock:
            self._count += 1
            if kind is not None and self._frames.pop(kind, None) is not None:
                self.dropped += 1
            if len(self._frames) >= MOST:
                self.is_full = True
                return
            self._frames[self._count if kind is None else kind] = frame
        if self._on_frame is not None:
            self._on_frame(frame)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)

    async def get(self) -> Frame:
        """The next frame."""
        while True:
            with self._lock:
                if self._frames:
                    return self._frames.pop(next(iter(self._frames)))
                self._filled.clear()
            await self._filled.wait()
