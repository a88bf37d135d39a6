"""Mutation testing: do the tests notice a mistake in the mathematics?

    python tests/mutants/run.py [--area planning] [--only ID …] [-n 2]

The files `*.toml` beside this one list mutants by hand, one area each:

    [[mutant]]
    id = "G1"                             # unique over all areas
    what = "bellman: β and 1−β swapped"   # the mistake, in words
    file = "src/ggpi/ghm/exact.py"
    old = "(1 - beta) * np.eye"           # occurs exactly once in the file
    new = "beta * np.eye"
    tests = ["tests/laws/test_6_2_bellman.py"]    # the smallest selection that should fail: files or node ids
    survives = "why no test can see it"   # only for a mutant that computes the same

Each mutant is applied to a scratch copy of the tree, never to the checkout, and its tests run against that copy. It is
killed when a test fails, crashes or hangs. Before that all listed tests have to pass on the unchanged copy. Runtime
type checks are off, which halves the time: a mutant has to be noticed by what it computes. Files run without their
slow tests; a test named by its node id runs even if it is slow.

Results are kept in `.pytest_cache/mutants.json` until the sources or a mutant's tests change, so an interrupted run
resumes. Exits with 1 when fewer than 95% are killed, when a mutant without `survives` survives, or when one with
`survives` is killed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
KEPT = ROOT / ".pytest_cache" / "mutants.json"
COPIED = ("src", "tests", "pyproject.toml")
WANTED_SCORE = 0.95
PASSED, FAILED, INTERRUPTED = 0, 1, 2
"""Exit codes of pytest; a mutant that breaks an import interrupts it."""


@dataclass(frozen=True)
class Mutant:
    """One wrong line: where it is, what it says, and which tests should fail because of it."""

    area: str
    id: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str | None = None

    def digest(self, sources: str) -> str:
        """Changes when the mutant, the sources, its tests or what tests share change."""
        shared = (ROOT / "tests").glob("*.py")
        files = sorted({*(ROOT / test.split("::")[0] for test in self.tests), *shared})
        return _digest(
            [json.dumps(asdict(self)).encode(), sources.encode(), *(f.read_bytes() for f in files)]
        )


@dataclass(frozen=True)
class Result:
    outcome: str
    """killed, hung (killed, too) or survived."""
    seconds: float


def load(area: str | None = None) -> list[Mutant]:
    """All mutants, or those of one area."""
    return [
        Mutant(path.stem, **{**entry, "tests": tuple(entry["tests"])})
        for path in sorted(HERE.glob("*.toml"))
        if area in (None, path.stem)
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]


def _digest(parts: list[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


class Scratch:
    """A copy of what mutants change and tests read; everything else is a link to the checkout."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()
        for entry in ROOT.iterdir():
            if entry.name in COPIED:
                copy = shutil.copytree if entry.is_dir() else shutil.copy2
                copy(entry, folder / entry.name)
            elif not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry)
        self._edits = 0

    def write(self, file: str, text: str) -> None:
        """Each time with another date: Python compares dates and sizes to see whether compiled code is stale."""
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        self._edits += 1
        os.utime(path, (self._edits, self._edits))

    def pytest(
        self, tests: tuple[str, ...], *options: str, seconds: float | None = None
    ) -> tuple[int | None, str]:
        """The exit code (None after a hang) and what was printed."""
        marked = "" if all("::" in test for test in tests) else "not slow"
        settings = (
            "-o",
            "addopts=",
            "--import-mode=importlib",
            "-m",
            marked,
            "--timeout=0",
            "-p",
            "no:cacheprovider",
        )
        environment = {
            "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "jax"),
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=line", *settings, *options, *tests],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=seconds)
            return process.returncode, printed
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def run(self, mutant: Mutant, seconds: float) -> Result:
        """Applies one mutant, runs its tests and takes it back."""
        original = (self.folder / mutant.file).read_text(encoding="utf-8")
        if original.count(mutant.old) != 1:
            raise ValueError(
                f"{mutant.id}: its old text occurs {original.count(mutant.old)} times in {mutant.file}"
            )
        begin = time.monotonic()
        self.write(mutant.file, original.replace(mutant.old, mutant.new))
        try:
            code, printed = self.pytest(mutant.tests, "-x", "-n", "0", seconds=seconds)
        finally:
            self.write(mutant.file, original)
        if code is not None and code > INTERRUPTED:
            raise ValueError(f"{mutant.id}: pytest could not run {mutant.tests}\n{printed}")
        outcome = "hung" if code is None else "survived" if code == PASSED else "killed"
        return Result(outcome, time.monotonic() - begin)


def run_all(mutants: list[Mutant], processes: int, seconds: float, console: Console) -> dict[str, Result]:
    """The result of each mutant: kept from before, or found now."""
    sources = _digest([path.read_bytes() for path in sorted((ROOT / "src").rglob("*.py"))])
    digests = {mutant.id: mutant.digest(sources) for mutant in mutants}
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    results = {i: Result(**kept[digest]) for i, digest in digests.items() if digest in kept}
    left = [mutant for mutant in mutants if mutant.id not in results]
    if not left:
        return results
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task("tests without mutants", total=len(left))
        copies: queue.Queue[Scratch] = queue.Queue()
        for i in range(processes):
            copies.put(Scratch(Path(folder) / str(i)))
        check_unmutated(copies.queue[0], left, processes)

        def one(mutant: Mutant) -> tuple[Mutant, Result]:
            copy = copies.get()
            try:
                return mutant, copy.run(mutant, seconds)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(processes) as pool:
            futures = [pool.submit(one, mutant) for mutant in left]
            try:
                for done in as_completed(futures):
                    mutant, result = done.result()
                    results[mutant.id] = result
                    progress.update(task, advance=1, description=f"{mutant.id} {result.outcome}")
                    kept[digests[mutant.id]] = asdict(result)
                    KEPT.parent.mkdir(exist_ok=True)
                    KEPT.write_text(json.dumps(kept))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return results


def check_unmutated(copy: Scratch, mutants: list[Mutant], processes: int) -> None:
    """Every listed test passes on the sources as they are."""
    listed = {test for mutant in mutants for test in mutant.tests}
    files = tuple(sorted(test for test in listed if "::" not in test))
    named = tuple(sorted(test for test in listed if "::" in test and test.split("::")[0] not in files))
    for tests in filter(None, (files, named)):
        code, printed = copy.pytest(tests, "-n", str(processes), "--dist", "loadfile")
        if code != PASSED:
            sys.exit(f"tests have to pass before mutants are tried\n{printed}")


def report(mutants: list[Mutant], results: dict[str, Result], console: Console) -> bool:
    """Prints the table, the survivors and the score; whether all is well."""
    table = Table("id", "file", "outcome", "s", "what", box=None, pad_edge=False)
    for mutant in mutants:
        result = results[mutant.id]
        table.add_row(mutant.id, mutant.file[9:], result.outcome, f"{result.seconds:.0f}", mutant.what)
    console.print(table)
    survivors = [mutant for mutant in mutants if results[mutant.id].outcome == "survived"]
    unexpected = [mutant for mutant in survivors if mutant.survives is None]
    outdated = [mutant for mutant in mutants if mutant.survives and mutant not in survivors]
    for mutant in survivors:
        console.print(
            f"survived: {mutant.id} {mutant.what}: {mutant.survives or 'NO REASON GIVEN'}", markup=False
        )
    for mutant in outdated:
        console.print(f"killed although listed as a survivor: {mutant.id} {mutant.what}", markup=False)
    score = 1 - len(survivors) / len(mutants)
    console.print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants killed: {score:.1%}")
    return score >= WANTED_SCORE and not unexpected and not outdated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--area", help="the name of one list, such as planning")
    parser.add_argument("--only", nargs="+", metavar="ID", help="these mutants only")
    parser.add_argument("-n", type=int, default=2, metavar="N", help="mutants that are tried at a time")
    parser.add_argument("--seconds", type=float, default=600, help="after this time a mutant counts as hung")
    options = parser.parse_args()
    mutants = [mutant for mutant in load(options.area) if options.only is None or mutant.id in options.only]
    if not mutants:
        parser.error("no mutant has such an id or area")
    console = Console(width=None if sys.stdout.isatty() else 160)
    results = run_all(mutants, options.n, options.seconds, console)
    well = report(mutants, results, console)
    return 0 if well or (options.only and all(results[m.id].outcome != "survived" for m in mutants)) else 1


if __name__ == "__main__":
    sys.exit(main())
