"""`ggpi diagnose MODELS`: compares saved models with simulated or recorded futures."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ggpi.cli.own_modules import find_own_modules
from ggpi.progress import waiting

HELP = "compare saved models with simulated or recorded futures"
USAGE = "MODELS (--env ID | --data FILE) [options]"
EXAMPLES = """\
examples:
  ggpi diagnose models --env ggpi/PointMass-v0          simulate the ground truth
  ggpi diagnose models --data recorded.npz              take the ground truth from recorded trajectories
  ggpi diagnose student --env ggpi/PointMass-v0 --teacher models     models of ggpi.distil beside their teacher
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Models, and the truth to compare them with."""
    parser.add_argument(
        "models",
        metavar="MODELS",
        type=Path,
        help="a directory of ggpi.save, or of ggpi.fit(out=…) (required)",
    )
    parser.add_argument(
        "--env",
        metavar="ID",
        help="a Gymnasium environment, such as ggpi/PointMass-v0 (required without --data)",
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="trajectories: .npz, .hdf5 or .npy files, or a Minari dataset (required without --env)",
    )
    parser.add_argument(
        "--keys",
        metavar="TEXT",
        help="keys of dictionary observations that make the state, such as observation",
    )
    parser.add_argument(
        "--teacher",
        type=Path,
        metavar="MODELS",
        help="the models that these were distilled from, to compare samples with",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory of figure and numbers (default: results/diagnose-NAME)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", default=0, help="seed of simulation and samples (default: 0)"
    )


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Prints how close the models are to the truth, and draws it."""
    find_own_modules(options.env)
    with waiting("starting…"):
        from rich.console import Console

        from ggpi.cli.diagnose_report import report

    out = options.out or Path("results") / f"diagnose-{options.models.resolve().name}"
    keys = options.keys.split(",") if options.keys else ()
    given = {"keys": keys, "teacher": options.teacher, "seed": options.seed}
    Console().print(report(options.models, options.env, options.data, out, **given))
    print(f"figure:  {out / 'figure.png'}\nnumbers: {out / 'metrics.json'}")
