"""Who may plan: as many threads at the same time as there are cores; the others wait for their turn."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

FREE = threading.BoundedSemaphore(max(os.cpu_count() or 1, 1))
PATIENCE = 0.25
"""Seconds that a thread waits before it looks whether it is still needed."""
_mine = threading.local()


class Over(Exception):
    """Nobody needs the task of this thread any more."""


def work(task: Callable[[], None], is_over: Callable[[], bool]) -> None:
    """Runs a task on a core of its own; no further than to its next wait, once the task is over."""
    _mine.is_over, _mine.has_core = is_over, False
    with suppress(Over):
        try:
            if is_over():
                return
            _enter()
            task()
        finally:
            _leave()
            _mine.is_over = _never


@contextmanager
def in_turn(lock: threading.Lock) -> Iterator[None]:
    """Holds a lock; who waits for it leaves the core to others."""
    if not lock.acquire(blocking=False):
        had_core = _leave()
        _wait(lock)
        try:
            if had_core:
                _enter()
        except Over:
            lock.release()
            raise
    try:
        yield
    finally:
        lock.release()


def _enter() -> None:
    _wait(FREE)
    _mine.has_core = True


def _leave() -> bool:
    """Gives the core of this thread back; whether it had one."""
    had_core = getattr(_mine, "has_core", False)
    _mine.has_core = False
    if had_core:
        FREE.release()
    return had_core


def _wait(thing: threading.Lock | threading.Semaphore) -> None:
    while not thing.acquire(timeout=PATIENCE):
        if getattr(_mine, "is_over", _never)():
            raise Over


def _never() -> bool:
    return False
