"""What every experiment consists of, how it is run, and the directory that holds its results.

An experiment is a pair of modules. `x.py` computes and `x_figure.py` shows:

    Config, PRESETS                  a frozen dataclass, and its instances "tiny", "cpu" and "paper"
    run(config, cells=compute)       every number that the figure or table shows, as JSON; pieces go through `cells`

    table(metrics)                   a rich Table, or a list of them
    plot(metrics)                    a matplotlib Figure
    film(config, metrics)            pictures [height, width, 3], for the experiments in `ggpi.lab.FILMS`

    DIR/config.json    experiment, preset, config, versions, seconds
    DIR/metrics.json   what `run` returned
    DIR/figure.png     what `plot` drew
    DIR/film.mp4       what `film` made
    DIR/cells/…json    finished cells, each with a stamp of the config and of the code that it depends on
"""

import dataclasses
import importlib
import importlib.metadata
import platform
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ggpi.cluster import Executor, local
from ggpi.lab import EXPERIMENTS, FILMS, one_of
from ggpi.lab.cells import Metrics, as_stored, code_digest, resumable, seconds_spent, stamp_of
from ggpi.lab.film import film
from ggpi.storage.arrays import read_json, replacing, sweep, write_json
from ggpi.storage.errors import FileError
from ggpi.storage.locking import sole_writer
from ggpi.storage.reading import short

HELD = {"experiment": str, "config": dict, "versions": dict, "code": str}
"""What `config.json` holds, among others."""
OURS = {"config.json", "metrics.json", "figure.png", "film.mp4", "cells"}


def experiment(name: str) -> ModuleType:
    """The module of an experiment that computes its numbers."""
    return importlib.import_module(EXPERIMENTS[one_of("experiment", name, EXPERIMENTS)][0])


def figure_of(name: str) -> ModuleType:
    """The module of an experiment that shows its numbers."""
    return importlib.import_module(f"{EXPERIMENTS[one_of('experiment', name, EXPERIMENTS)][0]}_figure")


def config_of(name: str, preset: str) -> Any:
    """The config of a preset."""
    presets = experiment(name).PRESETS
    return presets[one_of("preset", preset, presets)]


def default_directory(name: str, preset: str, config: Any) -> Path:
    """Where results are written unless another directory is given."""
    return Path("results") / f"{name}-{preset}-seed{config.seed}"


def run(
    name: str,
    config: Any,
    *,
    preset: str,
    seed: int,
    out: str | Path | None,
    force: bool,
    executor: Executor | None = None,
) -> Metrics:
    """See `ggpi.lab.run`."""
    module, figure = experiment(name), figure_of(name)
    if config is None:
        config = dataclasses.replace(config_of(name, preset), seed=seed)
    if not isinstance(config, module.Config):
        raise TypeError(f"config is a {module.__name__}.Config, got {config!r}")
    directory = default_directory(name, preset, config) if out is None else Path(out)
    about = describe(name, preset, config)
    with sole_writer(directory, f"ggpi run {name}"):
        claim(directory, about, force)
        stamp, start = stamp_of(about), time.perf_counter()
        spent = seconds_spent(directory, stamp)
        metrics = as_stored(module.run(config, resumable(directory, stamp, executor or local())))
        about["seconds"] = round(spent + time.perf_counter() - start, 1)
        write_json(directory / "metrics.json", metrics)
        write_figure(directory, figure.plot(metrics))
        write_json(directory / "config.json", about)
        if name in FILMS:
            write_film(directory, partial(figure.film, config, metrics))
    return metrics


def redraw(directory: Path) -> tuple[str, Any]:
    """Draws the figure of a finished run again; returns the experiment's name and its metrics."""
    about, metrics = read_results(directory)
    name = one_of("experiment", about["experiment"], EXPERIMENTS)
    try:
        figure, _ = figure_of(name).plot(metrics), figure_of(name).table(metrics)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise FileError(
            directory / "metrics.json", f"these are not the numbers of {name}: {error!r}"
        ) from error
    write_figure(directory, figure)
    return name, metrics


def describe(name: str, preset: str, config: Any) -> Metrics:
    """The content of `config.json`, except for the seconds."""
    versions = {package: importlib.metadata.version(package) for package in ("ggpi", "jax", "numpy")}
    return {
        "experiment": name,
        "preset": preset,
        "config": as_stored(dataclasses.asdict(config)),
        "versions": {"python": platform.python_version(), **versions},
        "code": code_digest(EXPERIMENTS[name][0]),
    }


def claim(directory: Path, about: Mapping[str, Any], force: bool = False) -> None:
    """Prepares a directory for this run; raises unless it is empty or holds the same run.

    `force` deletes another run's results; files that are not results of ggpi are never touched. Files that killed runs
    left half written are deleted. The caller holds the directory's lock.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file, expected a directory")
    held = _held(directory)
    if held is not None and any(held[key] != about[key] for key in ("experiment", "config")):
        if not force:
            raise ValueError(
                f"{directory} holds {_difference(held, about)}; choose another directory, or force (--force)"
            )
        for name in ("metrics.json", "figure.png", "film.mp4"):
            (directory / name).unlink(missing_ok=True)
        shutil.rmtree(directory / "cells", ignore_errors=True)
        held = None
    sweep(directory, "**/.*.aside")
    if held is None:
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "config.json", about)


def _held(directory: Path) -> Metrics | None:
    """The `config.json` in a directory, None if it is empty; raises if other things are in it."""
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


def write_figure(directory: Path, figure: Figure) -> None:
    """Writes `figure.png`."""
    with replacing(directory / "figure.png") as aside:
        figure.savefig(aside, format="png", dpi=150)


def write_film(directory: Path, make: Callable[[], Iterable[np.ndarray]]) -> None:
    """Writes `film.mp4` from pictures [height, width, 3]; warns where pictures or films cannot be made."""
    try:
        with film(directory / "film.mp4") as add:
            for picture in make():
                add(picture)
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"no film: {error}", stacklevel=3)


def read_results(directory: Path) -> tuple[Metrics, Any]:
    """`(config, metrics)` of a finished run."""
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory; expected one written by ggpi run")
    about = _held(directory)
    if about is None:
        raise ValueError(f"{directory} is empty; expected the results of ggpi run")
    if not (directory / "metrics.json").exists():
        raise ValueError(
            f"{directory} holds an unfinished run of {about['experiment']}; run it again to resume"
        )
    return about, read_json(directory / "metrics.json")
