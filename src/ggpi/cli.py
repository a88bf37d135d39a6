"""The command `ggpi`: list, run, plot, pretrain, diagnose, eq. Nothing heavy is imported before it is needed."""

import argparse
import contextlib
import difflib
import io
import itertools
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from ggpi.lab import EXPERIMENTS

EXAMPLES = """\
examples:
  ggpi list                                             the experiments, each a figure or table of the paper
  ggpi run four-rooms-transfer                          the paper's claim, on two cores
  ggpi run four-rooms-transfer --gamma .95 --seed 3     any field of its config may be changed
  ggpi run four-rooms-transfer --help                   what these fields are
  ggpi plot results/four-rooms-transfer-cpu-seed0       draw again without computing
  ggpi pretrain ant                                     the ant's base policies, made again
  ggpi diagnose MODELS --env ggpi/PointMass-v0          learned models against true futures
  ggpi eq 3.2                                           where Theorem 3.2 is in the code
"""
FIELDS = "Any field of the experiment's config is an option too, such as --seed 3 or --alpha 1/9."


class _Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script: returns 0, 2 for an error of the user's, 130 after Ctrl-C."""
    try:
        options, rest = _parser().parse_known_args(arguments)
        if rest and options.command not in (run, pretrain):
            raise ValueError(f"unrecognised arguments: {' '.join(rest)}; see ggpi --help")
        options.command(options, rest)
        return 0
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print("ggpi:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ggpi: stopped; finished cells are kept, the same command goes on from there", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    title = "Generalised policy improvement with geometric policy composition."
    parser = _Parser(prog="ggpi", description=title, epilog=EXAMPLES, formatter_class=raw, allow_abbrev=False)
    commands = parser.add_subparsers(
        title="commands", metavar="{list,run,plot,pretrain,diagnose,eq}", required=True
    )

    commands.add_parser("list", help="name all experiments").set_defaults(command=show_list)

    command = commands.add_parser(
        "run", help="run an experiment", add_help=False, allow_abbrev=False, epilog=FIELDS
    )
    command.add_argument("name", metavar="NAME", nargs="?", help="one of those in ggpi list")
    command.add_argument(
        "--preset", default="cpu", help="tiny, cpu (default) or paper: the paper's full scale"
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/NAME-PRESET-seedN")
    command.add_argument("--force", action="store_true", help="replace other results of ggpi in DIR")
    command.add_argument("-h", "--help", action="store_true", help="with NAME: the fields of its config too")
    command.set_defaults(command=run, usage=command.format_help)

    command = commands.add_parser("plot", help="redraw finished results")
    command.add_argument("directory", metavar="DIR", type=Path, help="a directory written by ggpi run")
    command.set_defaults(command=plot)

    command = commands.add_parser("pretrain", help="train base policies", allow_abbrev=False, epilog=FIELDS)
    command.add_argument("world", metavar="WORLD", help="ant: the sparse-reward ant")
    command.add_argument("--preset", default="cpu", help="tiny, cpu (default) or paper: the paper's sizes")
    command.add_argument("--algorithm", help="mpo or ppo; by default what is best for the preset")
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/pretrain-ant-…")
    command.set_defaults(command=pretrain)

    command = commands.add_parser("diagnose", help="hold saved models against true futures")
    command.add_argument(
        "models", metavar="MODELS", type=Path, help="written by ggpi.save, or by ggpi.fit(out=…)"
    )
    command.add_argument("--env", metavar="ID", help="a Gymnasium environment, such as ggpi/PointMass-v0")
    command.add_argument("--data", metavar="FILE", help="trajectories: an .npz of ours, or a Minari dataset")
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/diagnose-NAME")
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(command=diagnose)

    command = commands.add_parser("eq", help="find an item of the paper in the code")
    command.add_argument("id", metavar="ID", nargs="+", help='such as 3.2, "Thm 3.2", eq6, "Fig 3", "Alg 1"')
    command.set_defaults(command=show_equation)
    return parser


def show_list(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Names all experiments."""
    width = max(map(len, EXPERIMENTS))
    for name, (_, line) in EXPERIMENTS.items():
        print(f"{name:{width}}  {line}")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Runs an experiment, writes its results and prints its table."""
    if options.help:
        print(options.usage())
        if options.name is None:
            return
    name, preset = one_of("experiment", options.name, EXPERIMENTS), options.preset
    use_compilation_cache()
    from ggpi.lab import contract

    experiment = contract.experiment(name)
    default = getattr(experiment.Config, one_of("preset", preset, contract.PRESETS))()
    config = read_config(f"ggpi run {name}", default, ["--help"] if options.help else rest)
    directory = options.out or Path("results") / f"{name}-{preset}-seed{config.seed}"
    about = contract.describe(name, preset, config)
    contract.claim(directory, about, options.force)

    mark, start = contract.stamp(about), time.perf_counter()
    spent = contract.seconds_spent(directory, mark)
    metrics = contract.as_stored(experiment.run(config, contract.resumable(directory, mark)))
    about["seconds"] = round(spent + time.perf_counter() - start, 1)
    contract.write_results(directory, about, metrics, experiment.plot(metrics))
    if hasattr(experiment, "film"):
        print(contract.write_film(directory, lambda: experiment.film(config)))
    show(experiment, metrics, directory)


def plot(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Draws finished results again."""
    from ggpi.lab import contract

    about, metrics = contract.read_results(options.directory)
    experiment = contract.experiment(one_of("experiment", about["experiment"], EXPERIMENTS))
    contract.write_figure(options.directory, experiment.plot(metrics))
    show(experiment, metrics, options.directory)


def show(experiment: Any, metrics: Any, directory: Path) -> None:
    """Prints the tables and where the figure is."""
    from rich.console import Console

    tables = experiment.table(metrics)
    Console().print(*(tables if isinstance(tables, list) else [tables]), sep="\n")
    print(f"figure:  {directory / 'figure.png'}\nnumbers: {directory / 'metrics.json'}")


def pretrain(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Trains base policies, or goes on with a training that was stopped."""
    one_of("world", options.world, ["ant"])
    preset = one_of("preset", options.preset, ("tiny", "cpu", "paper"))
    if options.algorithm is not None:
        one_of("algorithm", options.algorithm, ("mpo", "ppo"))
    use_compilation_cache()
    from ggpi import pretrain
    from ggpi.progress import progress

    config = read_config("ggpi pretrain ant", pretrain.preset(preset, options.algorithm), rest)
    default = Path("results") / f"pretrain-ant-{preset}-{config.algorithm}-seed{config.seed}"
    directory = options.out or default
    with progress(config.rounds, "walking") as advance:

        def report(done: int, numbers: dict[str, float]) -> None:
            advance(done, f"{numbers['along']:.3f} units per step, {100 * numbers['falls']:.2f}% fall")

        words = ["ggpi pretrain ant --preset", preset, "--algorithm", config.algorithm, *rest]
        pretrain.pretrain(config, directory, report, " ".join(words))
    print(f"policies: {directory / 'policies'}\ncurve:    {directory / 'training.json'}")


def diagnose(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Prints how near saved models are to the truth, and draws it."""
    use_compilation_cache()
    from rich.console import Console

    from ggpi.lab import model_report

    out = options.out or Path("results") / f"diagnose-{options.models.resolve().name}"
    table = model_report.report(options.models, options.env, options.data, out, options.seed)
    Console().print(table)
    print(f"figure:  {out / 'figure.png'}\nnumbers: {out / 'metrics.json'}")


def show_equation(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Says where an item of the paper is in the code."""
    from ggpi import equations

    print(equations.report(" ".join(options.id)))


def one_of(kind: str, given: str | None, valid: Iterable[str]) -> str:
    """The given name if it is valid; else an error that lists the valid ones, nearest first."""
    if given is not None and given in valid:
        return given
    nearest = sorted(valid, key=lambda name: -difflib.SequenceMatcher(None, given or "", name).ratio())
    said = "no name given" if given is None else f"no {kind} is called {given!r}"
    raise ValueError(f"{said}; the {kind}s are: {', '.join(nearest if given else valid)}")


def read_config(prog: str, default: Any, arguments: Sequence[str]) -> Any:
    """The default config with the fields that were given as options; fractions such as 1/9 are welcome."""
    import tyro

    numbers = [_decimal(text) for text in arguments]
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(type(default), prog=prog, args=numbers, default=default)
    except SystemExit as end:
        if not end.code:
            raise
    lines = [line.strip("│ ") for line in complaint.getvalue().splitlines()[1:]]
    message = itertools.takewhile(lambda line: not line.startswith(("─", "╰")), lines)
    raise ValueError(f"{' '.join(message)}; see {prog} --help")


def _decimal(text: str) -> str:
    return str(float(Fraction(text))) if re.fullmatch(r"\d+/[1-9]\d*", text) else text


def use_compilation_cache() -> None:
    """Lets JAX keep compiled programs in the user's cache folder; must come before JAX is imported."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ggpi" / "jax"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


if __name__ == "__main__":
    sys.exit(main())
