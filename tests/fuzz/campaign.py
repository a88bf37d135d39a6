"""Runs a fuzz campaign: many cases from seeds, each of which has to end in a right answer or a documented error.

    def make(rng, folder): ...      # one case from a NumPy generator; files go into the empty `folder`
    def check(case): ...            # returns a word for the outcome; asserts what a right answer has to satisfy

    if __name__ == "__main__":
        sys.exit(campaign.main(Campaign("name", make, check)))

Cases run in worker processes, so one that hangs, runs out of memory or crashes the interpreter is a failure like
any other, reported with its number: `--only NUMBER` runs it alone, with the traceback.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.progress import progress
from ggpi.storage.errors import FileError

MEMORY = 2**30
"""Bytes that one case may allocate."""
SECONDS = 5
"""Processor time of one case. A case that waits for something is killed after PATIENCE seconds."""
PATIENCE = 60
START = 300
"""Seconds that a worker may take to import and set up."""
RECYCLED = 2 * 2**30
"""A worker that has grown to this many bytes over the cases is replaced by a fresh one."""
MEMORY_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where cases write their files: ten times as fast as a disk."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class Campaign:
    """What to run: `make(rng, folder)` gives a case, `check(case)` says how it ended."""

    name: str
    make: Callable[[np.random.Generator, Path], Any]
    check: Callable[[Any], str]
    documented: tuple[type[BaseException], ...] = (FileError,)
    """Errors that a case may end in."""
    setup: Callable[[], None] = lambda: None
    """Called once in each worker, e.g. to compile what all cases use: it counts for no case."""

    def case(self, number: int, seed: int) -> str:
        """Runs one case and returns its outcome; undocumented errors are raised."""
        with tempfile.TemporaryDirectory() as folder:
            case = self.make(np.random.default_rng([seed, number]), Path(folder))
            try:
                return self.check(case)
            except self.documented as error:
                return type(error).__name__


class TooSlowError(BaseException):
    """Not an Exception, so that no loader's boundary catches it."""


def main(campaign: Campaign, arguments: list[str] | None = None) -> int:
    """The command line of a campaign; returns the exit code."""
    parser = argparse.ArgumentParser(description=f"Fuzz campaign {campaign.name!r}.")
    parser.add_argument("--cases", type=int, default=100_000, help="how many (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop so long after start-up")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run this case here, with its traceback")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the summary here as well")
    parser.add_argument("--from", dest="first", type=int, help=argparse.SUPPRESS)  # in a worker
    options = parser.parse_args(arguments)
    if options.first is not None:
        return _worker(campaign, options)
    if options.only is not None:
        campaign.setup()
        print(f"case {options.only}: {campaign.case(options.only, options.seed)}")
        return 0
    return _Run(campaign, options).run()


# In a worker.


def _worker(campaign: Campaign, options: argparse.Namespace) -> int:
    """Runs every `--workers`-th case from `--from` on, one line of JSON for each."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints is no report
    faulthandler.enable()
    signal.signal(signal.SIGPROF, _too_slow)
    campaign.setup()
    print("ready", file=report)
    for number in range(options.first, options.cases, options.workers):
        begin, before = time.perf_counter(), _limit_memory()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            outcome, failure = campaign.case(number, options.seed), None
        except (Exception, TooSlowError) as error:
            outcome, failure = _group(error), "".join(traceback.format_exception(error))[-4000:]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        took, peak = time.perf_counter() - begin, _peak_memory()
        line = {"case": number, "outcome": outcome, "failure": failure, "took": took, "grew": peak - before}
        print(json.dumps(line), file=report)
        if _peak_memory() > RECYCLED:
            break
    return 0


def _too_slow(*_: Any) -> None:
    raise TooSlowError(f"more than {SECONDS} s of processor time")


def _group(error: BaseException) -> str:
    """The type of an error and where it came from: the innermost frame, and the innermost one of the library."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.name != _too_slow.__name__]
    ours = [frame for frame in frames if f"{os.sep}ggpi{os.sep}" in frame.filename]
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in (*ours[-1:], *frames[-1:])]
    return f"{type(error).__name__} at {' < '.join(dict.fromkeys(reversed(places)))}"


def _limit_memory() -> int:
    """Lets the process allocate MEMORY more bytes, forgets its peak, and returns what is resident now."""
    if not Path("/proc/self/statm").exists():
        return 0
    import resource

    fields = Path("/proc/self/statm").read_text().split()
    page = resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (int(fields[5]) * page + MEMORY, resource.RLIM_INFINITY))
    Path("/proc/self/clear_refs").write_text("5")
    return int(fields[1]) * page


def _peak_memory() -> int:
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 if found else 0


