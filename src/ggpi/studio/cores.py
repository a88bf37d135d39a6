"""Who may plan: as many threads at a time as there are cores; the others wait in the order in which they came."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PATIENCE = 0.25
"""Seconds that a thread waits before it looks whether it is still needed."""
_mine = threading.local()


class Over(Exception):
    """Nobody needs the task of this thread any more."""


class Turns:
    """Cores for threads in the order in which they came: with `threading.Semaphore`, busy threads jump the queue."""

    def __init__(self, cores: int):
        self._free, self._lock, self._queue = cores, threading.Lock(), deque[threading.Event]()

    def take(self) -> None:
        """Waits for a core, no longer than until the task is over."""
        mine = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            self._queue.append(mine)
        while not mine.wait(PATIENCE):
            if _is_over():
                with self._lock:
                    if not mine.is_set():
                        self._queue.remove(mine)
                        raise Over

    def give(self) -> None:
        """Hands a core to the thread that has waited longest."""
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._free += 1


FREE = Turns(max(os.cpu_count() or 1, 1))


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
    FREE.take()
    _mine.has_core = True


def _leave() -> bool:
    """Gives the core of this thread back; whether it had one."""
    had_core = getattr(_mine, "has_core", False)
    _mine.has_core = False
    if had_core:
        FREE.give()
    return had_core


def _wait(lock: threading.Lock) -> None:
    while not lock.acquire(timeout=PATIENCE):
        if _is_over():
            raise Over


def _is_over() -> bool:
    return getattr(_mine, "is_over", _never)()


def _never() -> bool:
    return False
