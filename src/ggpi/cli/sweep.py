"""`ggpi sweep NAME`: runs an experiment with several values of its fields and several seeds."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ggpi import lab
from ggpi.cli import placing
from ggpi.cli.config import read_config
from ggpi.progress import waiting

if TYPE_CHECKING:
    from ggpi.cluster import Executor
    from ggpi.lab.sweeps import Run

HELP, USAGE = "run an experiment with several settings", "NAME --set FIELD=VALUE,VALUE… [options]"
EXAMPLES = """\
examples:
  ggpi sweep four-rooms-transfer --set gamma=.9,.95 --seeds 0-2          six runs, one after the other
  ggpi sweep vae-ablations --set recipe.steps=500,1000 --on processes:4  in four processes
  ggpi sweep ant-transfer --seeds 0,1,7 --on ray --show oracle.2.mean    on Ray, with a chosen column

Every combination of values and seeds is a run of its own, resumed by the same command. Values of a field that takes
several words are separated by spaces: --set "samples=1 2 5,10 20".
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The experiment, what is varied, and where it runs."""
    parser.add_argument("name", metavar="NAME", help="an experiment; see ggpi list")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUES",
        help="a field of the config and its values, separated by commas; may be repeated",
    )
    parser.add_argument("--seeds", default="0", metavar="SEEDS", help="such as 0-4 or 0,3,7 (default: 0)")
    parser.add_argument("--preset", default="cpu", metavar="P", help="tiny, cpu or paper (default: cpu)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="directory of the sweep (default: results/sweep-NAME-PRESET)"
    )
    parser.add_argument(
        "--show",
        action="append",
        default=[],
        metavar="NUMBER",
        help="a column of the table, such as oracle.2.mean",
    )
    placing.add_options(parser)


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Runs a sweep, or resumes it."""
    with placing.placed(options) as executor:
        _sweep(options, executor)


def _sweep(options: argparse.Namespace, executor: Executor) -> None:
    name, preset = lab.one_of("experiment", options.name, lab.EXPERIMENTS), options.preset
    with waiting("starting…"):
        from rich.console import Console

        from ggpi.lab import sweeps
    out = options.out or Path("results") / f"sweep-{name}-{preset}"
    runs = runs_of(name, preset, options.set, seeds_of(options.seeds))
    numbers = sweeps.sweep(name, runs, preset=preset, out=out, executor=executor)
    Console().print(sweeps.table(runs, numbers, options.show))
    print(f"numbers: {out / 'sweep.json'}")


def runs_of(name: str, preset: str, fields: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Every combination of values and seeds; all are read before any is run."""
    from ggpi.lab import contract
    from ggpi.lab.sweeps import Run

    default, runs = contract.config_of(name, preset), []
    for chosen in itertools.product(*map(_choices, fields)):
        words = [word for field, value in chosen for word in (f"--{field.replace('_', '-')}", *value.split())]
        config = read_config(f"ggpi sweep {name}", default, words)
        setting = (
            "_".join(re.sub(r"[^\w.=+-]", "-", f"{field}={value}") for field, value in chosen) or "default"
        )
        runs += [Run(setting, dataclasses.replace(config, seed=seed)) for seed in seeds]
    return runs


def _choices(text: str) -> list[tuple[str, str]]:
    """A field with each of its values."""
    field, _, values = text.partition("=")
    if not (field and all(value.strip() for value in values.split(","))):
        raise ValueError(f"--set takes FIELD=VALUE,VALUE…, such as gamma=.9,.95; got {text!r}")
    return [(field, value.strip()) for value in values.split(",")]


def seeds_of(text: str) -> list[int]:
    """Seeds from a text such as "0-4" or "0,3,7"."""
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not found:
            raise ValueError(f"--seeds takes numbers and ranges, such as 0-4 or 0,3,7; got {text!r}")
        seeds += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not seeds:
        raise ValueError(f"--seeds {text} holds no seed")
    return seeds
