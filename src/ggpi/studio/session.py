"""A session: one page, and a thread that plans for it and ends with it.

The thread takes all waiting messages at once, so that of many strokes of a brush only the last is planned for. As many
sessions plan at the same time as there are cores; the others wait for their turn.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial

from ggpi.studio import cores
from ggpi.studio.catalogue import Catalogue
from ggpi.studio.outbox import Outbox
from ggpi.studio.protocol import (
    Change,
    Diagnose,
    Explain,
    Message,
    Open,
    Pause,
    Play,
    Put,
    Reset,
    Step,
)
from ggpi.studio.stage import Stage

PLANNER = "studio planner"
"""The name of the threads."""
EXPECTED = (ValueError, TypeError, ArithmeticError, OSError, ImportError, IndexError, KeyError)
"""Errors of the user's; others are also printed, as they are ours."""


class Session:
    """The conversation with one page."""

    def __init__(self, catalogue: Catalogue, outbox: Outbox):
        self.outbox, self.stage = outbox, Stage(catalogue, outbox)
        self.inbox: queue.Queue[Message | None] = queue.Queue(256)
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self.run, name=PLANNER, daemon=True)

    def take(self, message: Message) -> bool:
        """A message of the page; False if too many are waiting."""
        try:
            self.inbox.put_nowait(message)
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Ends the thread after its current decision."""
        self.closed.set()
        if not self.inbox.full():
            self.inbox.put_nowait(None)  # wakes it

    def run(self) -> None:
        """The planner's thread."""
        while not self.closed.is_set():
            for message in self.waiting():
                self.work(partial(self.apply, message), self.stage.complain)
            if self.stage.is_busy:
                self.work(self.stage.plan_and_move, self.stage.stop)

    def work(self, task: Callable[[], None], say: Callable[[str], None]) -> None:
        """Does something for the page if it is still there; the page shows an error, and the session continues."""
        try:
            cores.work(task, self.closed.is_set)
        except Exception as error:
            if not isinstance(error, EXPECTED):
                traceback.print_exc()
            say(" ".join(str(error).split())[:600] or type(error).__name__)

    def waiting(self) -> list[Message]:
        """All messages, after a wait for the first one if there is nothing to do."""
        wait = max(self.stage.due - time.monotonic(), 0.0) if self.stage.is_busy else cores.PATIENCE
        wait = 0.0 if self.stage.is_stale else wait
        found: list[Message] = []
        try:
            first = self.inbox.get(timeout=wait) if wait else self.inbox.get_nowait()
            while not self.closed.is_set():
                if first is not None:
                    found.append(first)
                first = self.inbox.get_nowait()
        except queue.Empty:
            pass
        return found

    def apply(self, message: Message) -> None:
        """What the page asked for."""
        stage = self.stage
        match message:
            case Open(name):
                stage.open(name)
            case Change():
                stage.change(message)
            case Play():
                stage.is_playing, stage.due = True, time.monotonic()
            case Pause():
                stage.pause()
            case Step():
                stage.step()
            case Reset():
                stage.begin(stage.seed + 1)
            case Put(x, y):
                stage.put(x, y)
            case Explain(agent, t):
                stage.explain(agent, t)
            case Diagnose():
                stage.diagnose()
