"""`ggpi plot DIR`: redraws the figure of a finished run, without computing anything."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ggpi.cli.run import show

HELP, USAGE, EXAMPLES = "redraw the figure of a finished run", "DIR", None


def add_options(parser: argparse.ArgumentParser) -> None:
    """The directory."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a directory of ggpi run (required)")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Draws the figure and prints the tables."""
    from ggpi.lab import contract

    name, metrics = contract.redraw(options.directory)
    show(name, metrics, options.directory)
