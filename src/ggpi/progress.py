"""Progress of long work on stderr: a bar on a terminal, lines at intervals in a log.

The first report may come late, after compilation, so a timer shows the bar.
Nested work, such as a training inside an experiment, is shown after the text of the outer work.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PATIENCE = 0.5
"""Seconds before a bar appears on a terminal."""
FIRST_LINE = 10.0
"""Seconds before the first line in a log."""
EVERY = 60.0
"""Seconds between two lines in a log."""
OFTEN = 0.2
"""Seconds between two lines that are passed on."""

Advance = Callable[[int, str], None]
"""advance(done, text): how much of the total is done, and a text to show beside it."""


@contextlib.contextmanager
def progress(total: int, title: str, text: str = "compiling…") -> Iterator[Advance]:
    """Yields `advance(done, text)`.

    Args:
        total: The value of `done` at the end.
        title: Shown before the bar.
        text: Shown until `advance` is called for the first time.
    """
    work = _Work(title, total, text)
    outer = _current.get()
    display = _Part(work, *outer) if outer else _Bar(work) if sys.stderr.isatty() else _Lines(work)
    token = _current.set((work, display))

    def advance(done: int, text: str) -> None:
        work.advance(done, text)
        display.refresh()

    with display.shown():
        try:
            yield advance
        finally:
            _current.reset(token)


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Shows a text on a terminal while the block runs, then erases it."""
    if not sys.stderr.isatty():
        yield
        return
    print(text, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"\r{' ' * len(text)}\r", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Shows no progress of the work in the block."""
    token = _current.set((_Work("", 0, ""), _Hidden()))
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def reported(tell: Callable[[str], None]) -> Iterator[None]:
    """Calls `tell` with the progress of the work in the block, in place of showing it."""
    work = _Work("", 0, "")
    token = _current.set((work, _Told(work, tell)))
    try:
        yield
    finally:
        _current.reset(token)


@dataclass
class _Work:
    """The state of some work."""

    title: str
    total: int
    text: str
    inner: str = ""
    """The text of nested work."""
    done: int = 0
    begin: float = field(default_factory=time.monotonic)
    first: tuple[int, float] | None = None
    """`done` and time of the first report, from which the time left is estimated, without compilation."""

    def advance(self, done: int, text: str) -> None:
        self.done, self.text, self.inner = done, text, ""
        self.first = self.first or (done, time.monotonic())

    @property
    def words(self) -> str:
        return ": ".join(filter(None, (self.text, self.inner)))

    @property
    def line(self) -> str:
        """Everything in one line, such as "fit: 500/1000, loss 1.2, 3 min left"."""
        parts = f"{self.done}/{self.total}", self.words, self._time()
        return f"{self.title}: {', '.join(filter(None, parts))}"

    def _time(self) -> str:
        now = time.monotonic()
        done, since = self.first or (self.done, now)
        if done < self.done < self.total:
            return f"{_duration((now - since) * (self.total - self.done) / (self.done - done))} left"
        return f"{'took ' * (self.done >= self.total)}{_duration(now - self.begin)}"


class _Bar:
    """A bar with the time left."""

    def __init__(self, work: _Work):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        text = TextColumn("{task.description}", markup=False)
        columns = TextColumn(work.title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text
        self._work, self._bar = work, Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task(work.words, total=work.total, completed=work.done)

    def refresh(self) -> None:
        self._bar.update(self._task, completed=self._work.done, description=self._work.words)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        try:
            with _after(PATIENCE, self._bar.start):
                yield
        finally:
            if self._bar.live.is_started:
                self._bar.stop()


class _Lines:
    """Lines in a log: the first after some seconds, then one each minute, and one at the end."""

    def __init__(self, work: _Work):
        self._work, self._printed, self._lock = work, 0.0, threading.Lock()

    def refresh(self) -> None:
        if self._printed and time.monotonic() - self._printed >= EVERY:
            self._print()

    def _print(self) -> None:
        with self._lock:
            self._printed = time.monotonic()
            print(self._work.line, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        with _after(FIRST_LINE, self._print):
            yield
        if self._printed:
            self._print()


class _Part:
    """Nested work: shown in the text of the outer work."""

    def __init__(self, work: _Work, outer: _Work, display: _Display):
        self._work, self._outer, self._display = work, outer, display

    def refresh(self) -> None:
        work = self._work
        said = f"{work.title} {work.done}/{work.total}"
        self._outer.inner = f"{said}, {work.words}" if work.words else said
        self._display.refresh()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        self.refresh()
        try:
            yield
        finally:
            self._outer.inner = ""


class _Told:
    """Lines that someone else shows."""

    def __init__(self, work: _Work, tell: Callable[[str], None]):
        self._work, self._tell, self._last = work, tell, -math.inf

    def refresh(self) -> None:
        if self._work.inner and time.monotonic() - self._last >= OFTEN:
            self._last = time.monotonic()
            self._tell(self._work.inner)


class _Hidden:
    """Shows nothing."""

    def refresh(self) -> None:
        pass


_Display = _Bar | _Lines | _Part | _Told | _Hidden
_current: contextvars.ContextVar[tuple[_Work, _Display] | None] = contextvars.ContextVar("work", default=None)


@contextlib.contextmanager
def _after(seconds: float, show: Callable[[], None]) -> Iterator[None]:
    """Calls `show` from another thread after some seconds, unless the block has ended."""
    lock, over = threading.Lock(), threading.Event()

    def unless_over() -> None:
        with lock:
            if not over.is_set():
                show()

    timer = threading.Timer(seconds, unless_over)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over.set()


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
