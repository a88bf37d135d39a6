"""What every experiment promises, and the directory that keeps its results.

An experiment is a module with a frozen dataclass `Config`, `PRESETS` ("tiny", "cpu", "paper") and three functions:

    run(config, cells=compute) -> dict      every number that the figure or table shows, as JSON
    table(metrics) -> rich Table, or a list of them
    plot(metrics) -> matplotlib Figure

Inside `run`, independent pieces go through `cells`, a function from named tasks to their named results:

    results = cells({"depth-1/seed-0": partial(solve, 1, seed=0), ...})

`compute` simply calls them. `resumable` also stores each one, so that an interrupted run goes on from there.

    DIR/config.json    experiment, preset, config, versions, seconds
    DIR/metrics.json   what `run` returned
    DIR/figure.png     what `plot` drew
    DIR/cells/…json    finished cells
    DIR/film.mp4       for those with a function `film(config, metrics)` that gives pictures
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import json
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ggpi.lab import EXPERIMENTS
from ggpi.lab.film import film
from ggpi.progress import progress
from ggpi.storage.arrays import read_json, replacing, sweep, to_json, write_json
from ggpi.storage.errors import FileError
from ggpi.storage.reading import short

HELD = {"experiment": str, "config": dict, "versions": dict, "code": str}
"""What `config.json` holds, among others."""
OURS = {"config.json", "metrics.json", "figure.png", "film.mp4", "cells"}

Tasks = Mapping[str, Callable[[], Any]]
Cells = Callable[[Tasks], dict[str, Any]]


def compute(tasks: Tasks) -> dict[str, Any]:
    """Calls each task; results are as they would come back from disk."""
    return {name: as_stored(task()) for name, task in tasks.items()}


def as_stored(value: Any) -> Any:
    """The value after a trip through JSON: lists for tuples and arrays, strings for keys."""
    return json.loads(to_json(value))


def experiment(name: str) -> ModuleType:
    """The module of a named experiment."""
    return importlib.import_module(EXPERIMENTS[name][0])


def describe(name: str, preset: str, config: Any) -> dict[str, Any]:
    """The content of `config.json`, but for the seconds."""
    versions = {package: importlib.metadata.version(package) for package in ("ggpi", "jax", "numpy")}
    return {
        "experiment": name,
        "preset": preset,
        "config": as_stored(dataclasses.asdict(config)),
        "versions": {"python": platform.python_version(), **versions},
        "code": code_digest(),
    }


@functools.cache
def code_digest() -> str:
    """A digest of the package's sources: stored cells are trusted only by the code that made them."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def stamp(about: Mapping[str, Any]) -> str:
    """A short hash of what determines the numbers: experiment, config, version and code of ggpi."""
    parts = [about["experiment"], about["config"], about["versions"]["ggpi"], about["code"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def claim(directory: Path, about: Mapping[str, Any], force: bool = False) -> None:
    """Makes `directory` ready for this run, or refuses: it may hold the same run, or nothing.

    `force` gives up another run's results; files that are not results of ggpi are never touched.
    What killed runs left half written is deleted. The caller is the directory's `sole_writer`.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file, expected a directory")
    held = _held(directory)
    if held is not None and any(held[key] != about[key] for key in ("experiment", "config")):
        if not force:
            raise ValueError(f"{directory} holds {_difference(held, about)}; choose another or add --force")
        for path in (directory / "metrics.json", directory / "figure.png"):
            path.unlink(missing_ok=True)
        shutil.rmtree(directory / "cells", ignore_errors=True)
        held = None
    sweep(directory, "**/.*.aside")
    if held is None:
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "config.json", about)


def _held(directory: Path) -> dict[str, Any] | None:
    """The `config.json` in a directory, None if there is nothing; refuses a directory of other things."""
    entries = {path.name for path in directory.glob("*") if not path.name.startswith(".")}
    if not entries:
        return None
    foreign = sorted(entries - OURS)
    if foreign or "config.json" not in entries:
        example = (foreign or sorted(entries))[0]
        raise ValueError(f"{directory} holds files that are not results of ggpi run, such as {example}")
    path = directory / "config.json"
    held = read_json(path)
    if not isinstance(held, dict) or not held.keys() >= HELD.keys():
        raise FileError(path, "was not written by ggpi run")
    for name, kind in HELD.items():
        if not isinstance(held[name], kind):
            raise FileError(path, f"expected {kind.__name__}, got {short(held[name], 40)}", field=name)
    return held


def _difference(held: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    if held["experiment"] != about["experiment"]:
        return f"results of {held['experiment']}, not of {about['experiment']}"
    old, new = held["config"], about["config"]
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    changes = ", ".join(f"{name}={short(old.get(name), 40)} (now {new.get(name)})" for name in names[:3])
    return f"results of {held['experiment']} with {changes}"


def resumable(directory: Path, mark: str) -> Cells:
    """A runner of cells with a progress bar; stores each result, takes up those stored under `mark`."""

    def run(tasks: Tasks) -> dict[str, Any]:
        paths = {name: _cell_path(directory, name) for name in tasks}
        results = {name: cell["result"] for name, path in paths.items() if (cell := _stored(path, mark))}
        with progress(len(tasks), "run", "") as advance:
            for name, task in tasks.items():
                if name not in results:
                    advance(len(results), name)
                    results[name] = _run_cell(paths[name], mark, task)
            advance(len(results), "")
        return {name: results[name] for name in tasks}

    return run


def _run_cell(path: Path, mark: str, task: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = as_stored(task())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"stamp": mark, "seconds": round(time.perf_counter() - start, 3), "result": result})
    return result


def _cell_path(directory: Path, name: str) -> Path:
    if not re.fullmatch(r"\w[\w.=+-]*(/\w[\w.=+-]*)*", name):
        raise ValueError(f"cell name {name!r}: expected words of letters, digits and . = + - _, joined by /")
    return directory / "cells" / f"{name}.json"


def _stored(path: Path, mark: str) -> dict[str, Any] | None:
    """A stored cell, or None if it is absent, damaged or made by another config or other code."""
    with contextlib.suppress(OSError, ValueError):
        cell = read_json(path)
        if isinstance(cell, dict) and cell.get("stamp") == mark and "result" in cell:
            return cell if isinstance(cell.get("seconds"), int | float) else None
    return None


def seconds_spent(directory: Path, mark: str) -> float:
    """Time that went into the stored cells of this run."""
    cells = (_stored(path, mark) for path in (directory / "cells").rglob("*.json"))
    return sum((float(cell["seconds"]) for cell in cells if cell), 0.0)


def write_results(directory: Path, about: Mapping[str, Any], metrics: Any, figure: Any) -> None:
    """Writes metrics, figure and config; each file appears whole or not at all."""
    write_json(directory / "metrics.json", metrics)
    write_figure(directory, figure)
    write_json(directory / "config.json", about)


def write_figure(directory: Path, figure: Any) -> Path:
    """Writes `figure.png` and returns its path."""
    path = directory / "figure.png"
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=150)
    return path


def write_film(directory: Path, make: Callable[[], Iterable[Any]]) -> str:
    """Writes `film.mp4` from pictures [height, width, 3]; says where, or why there is none."""
    path = directory / "film.mp4"
    try:
        with film(path) as add:
            for picture in make():
                add(picture)
    except (ImportError, RuntimeError) as error:
        return f"film:    none, {error}"
    return f"film:    {path}"


def read_results(directory: Path) -> tuple[dict[str, Any], Any]:
    """`(config, metrics)` of a finished run."""
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory; expected one written by ggpi run")
    about = _held(directory)
    if about is None:
        raise ValueError(f"{directory} is empty; expected the results of ggpi run")
    if not (directory / "metrics.json").exists():
        raise ValueError(
            f"{directory} holds an unfinished run of {about['experiment']}; run it again to go on"
        )
    return about, read_json(directory / "metrics.json")
