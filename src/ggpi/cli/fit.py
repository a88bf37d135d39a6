"""`ggpi fit --env ID --policies FILE …` and `ggpi fit ant`: learns models of where policies lead."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ggpi.cli.config import read_config, show_help
from ggpi.cli.own_modules import find_own_modules
from ggpi.lab import one_of
from ggpi.progress import waiting

if TYPE_CHECKING:
    from rich.console import RenderableType

HELP = "learn models of where policies lead"
USAGE = "--env ID --policies FILE … [options]\n       ggpi fit ant [options]"
EXAMPLES = """\
examples:
  ggpi fit --env Pendulum-v1 --policies swing.zip hold.zip --gamma .95 --alpha .1 --out models
  ggpi fit --env gymnasium_robotics:PointMaze_UMaze-v3 --keys observation --policies up.zip down.zip
  ggpi fit --env Pendulum-v1 --policies swing.zip hold.zip --data recorded.hdf5
  ggpi fit --env Pendulum-v1 --policies swing.zip:swing.pkl hold.zip:hold.pkl      with files of VecNormalize.save
  ggpi fit ant                            the paper's ant, on two cores
  ggpi fit ant --preset tiny --seed 3     change fields of its config; ggpi fit ant --help describes them

Policies are zips of Stable-Baselines3 or directories of ggpi.save. Re-run the same command to resume an interrupted
fit; a larger --steps continues a finished one.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those that both forms have; fields of their configs are options too."""
    parser.add_argument(
        "--preset", metavar="P", help="only for ggpi fit ant: tiny, cpu, paper or one-network (default: cpu)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="directory of the models (default: results/fit-ENV-…)"
    )
    parser.add_argument(
        "--tensorboard", action="store_true", help="also write loss curves for TensorBoard to DIR"
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help message and exit")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Fits models, or resumes a fit: of the ant, or of an environment and policies of the user's own."""
    is_named = bool(rest) and not rest[0].startswith("-")
    if is_named:
        one_of("world", rest[0], ["ant"])
        found = _fit_ant(options, rest[1:])
    else:
        found = _fit_environment(options, rest)
    if found is None:
        return
    from rich.console import Console

    table, words, out = found
    Console().print(table)
    print(words)
    if options.tensorboard:
        print(f"curves: tensorboard --logdir {out}")


def _fit_ant(options: argparse.Namespace, fields: Sequence[str]) -> "tuple[RenderableType, str, Path] | None":
    """The table, what to do next, and the directory; None after the help."""
    with waiting("starting…"):
        from ggpi.cli.fit_ant import FITS, fit_ant
    preset = one_of("preset", options.preset or "cpu", FITS)
    if options.help:
        return show_help(options.parser, f"fields of the config of the ant ({preset})", FITS[preset])
    config = read_config("ggpi fit ant", FITS[preset], fields)
    out = options.out or Path("results") / f"fit-ant-{preset}-seed{config.seed}"
    return (*fit_ant(config, out, options.tensorboard), out)


def _fit_environment(
    options: argparse.Namespace, fields: Sequence[str]
) -> "tuple[RenderableType, str, Path] | None":
    """The table, what to do next, and the directory; None after the help."""
    with waiting("starting…"):
        from ggpi.cli.fit_environment import WorldConfig, fit_world
    if options.help:
        return show_help(options.parser, "options of ggpi fit --env", WorldConfig)
    if options.preset:
        raise ValueError("--preset only applies to ggpi fit ant; use --transitions and --steps")
    config = read_config("ggpi fit", WorldConfig, fields)
    find_own_modules(config.env)
    name = re.sub(r"\W+", "-", config.env.split(":")[-1])
    out = options.out or Path("results") / f"fit-{name}-seed{config.seed}"
    return (*fit_world(config, out, options.tensorboard), out)
