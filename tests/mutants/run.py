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
type checks are off, which halves the time: a mutant has to be noticed by what it computes. Slow tests run where the
quick ones of the same files pass. Tests run in forks of a process that has imported JAX, SciPy and the like, but
nothing of ggpi, and has computed nothing.

Results are kept in `.pytest_cache/mutants.json` until the sources or a mutant's tests change, so an interrupted run
resumes. Exits with 1 when fewer than 95% are killed, when a mutant without `survives` survives, or when one with
`survives` is killed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
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
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PRINTED = "printed.txt"
KEPT = ROOT / ".pytest_cache" / "mutants.json"
COPIED = ("src", "tests", "pyproject.toml")
PRELOADED = ("pytest", "jax.numpy", "equinox", "optax", "hypothesis", "scipy.stats", "scipy.sparse.linalg")
WANTED_SCORE = 0.95
PASSED, INTERRUPTED, NO_TESTS = 0, 2, 5
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
        return _digest([json.dumps(asdict(self)).encode(), digest_of_tests(self.tests, sources).encode()])


@dataclass(frozen=True)
class Result:
    outcome: str
    """killed, hung (killed, too) or survived; passed for tests as they are."""
    seconds: float


def digest_of_tests(tests: tuple[str, ...], sources: str) -> str:
    """Changes when the sources, the tests or what tests share change."""
    shared = (ROOT / "tests").glob("*.py")
    files = sorted({*(ROOT / test.split("::")[0] for test in tests), *shared})
    return _digest([json.dumps(tests).encode(), sources.encode(), *(file.read_bytes() for file in files)])


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
        environment = {
            "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "jax"),
            **os.environ,
            "PYTHONPATH": str(folder / "src"),
        }
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__)), "--serve"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, file: str, text: str) -> None:
        """Each time with another date: Python compares dates and sizes to see whether compiled code is stale."""
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        self._edits += 1
        os.utime(path, (self._edits, self._edits))

    def pytest(self, tests: tuple[str, ...], seconds: float) -> tuple[int | None, str]:
        """Exit code (None after a hang) and output of the quick tests; if these pass, of the slow ones."""
        code, printed = self._marked("not slow", tests, seconds)
        if code not in (PASSED, NO_TESTS):
            return code, printed
        slow, printed = self._marked("slow", tests, seconds)
        return (code if slow == NO_TESTS else slow), printed

    def _marked(self, marked: str, tests: tuple[str, ...], seconds: float) -> tuple[int | None, str]:
        options = ("-x", "-q", "-n", "0", "--no-header", "--tb=line", "--assert=plain", "--timeout=0")
        settings = ("-o", "addopts=", "--import-mode=importlib", "-p", "no:cacheprovider", "-m", marked)
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(json.dumps([seconds, [*options, *settings, *tests]]) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline()), (self.folder / PRINTED).read_text()

    def close(self) -> None:
        self._server.communicate()

    def check(self, tests: tuple[str, ...], seconds: float) -> Result:
        """Tests have to pass on the sources as they are."""
        begin = time.monotonic()
        code, printed = self.pytest(tests, seconds)
        if code != PASSED:
            raise SystemExit(f"tests have to pass before mutants are tried\n{printed}")
        return Result("passed", time.monotonic() - begin)

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
            code, printed = self.pytest(mutant.tests, seconds)
        finally:
            self.write(mutant.file, original)
        if code is not None and code > INTERRUPTED:
            raise ValueError(f"{mutant.id}: pytest could not run {mutant.tests}\n{printed}")
        outcome = "hung" if code is None else "survived" if code == PASSED else "killed"
        return Result(outcome, time.monotonic() - begin)


Job = Callable[[Scratch], Any]


def serve() -> None:
    """For every line [seconds, arguments] runs pytest in a fork, and prints its exit code, null after a hang."""
    for name in PRELOADED:
        importlib.import_module(name)
    assert "ggpi" not in sys.modules
    for line in sys.stdin:
        seconds, arguments = json.loads(line)
        child = os.fork()
        if not child:
            _run_pytest(arguments)
        print(json.dumps(_exit_code(child, seconds)), flush=True)


def _run_pytest(arguments: list[str]) -> None:
    """Does not return; what is printed goes into a file."""
    os.setsid()
    printed = os.open(PRINTED, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    code = int(importlib.import_module("pytest").main(arguments))
    sys.stdout.flush()
    os._exit(code)


def _exit_code(child: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                child = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
    finally:
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return None


def run_all(mutants: list[Mutant], processes: int, seconds: float, console: Console) -> dict[str, Result]:
    """The result of each mutant: kept from before, or found now."""
    sources = _digest([path.read_bytes() for path in sorted((ROOT / "src").rglob("*.py"))])
    digests = {mutant.id: mutant.digest(sources) for mutant in mutants}
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    results = {i: Result(**kept[digest]) for i, digest in digests.items() if digest in kept}
    left = [mutant for mutant in mutants if mutant.id not in results]
    if not left:
        return results

    def keep(digest: str, result: Result) -> None:
        kept[digest] = asdict(result)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept))

    selections = {digest_of_tests(tests, sources): tests for tests in _selections(left)}
    unchecked = [(digest, tests) for digest, tests in selections.items() if digest not in kept]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        copies = [Scratch(Path(folder) / str(i)) for i in range(processes)]
        try:
            checks = [lambda copy, c=c: (c[0], copy.check(c[1], 10 * seconds)) for c in unchecked]
            for digest, result in _over(copies, checks, progress, "tests as they are"):
                keep(digest, result)
            runs = [lambda copy, mutant=mutant: (mutant, copy.run(mutant, seconds)) for mutant in left]
            for mutant, result in _over(copies, runs, progress, "mutants"):
                results[mutant.id] = result
                keep(digests[mutant.id], result)
        finally:
            for copy in copies:
                copy.close()
    return results


def _over(copies: list[Scratch], jobs: list[Job], progress: Progress, name: str) -> Iterator[Any]:
    """What the jobs return, each on a copy that is free."""
    free: queue.Queue[Scratch] = queue.Queue()
    for copy in copies:
        free.put(copy)

    def run(job: Job) -> Any:
        copy = free.get()
        try:
            return job(copy)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            for done in progress.track(
                as_completed([pool.submit(run, job) for job in jobs]), len(jobs), description=name
            ):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _selections(mutants: list[Mutant]) -> list[tuple[str, ...]]:
    """Every listed test, file by file."""
    files = defaultdict(list)
    for test in sorted({test for mutant in mutants for test in mutant.tests}):
        files[test.split("::")[0]].append(test)
    return [(file,) if file in tests else tuple(tests) for file, tests in files.items()]


def report(mutants: list[Mutant], results: dict[str, Result], wanted: float, console: Console) -> bool:
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
    return score >= wanted and not unexpected and not outdated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--area", help="the name of one list, such as planning")
    parser.add_argument("--only", nargs="+", metavar="ID", help="these mutants only")
    parser.add_argument("-n", type=int, default=2, metavar="N", help="mutants that are tried at a time")
    parser.add_argument("--seconds", type=float, default=600, help="after this time a mutant counts as hung")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    mutants = [mutant for mutant in load(options.area) if options.only is None or mutant.id in options.only]
    if not mutants:
        parser.error("no mutant has such an id or area")
    console = Console(width=None if sys.stdout.isatty() else 160)
    results = run_all(mutants, options.n, options.seconds, console)
    return 0 if report(mutants, results, 0.0 if options.only else WANTED_SCORE, console) else 1


if __name__ == "__main__":
    sys.exit(main())
