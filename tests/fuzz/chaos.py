"""Kills workers every second or so during maps of 100 tasks: all results are the same as without kills.

    python tests/fuzz/chaos.py --rounds 20 --on processes ray

Each round maps 100 tasks over two workers while a thread kills one of them (SIGKILL) at random moments, and compares
the results with those of this process.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from ggpi import cluster
from ggpi.progress import silenced

TASKS, SECONDS, PAUSE = 100, 0.05, 0.7
"""Tasks of a round, seconds of each, and the mean pause between two kills."""
RETRIES = 50
"""Kills hit tasks at random: the same task this often has a probability of practically 0."""


def task(folder: Path, number: int) -> str:
    """A number that depends on the task alone; tells the killer which process it is in."""
    (folder / str(os.getpid())).touch()
    time.sleep(SECONDS)
    return hashlib.sha256(str(number).encode()).hexdigest()


class Killer(threading.Thread):
    """Kills one of the processes that have left their number in a folder, again and again."""

    def __init__(self, folder: Path, seed: int):
        super().__init__(daemon=True)
        self.folder, self.rng, self.over, self.kills = folder, random.Random(seed), threading.Event(), 0

    def run(self) -> None:
        while not self.over.wait(self.rng.uniform(0, 2 * PAUSE)):
            workers = sorted(self.folder.iterdir())
            if workers:
                chosen = self.rng.choice(workers)
                chosen.unlink()
                try:
                    os.kill(int(chosen.name), signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    pass  # the executor has ended it


def chaos(executor: cluster.Executor, seed: int, expected: list[str]) -> int:
    """One round; returns the number of kills."""
    with tempfile.TemporaryDirectory() as folder:
        killer = Killer(Path(folder), seed)
        killer.start()
        found = executor.map(partial(task, Path(folder)), range(TASKS))
        killer.over.set()
        killer.join()
    if found != expected:
        raise SystemExit(f"seed {seed}: results differ after {killer.kills} kills")
    return killer.kills


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns the exit code."""
    parser = argparse.ArgumentParser(description="Kills workers of executors.")
    parser.add_argument("--rounds", type=int, default=20, help="maps of each executor (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no more rounds after this time"
    )
    parser.add_argument("--on", nargs="+", choices=["processes", "ray"], default=["processes"])
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments")
    options, _ = parser.parse_known_args(arguments)
    begin = time.monotonic()
    expected = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(TASKS)]
    for kind in options.on:
        start, kills = {"processes": partial(cluster.processes, 2), "ray": cluster.ray}[kind], []
        with silenced(), start(retries=RETRIES) as executor:
            while len(kills) < options.rounds and (not kills or time.monotonic() - begin < options.seconds):
                kills.append(chaos(executor, 1000 * options.seed + len(kills), expected))
        print(
            f"{kind:10} {len(kills)} rounds of {TASKS} tasks, {sum(kills)} kills, all results the same",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
