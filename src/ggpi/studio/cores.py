"""Who may plan: as many threads at the same time as there are cores; the others wait for their turn."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FREE = threading.BoundedSemaphore(max(os.cpu_count() or 1, 1))
PATIENCE = 0.25
"""Seconds that a thread waits before it looks whether it is still needed."""
_mine = threading.local()


def work(task: Callable[[], None], is_over: Callable[[], bool]) -> None:
    """Runs a task on a core of its own; not at all if the task is over before there is one."""
    while not is_over():
        if FREE.acquire(timeout=PATIENCE):
            _mine.has_core = True
            try:
                task()
            finally:
                _mine.has_core = False
                FREE.release()
            return


@contextmanager
def in_turn(lock: threading.Lock) -> Iterator[None]:
    """Holds a lock; who waits for it leaves the core to others."""
    if not lock.acquire(blocking=False):
        if getattr(_mine, "has_core", False):
            FREE.release()
            lock.acquire()
            FREE.acquire()
        else:
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
