"""What a run of the tests took: its time, and the largest memory of all its processes together.

Memory is the proportional set size from /proc, sampled each second by the process that hands out the tests;
elsewhere than on Linux only the time is told.
"""

import os
import threading
import time
from pathlib import Path

import pytest

PROC = Path("/proc")
EVERY = 1.0


class Watch(threading.Thread):
    """Samples the memory of this process and of all its descendants until it is stopped."""

    def __init__(self) -> None:
        super().__init__(name="memory of the tests", daemon=True)
        self.begin, self.peak, self.count = time.monotonic(), 0, 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(EVERY):
            sizes = [memory(pid) for pid in descendants(os.getpid())]
            if sum(sizes) > self.peak:
                self.peak, self.count = sum(sizes), len(sizes)

    def __str__(self) -> str:
        took = f"{time.monotonic() - self.begin:.0f} s"
        if not self.peak:
            return took
        return f"peak memory {self.peak / 1e9:.2f} GB over {self.count} processes, {took}"


def descendants(root: int) -> list[int]:
    """`root` and the processes that it started, and those that they started."""
    children: dict[int, list[int]] = {}
    for path in PROC.glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def memory(pid: int) -> int:
    """Bytes of a process; pages that several share are split among them."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


WATCH = pytest.StashKey[Watch]()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # a worker of xdist, whose memory the controller samples
        return
    config.stash[WATCH] = Watch()
    if (PROC / "self" / "smaps_rollup").exists():
        config.stash[WATCH].start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    config.stash[WATCH].done.set()
    terminalreporter.write_line(str(config.stash[WATCH]))