# In the main process.


def _end(worker: subprocess.Popen[bytes]) -> str:
    """What went wrong with a worker; one that still runs is stopped, and faulthandler prints where it was."""
    if (code := worker.poll()) is not None:
        return f"crash with exit code {code}" if code else ""
    worker.send_signal(signal.SIGABRT)
    try:
        worker.wait(timeout=5)
    except subprocess.TimeoutExpired:
        worker.kill()
    return "hang"


class _Run:
    """All workers of one run, and what they reported."""

    def __init__(self, campaign: Campaign, options: argparse.Namespace):
        self.campaign, self.options = campaign, options
        self.end = float("inf")  # until a worker is ready
        self.done, self.outcomes = 0, collections.Counter()
        self.failures: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
        self.slowest = self.largest = {"case": None, "took": 0.0, "grew": 0}

    def run(self) -> int:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as scratch:
            lanes = [
                threading.Thread(target=self._lane, args=(first, scratch), daemon=True)
                for first in range(self.options.workers)
            ]
            for lane in lanes:
                lane.start()
            with progress(self.options.cases, self.campaign.name) as advance:
                while any(lane.is_alive() for lane in lanes):
                    try:
                        time.sleep(0.1)
                        advance(self.done, f"{sum(map(len, self.failures.values()))} failures")
                    except KeyboardInterrupt:  # ends with the summary so far
                        self.end = 0
        return self._summary(time.monotonic() - begin)

    def _lane(self, number: int, scratch: str) -> None:
        """Starts a worker, and another one behind each case that ends it."""
        while number < self.options.cases and time.monotonic() < self.end:
            command = [sys.executable, sys.argv[0], "--from", str(number)]
            for name in ("cases", "seed", "workers"):
                command += [f"--{name}", str(getattr(self.options, name))]
            errors = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115
            environment = os.environ | ONE_THREAD | {"TMPDIR": scratch}
            with subprocess.Popen(command, stdout=-1, stderr=errors, env=environment) as worker:
                for record in self._records(worker):
                    self._count(record)
                    number = record["case"] + self.options.workers
                why = _end(worker)
            if why and time.monotonic() < self.end:
                errors.seek(0)
                tail = errors.read().decode(errors="replace")[-4000:]
                self._count({"case": number, "outcome": why, "failure": tail, "took": 0.0, "grew": 0})
                number += self.options.workers

    def _records(self, worker: Any) -> Any:
        """The lines of a worker, until it ends, hangs, or the time is over."""
        os.set_blocking(worker.stdout.fileno(), False)
        heard, patience, rest = time.monotonic(), START, b""
        with selectors.DefaultSelector() as selector:
            selector.register(worker.stdout, selectors.EVENT_READ)
            while time.monotonic() < min(self.end, heard + patience):
                if not selector.select(timeout=0.2):
                    continue
                if not (chunk := worker.stdout.read()):
                    worker.wait()
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                heard, patience = time.monotonic(), PATIENCE
                self.end = min(self.end, heard + self.options.seconds)
                yield from (json.loads(line) for line in lines if line != b"ready")

    def _count(self, record: dict[str, Any]) -> None:
        self.done += 1
        self.slowest = max(self.slowest, record, key=lambda r: r["took"])
        self.largest = max(self.largest, record, key=lambda r: r["grew"])
        if record["failure"] is None:
            self.outcomes[record["outcome"]] += 1
        else:
            self.failures[record["outcome"]].append(record)

    def _summary(self, took: float) -> int:
        print(f"{self.campaign.name}: {self.done} cases in {took:.0f} s, {self.done / took:.0f} a second")
        for outcome, count in self.outcomes.most_common():
            print(f"  {count:7d}  {outcome}")
        print(f"  slowest: case {self.slowest['case']}, {self.slowest['took']:.2f} s")
        print(f"  largest: case {self.largest['case']}, {self.largest['grew'] / 2**20:.0f} MB")
        for group, records in sorted(self.failures.items(), key=lambda item: -len(item[1])):
            numbers = sorted(record["case"] for record in records)
            print(f"FAILED {len(records)}: {group}\n  cases {', '.join(map(str, numbers[:10]))}")
            print("    " + records[0]["failure"].strip().replace("\n", "\n    "))
        if self.options.json:
            about = {
                "name": self.campaign.name,
                "seed": self.options.seed,
                "cases": self.done,
                "seconds": took,
            }
            failed = {group: [record["case"] for record in found] for group, found in self.failures.items()}
            text = json.dumps(about | {"outcomes": self.outcomes, "failures": failed}, indent=2)
            self.options.json.write_text(text + "\n")
        return 1 if self.failures or not self.done else 0
