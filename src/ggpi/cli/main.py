"""The command `ggpi`: reads the command line and calls one of the modules that are commands.

A command is a module with `HELP` (one line), `USAGE`, `EXAMPLES`, `add_options(parser)` and `run(options, rest)`, where
`rest` are options that only the command knows. These modules import nothing heavy before they run.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ggpi.cli import diagnose, eq, fit, listing, play, plot, pretrain, run, stopping, studio, sweep
from ggpi.cli.config import Parser

EXAMPLES = """\
examples:
  ggpi list                                             the experiments: figures and tables of the paper
  ggpi run four-rooms-transfer                          run one of them on two cores
  ggpi run four-rooms-transfer --gamma .95 --seed 3     change fields of its config
  ggpi run four-rooms-transfer --help                   describe these fields
  ggpi sweep four-rooms-transfer --set gamma=.9,.95     run it with several settings
  ggpi plot results/four-rooms-transfer-cpu-seed0       redraw its figure
  ggpi fit --env Pendulum-v1 --policies a.zip b.zip     learn models of your own policies
  ggpi diagnose MODELS --env ggpi/PointMass-v0          compare the models with simulation
  ggpi play MODELS --reward target:x=1,y=2,radius=.5    act for a new reward
  ggpi studio                                           click a reward in the browser, watch plans and the agent
  ggpi pretrain ant                                     retrain the ant's base policies
  ggpi fit ant                                          retrain the ant's models
  ggpi eq 3.2                                           find Theorem 3.2 in the code
"""
MODULES: dict[str, Any] = {
    "list": listing,
    "run": run,
    "sweep": sweep,
    "plot": plot,
    "fit": fit,
    "diagnose": diagnose,
    "play": play,
    "studio": studio,
    "pretrain": pretrain,
    "eq": eq,
}
COMMANDS = {name: module.run for name, module in MODULES.items()}
RAW = argparse.RawDescriptionHelpFormatter


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns 0, 2 after an error of the user's, or 130 after Ctrl-C."""
    use_compilation_cache()
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


def parser() -> argparse.ArgumentParser:
    """What `ggpi` understands; `command` is the name of the command."""
    whole = Parser(
        prog="ggpi",
        usage="ggpi COMMAND [options]",
        description="Generalised policy improvement with geometric policy composition.",
        epilog=EXAMPLES,
        formatter_class=RAW,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = whole.add_subparsers(prog="ggpi", title="commands", metavar="COMMAND", required=True)
    for name, module in MODULES.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            usage=f"ggpi {name} {module.USAGE}".strip(),
            epilog=module.EXAMPLES,
            formatter_class=RAW,
            allow_abbrev=False,
            conflict_handler="resolve",  # some commands have a --help of their own
        )
        module.add_options(command)
        command.set_defaults(command=name, parser=command)
    return whole


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"ggpi {version('ggpi')}")
        parser.exit()


def use_compilation_cache() -> None:
    """Lets JAX keep compiled programs in the user's cache folder; must be called before JAX is imported."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ggpi" / "jax"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
