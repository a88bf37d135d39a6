"""A progress bar for long work: on a terminal only, and only once it has taken two seconds."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

PATIENCE = 2.0
"""Seconds before the bar appears."""

Advance = Callable[[int, str], None]
"""advance(done, text): so much of the total is done, and what to say of it."""


@contextlib.contextmanager
def progress(total: int, title: str) -> Iterator[Advance]:
    """Yields `advance(done, text)`; shows a bar with the rate and the time left on stderr.

    Beyond the paper: kindness to whoever waits
    """
    if not sys.stderr.isatty():
        yield lambda done, text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task("", total=total)
    begin = time.monotonic()

    def advance(done: int, text: str) -> None:
        if time.monotonic() - begin > PATIENCE:
            bar.start()
        bar.update(task, completed=done, description=text)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()
