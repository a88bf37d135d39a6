"""What the commands of `ggpi` do. Nothing heavy is imported before it is needed."""

import argparse
import contextlib
import dataclasses
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
from typing import Any

from ggpi.cli import stopping
from ggpi.cli.options import parser
from ggpi.lab import EXPERIMENTS
from ggpi.progress import progress, waiting
from ggpi.storage.errors import FileError
from ggpi.storage.locking import sole_writer

PLAIN = {
    "invalid literal for int() with base 10:": "expected a whole number, got",
    "could not convert string to float:": "expected a number, got",
}
"""What is wrong with an option: Python's words, and plain ones."""


def main(arguments: Sequence[str] | None = None) -> int:
    """A command: returns 0, 2 for an error of the user's, 130 after Ctrl-C."""
    try:
        options, rest = parser().parse_known_args(arguments)
        if rest and options.command not in ("run", "pretrain", "fit"):
            raise ValueError(f"unrecognised arguments: {' '.join(rest)}; see ggpi --help")
        COMMANDS[options.command](options, rest)
        return 0
    except BrokenPipeError:  # whoever reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ArithmeticError, ImportError) as error:
        print("ggpi:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(stopping.words(sys.argv[1:] if arguments is None else arguments), file=sys.stderr)
        return stopping.CODE


def show_list(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Names all experiments."""
    width = max(map(len, EXPERIMENTS))
    for name, (_, line) in EXPERIMENTS.items():
        print(f"{name:{width}}  {line}")


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Runs an experiment, writes its results and prints its table."""
    if options.help and options.name is None:
        return print(options.parser.format_help())
    name, preset = one_of("experiment", options.name, EXPERIMENTS), options.preset
    use_compilation_cache()
    with waiting("starting…"):
        from ggpi.lab import contract

        experiment = contract.experiment(name)
    default = experiment.PRESETS[one_of("preset", preset, experiment.PRESETS)]
    if options.help:
        return show_help(options.parser, f"fields of the config of {name} ({preset})", default)
    config = read_config(f"ggpi run {name}", default, rest)
    directory = options.out or Path("results") / f"{name}-{preset}-seed{config.seed}"
    about = contract.describe(name, preset, config)
    with sole_writer(directory, f"ggpi run {name}"):
        contract.claim(directory, about, options.force)
        mark, start = contract.stamp(about), time.perf_counter()
        spent = contract.seconds_spent(directory, mark)
        metrics = contract.as_stored(experiment.run(config, contract.resumable(directory, mark)))
        about["seconds"] = round(spent + time.perf_counter() - start, 1)
        contract.write_results(directory, about, metrics, experiment.plot(metrics))
        if hasattr(experiment, "film"):
            print(contract.write_film(directory, lambda: experiment.film(config, metrics)))
        show(experiment, metrics, directory)


def plot(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Draws finished results again."""
    from ggpi.lab import contract

    about, metrics = contract.read_results(options.directory)
    experiment = contract.experiment(one_of("experiment", about["experiment"], EXPERIMENTS))
    try:
        figure, _ = experiment.plot(metrics), experiment.table(metrics)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        path = options.directory / "metrics.json"
        raise FileError(path, f"these are not the numbers of {about['experiment']}: {error!r}") from error
    contract.write_figure(options.directory, figure)
    show(experiment, metrics, options.directory)


def show(experiment: Any, metrics: Any, directory: Path) -> None:
    """Prints the tables and where the figure is."""
    from rich.console import Console

    tables = experiment.table(metrics)
    Console().print(*(tables if isinstance(tables, list) else [tables]), sep="\n")
    print(f"figure:  {directory / 'figure.png'}\nnumbers: {directory / 'metrics.json'}")


def pretrain(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Trains base policies, or goes on with a training that was stopped."""
    if not options.help:
        one_of("world", options.world, ["ant"])
    preset = one_of("preset", options.preset, ("tiny", "cpu", "paper"))
    if options.algorithm is not None:
        one_of("algorithm", options.algorithm, ("mpo", "ppo"))
    use_compilation_cache()
    with waiting("starting…"):
        from ggpi.lab import pretraining as pretrain
    default = pretrain.preset(preset, options.algorithm)
    if options.help:
        return show_help(options.parser, f"fields of the config ({preset})", default)
    config = read_config("ggpi pretrain ant", default, rest)
    default = Path("results") / f"pretrain-ant-{preset}-{config.algorithm}-seed{config.seed}"
    directory = options.out or default
    with progress(config.rounds, "walking") as advance:

        def report(done: int, numbers: dict[str, float]) -> None:
            advance(done, f"{numbers['along']:.3f} units per step, {100 * numbers['falls']:.2f}% fall")

        words = ["ggpi pretrain ant --preset", preset, "--algorithm", config.algorithm, *rest]
        pretrain.pretrain(config, directory, report, " ".join(words))
    print(f"policies: {directory / 'policies'}\ncurve:    {directory / 'training.json'}")


def fit(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Learns models: the ant's, or of an environment and policies of one's own."""
    is_named = bool(rest) and not rest[0].startswith("-")
    world, fields = (one_of("world", rest[0], ["ant"]), rest[1:]) if is_named else ("", rest)
    use_compilation_cache()
    if world == "ant":
        with waiting("starting…"):
            from ggpi.cli.fit_ant import FITS, fit_ant
        preset = one_of("preset", options.preset or "cpu", FITS)
        default = FITS[preset]
        if options.help:
            return show_help(options.parser, f"fields of the config of the ant ({preset})", default)
        config = read_config("ggpi fit ant", default, fields)
        out = options.out or Path("results") / f"fit-ant-{preset}-seed{config.seed}"
        table, words = fit_ant(config, out, options.tensorboard)
    else:
        with waiting("starting…"):
            from ggpi.cli.fit import WorldConfig, fit_world
        if options.help:
            return show_help(options.parser, "options of ggpi fit --env", WorldConfig)
        if options.preset:
            raise ValueError("--preset is the ant's; for your own world there are --transitions and --steps")
        config = read_config("ggpi fit", WorldConfig, fields)
        find_own_modules(config.env)
        name = re.sub(r"\W+", "-", config.env.split(":")[-1])
        out = options.out or Path("results") / f"fit-{name}-seed{config.seed}"
        table, words = fit_world(config, out, options.tensorboard)
    from rich.console import Console

    Console().print(table)
    print(words)
    if options.tensorboard:
        print(f"curves: tensorboard --logdir {out}")


def play(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Plays episodes for a reward, prints a table of them, and films them if asked."""
    use_compilation_cache()
    is_code = options.reward.startswith("python:") or None
    find_own_modules(options.env, options.terminal, is_code and options.reward)
    with waiting("starting…"):
        from rich.console import Console

        from ggpi.cli.play import PlayConfig, compare_agents
        from ggpi.cli.play import play as play_episodes

    names = (
        "reward",
        "depth",
        "samples",
        "episodes",
        "max_steps",
        "seed",
        "terminal",
        "env",
        "first_actions",
    )
    config = PlayConfig(**{name: getattr(options, name) for name in names})
    if options.compare:
        if options.video:
            raise ValueError("--compare makes no film; give --video without it")
        out = options.out or Path("results") / f"compare-{options.models.resolve().name}"
        Console().print(compare_agents(options.models, config, out))
        print(f"figure:  {out / 'figure.png'}\nnumbers: {out / 'metrics.json'}")
        return
    Console().print(play_episodes(options.models, config, options.video))
    if options.video:
        print(f"film:    {options.video}")


def diagnose(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Prints how near saved models are to the truth, and draws it."""
    use_compilation_cache()
    find_own_modules(options.env)
    with waiting("starting…"):
        from rich.console import Console

        from ggpi.cli import diagnose as model_report

    out = options.out or Path("results") / f"diagnose-{options.models.resolve().name}"
    keys = options.keys.split(",") if options.keys else ()
    tables = model_report.report(options.models, options.env, options.data, out, keys=keys, seed=options.seed)
    Console().print(tables)
    print(f"figure:  {out / 'figure.png'}\nnumbers: {out / 'metrics.json'}")


def show_equation(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Says where an item of the paper is in the code."""
    from ggpi.cli import equations

    print(equations.report(" ".join(options.id)))


def one_of(kind: str, given: str | None, valid: Iterable[str]) -> str:
    """The given name if it is valid; else an error that lists the valid ones, nearest first."""
    if given is not None and given in valid:
        return given
    nearest = sorted(valid, key=lambda name: -difflib.SequenceMatcher(None, given or "", name).ratio())
    said = "no name given" if given is None else f"no {kind} is called {given!r}"
    raise ValueError(f"{said}; the {kind}s are: {', '.join(nearest if given else valid)}")


def show_help(parser: argparse.ArgumentParser, title: str, config: Any) -> None:
    """Prints a command's help with the fields of a config among its options."""
    from ggpi.cli.config_help import add_fields

    add_fields(parser, title, config)
    print(parser.format_help())


def read_config(prog: str, default: Any, arguments: Sequence[str]) -> Any:
    """The default config with the fields that were given as options; fractions such as 1/9 are welcome.

    A class in the place of a default config has fields that have to be given.
    """
    import tyro

    from ggpi.cli.nested import REGISTRY, with_prefixes

    kind, given = (default, {}) if isinstance(default, type) else (type(default), {"default": default})
    needed = [f"--{field.name}" for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    names = {word.partition("=")[0] for word in arguments}
    if not given and (lacking := [name for name in needed if name not in names]):
        raise ValueError(f"{prog} needs {' and '.join(lacking)}; see {prog} --help")
    numbers = [_decimal(text) for text in with_prefixes(default, arguments)]
    complaint = io.StringIO()
    with contextlib.redirect_stderr(complaint), contextlib.suppress(SystemExit):
        return tyro.cli(kind, prog=prog, args=numbers, add_help=False, registry=REGISTRY, **given)
    lines = [line.strip("│ ") for line in complaint.getvalue().splitlines()[1:]]
    message = " ".join(itertools.takewhile(lambda line: not line.startswith(("─", "╰")), lines))
    for words, plain in PLAIN.items():
        message = message.replace(words, plain)
    raise ValueError(f"{message}; see {prog} --help")


def _decimal(text: str) -> str:
    return str(float(Fraction(text))) if re.fullmatch(r"\d+/[1-9]\d*", text) else text


COMMANDS = {
    "list": show_list,
    "run": run,
    "plot": plot,
    "pretrain": pretrain,
    "fit": fit,
    "diagnose": diagnose,
    "play": play,
    "eq": show_equation,
}


def use_compilation_cache() -> None:
    """Lets JAX keep compiled programs in the user's cache folder; must come before JAX is imported."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ggpi" / "jax"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def find_own_modules(*named: str | None) -> None:
    """Lets `--env boat:Boat-v0` find a boat.py in this directory, after everything that is installed.

    Only if something with a module or file was named: else a file of this directory could stand in for a package
    that is not installed.
    """
    here = str(Path.cwd())
    if here not in sys.path and any(word and ":" in word for word in named):
        sys.path.append(here)
