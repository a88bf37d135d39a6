"""`ggpi eq 3.2`: where a numbered item of the paper is in the code."""

import argparse
from collections.abc import Sequence

HELP, USAGE, EXAMPLES = "find an item of the paper in the code", "ID", None


def add_options(parser: argparse.ArgumentParser) -> None:
    """The item."""
    parser.add_argument(
        "id", metavar="ID", nargs="+", help='such as 3.2, "Thm 3.2", eq6, "Fig 3", "Alg 1" (required)'
    )


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Prints files and lines, tests and the experiment of an item."""
    from ggpi.cli import equations

    print(equations.report(" ".join(options.id)))
