"""Sweeps: one experiment with several configs, each run a task of an executor in a directory of its own.

DIR/sweep.json            experiment, preset, and the numbers of all runs
DIR/SETTING/seed-N/…      one run, as `ggpi run` writes it
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ggpi import lab
from ggpi.cluster import Executor
from ggpi.lab.cells import Metrics
from ggpi.progress import progress
from ggpi.storage.arrays import write_json

SHOWN = 6
"""Columns of the table unless others are chosen."""


@dataclass(frozen=True)
class Run:
    """One config of a sweep."""

    setting: str
    """What was set, such as "gamma=0.9"; runs of one setting differ in their seed."""
    config: Any

    @property
    def name(self) -> str:
        return f"{self.setting}/seed-{self.config.seed}"


def sweep(
    name: str, runs: Sequence[Run], *, preset: str, out: Path, executor: Executor
) -> dict[str, Metrics]:
    """Runs an experiment with each config, or resumes it; returns numbers by run, and writes `sweep.json`.

    Args:
        name: An experiment.
        runs: Configs with different names.
        preset: The preset that the configs were made from.
        out: Directory of the sweep. Workers on other machines share its disk, or keep the cells of their runs.
        executor: Where runs are computed, one after the other on each worker.
    """
    tasks, found = {run.name: run for run in runs}, dict[str, Metrics]()
    if len(tasks) < len(runs):
        raise ValueError("two runs of a sweep have the same setting and seed; give each value and seed once")
    with progress(len(tasks), "sweep", "") as advance:

        def begin(task: str) -> None:
            advance(len(found), task)

        one = partial(_run, name, preset, out.resolve())
        for task, metrics in executor.completed(one, tasks, begin=begin):
            found[task] = metrics
            advance(len(found), task)
    numbers = {task: dict(leaves(found[task])) for task in tasks}
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "sweep.json", {"experiment": name, "preset": preset, "runs": numbers})
    return numbers


def _run(name: str, preset: str, out: Path, run: Run) -> Metrics:
    return lab.run(name, run.config, preset=preset, out=out / run.name)


def leaves(metrics: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Numbers of nested metrics by their path, such as `oracle.2.mean`; items of lists by their place."""
    if isinstance(metrics, Mapping | list):
        items = metrics.items() if isinstance(metrics, Mapping) else enumerate(metrics)
        for key, value in items:
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(metrics, int | float) and not isinstance(metrics, bool):
        yield path, metrics


def table(runs: Sequence[Run], numbers: Mapping[str, Mapping[str, float]], shown: Sequence[str]) -> Table:
    """Mean and standard error over seeds for each setting; without `shown`, of the first numbers that differ."""
    paths = list(dict.fromkeys(path for one in numbers.values() for path in one))
    if missing := [path for path in shown if path not in paths]:
        raise ValueError(f"no number is called {missing[0]!r}; there are {', '.join(paths)}")
    different = [path for path in paths if len({one.get(path) for one in numbers.values()}) > 1]
    columns = list(shown) or different[:SHOWN]
    result = Table(
        "setting", "seeds", *columns, title="mean ± standard error over seeds", title_justify="left"
    )
    for setting in dict.fromkeys(run.setting for run in runs):
        names = [run.name for run in runs if run.setting == setting]
        result.add_row(
            setting, str(len(names)), *(_mean([numbers[n].get(path) for n in names]) for path in columns)
        )
    if not shown and len(different) > SHOWN:
        result.caption = f"{len(different) - SHOWN} more numbers differ; --show chooses"
    return result


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    error = f" ± {np.std(known, ddof=1) / len(known) ** 0.5:.2g}" if len(known) > 1 else ""
    return f"{np.mean(known):.4g}{error}"
