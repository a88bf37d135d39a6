"""`ggpi run NAME`: runs an experiment and prints its tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggpi import lab
from ggpi.cli import placing
from ggpi.cli.config import read_config, show_help
from ggpi.progress import waiting

if TYPE_CHECKING:
    from ggpi.cluster import Executor

HELP, USAGE = "run an experiment", "NAME [options]"
EXAMPLES = """\
examples:
  ggpi run four-rooms-transfer                          run it on two cores
  ggpi run four-rooms-transfer --gamma .95 --seed 3     change fields of its config; numbers may be fractions: 1/9
  ggpi run four-rooms-transfer --help                   describe these fields
  ggpi run ant-transfer --on processes:4                compute its cells in four processes
  ggpi run ant-transfer --on ray                        or on Ray

Re-run the same command to resume an interrupted run, also with another --on. The last part of a field's name is enough
where it is unique: --steps for --recipe.steps.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those that all experiments have; fields of their configs are options too."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="an experiment; see ggpi list (required)")
    parser.add_argument(
        "--preset",
        default="cpu",
        metavar="P",
        help="tiny, cpu, or paper for the paper's full scale (default: cpu)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory of the results (default: results/NAME-PRESET-seedN)",
    )
    parser.add_argument("--force", action="store_true", help="replace other results of ggpi run in DIR")
    placing.add_options(parser)
    parser.add_argument(
        "-h",
        "--help",
        action="store_true",
        help="show this help message; after NAME also the fields of its config",
    )


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Runs an experiment, or resumes it."""
    if options.help and options.name is None:
        return print(options.parser.format_help())
    with placing.placed(options) as executor:
        _run(options, rest, executor)


def _run(options: argparse.Namespace, rest: Sequence[str], executor: Executor) -> None:
    name, preset = lab.one_of("experiment", options.name, lab.EXPERIMENTS), options.preset
    with waiting("starting…"):
        from ggpi.lab import contract

        default = contract.config_of(name, preset)
    if options.help:
        return show_help(options.parser, f"fields of the config of {name} ({preset})", default)
    config = read_config(f"ggpi run {name}", default, rest)
    directory = options.out or contract.default_directory(name, preset, config)
    metrics = lab.run(name, config, preset=preset, out=directory, force=options.force, executor=executor)
    show(name, metrics, directory)


def show(name: str, metrics: dict[str, Any], directory: Path) -> None:
    """Prints the tables of an experiment, and where its files are."""
    from rich.console import Console

    from ggpi.lab import contract

    tables = contract.figure_of(name).table(metrics)
    Console().print(*(tables if isinstance(tables, list) else [tables]), sep="\n")
    print(f"figure:  {directory / 'figure.png'}\nnumbers: {directory / 'metrics.json'}")
    if (directory / "film.mp4").exists():
        print(f"film:    {directory / 'film.mp4'}")
