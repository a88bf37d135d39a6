"""`ggpi list`: all experiments, with the figure or table that each of them is."""

import argparse
from collections.abc import Sequence

from ggpi.lab import EXPERIMENTS

HELP, USAGE, EXAMPLES = "list the experiments", "", None


def add_options(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Prints a line for each experiment."""
    width = max(map(len, EXPERIMENTS))
    for name, (_, line) in EXPERIMENTS.items():
        print(f"{name:{width}}  {line}")
