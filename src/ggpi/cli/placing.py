"""`--on` and `--threads`: where the tasks of a command run."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which takes long to import
if TYPE_CHECKING:
    from ggpi.cluster import Executor

USUAL = (ValueError, OSError, ArithmeticError, ImportError)
"""Errors of a task that are reported in one line, without a traceback."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--on` and `--threads`."""
    parser.add_argument(
        "--on",
        default="local",
        metavar="WHERE",
        help="local, processes:N, ray, or ray://host:port of a cluster (default: local)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads per task; results are equal bit for bit at equal N (default: 1; with local, all cores)",
    )


@contextlib.contextmanager
def placed(options: argparse.Namespace) -> Iterator[Executor]:
    """The executor of the command line; entered before JAX is imported, because it sets the number of threads."""
    from ggpi.cluster import TaskError, named
    from ggpi.cluster.environment import variables

    threads = options.threads if options.threads is not None or options.on == "local" else 1
    if threads is not None:
        os.environ.update(variables(threads))
    with named(options.on, threads=threads or 1) as executor:
        try:
            yield executor
        except TaskError as error:
            if error.__cause__ is None or isinstance(error.__cause__, (*USUAL, TaskError)):
                raise ValueError(str(error)) from error
            raise
