"""`ggpi pretrain ant`: trains the base policies of the ant, or of OGBench's."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ggpi.cli.config import read_config, show_help
from ggpi.lab import one_of
from ggpi.progress import progress, waiting

HELP, USAGE = "train base policies", "ant|ogbench-ant [options]"
WORLDS = ("ant", "ogbench-ant")
EXAMPLES = """\
examples:
  ggpi pretrain ant                                     retrain the shipped policies
  ggpi pretrain ant --algorithm mpo --seed 3            change fields of its config
  ggpi pretrain ogbench-ant                             eight walkers of OGBench's ant
  ggpi pretrain ant --help                              describe these fields

Re-run the same command to resume an interrupted training.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those that do not depend on the preset; fields of its config are options too."""
    parser.add_argument(
        "world", metavar="ant", nargs="?", help="ant, the sparse-reward ant, or ogbench-ant (required)"
    )
    parser.add_argument(
        "--preset",
        default="cpu",
        metavar="P",
        help="tiny, cpu, or paper for the paper's sizes (default: cpu)",
    )
    parser.add_argument(
        "--algorithm",
        metavar="A",
        help="mpo or ppo (default: ppo for cpu and ogbench-ant, else mpo, the paper's)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="directory of the policies (default: results/pretrain-…)"
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help message and exit")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Trains the policies, or resumes an interrupted training."""
    if not options.help:
        one_of("world", options.world, WORLDS)
    preset = one_of("preset", options.preset, ("tiny", "cpu", "paper"))
    if options.algorithm is not None:
        one_of("algorithm", options.algorithm, ("mpo", "ppo"))
    with waiting("starting…"):
        from ggpi.lab import pretraining
    world = options.world or "ant"
    default = pretraining.preset(preset, options.algorithm, world)
    if options.help:
        return show_help(options.parser, f"fields of the config ({preset})", default)
    config = read_config(f"ggpi pretrain {world}", default, rest)
    name = f"pretrain-{world}-{preset}-{config.algorithm}-seed{config.seed}"
    directory = options.out or Path("results") / name
    with progress(config.rounds, "walking") as advance:

        def report(done: int, numbers: dict[str, float]) -> None:
            advance(done, f"{numbers['along']:.3f} units per step, {100 * numbers['falls']:.2f}% fall")

        words = [f"ggpi pretrain {world} --preset", preset, "--algorithm", config.algorithm, *rest]
        pretraining.pretrain(config, directory, report, " ".join(words))
    print(f"policies: {directory / 'policies'}\ncurve:    {directory / 'training.json'}")
