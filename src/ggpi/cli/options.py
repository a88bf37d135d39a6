"""What the command `ggpi` understands: its commands, their options and their examples."""

import argparse
from pathlib import Path
from typing import Any, NoReturn

EXAMPLES = """\
examples:
  ggpi list                                             the experiments, each a figure or table of the paper
  ggpi run four-rooms-transfer                          the paper's claim, on two cores
  ggpi run four-rooms-transfer --gamma .95 --seed 3     any field of its config may be changed
  ggpi run four-rooms-transfer --help                   what these fields are
  ggpi plot results/four-rooms-transfer-cpu-seed0       draw again without computing
  ggpi pretrain ant                                     the ant's base policies, made again
  ggpi fit --env Pendulum-v1 --policies a.zip b.zip     models of your own world and policies
  ggpi fit ant                                          the ant's models, made again
  ggpi diagnose MODELS --env ggpi/PointMass-v0          learned models against true futures
  ggpi play MODELS --reward target:x=1,y=2,radius=.5    act for a reward that nobody trained on
  ggpi eq 3.2                                           where Theorem 3.2 is in the code
"""
RUN_EXAMPLES = """\
examples:
  ggpi run four-rooms-transfer                          the paper's claim, on two cores
  ggpi run four-rooms-transfer --gamma .95 --seed 3     any field of its config may be changed, also to 1/9
  ggpi run four-rooms-transfer --help                   what these fields are

A run that was stopped continues when the same command is given again.
"""
FIT_EXAMPLES = """\
examples:
  ggpi fit ant                            the paper's ant, on two cores
  ggpi fit ant --preset tiny --seed 3     any field of its config may be changed; ggpi fit ant --help lists them
  ggpi fit --env Pendulum-v1 --policies swing.zip hold.zip --gamma .95 --alpha .1 --out models
  ggpi fit --env gymnasium_robotics:PointMaze_UMaze-v3 --keys observation --policies up.zip down.zip
  ggpi fit --env Pendulum-v1 --policies swing.zip hold.zip --data recorded.hdf5
  ggpi fit --env Pendulum-v1 --policies swing.zip:swing.pkl hold.zip:hold.pkl      with files of VecNormalize.save

Policies are zips of Stable-Baselines3 or directories of ggpi.save. A fit that was stopped continues when the same
command is given again, a finished one when --steps is larger.
"""
DIAGNOSE_EXAMPLES = """\
examples:
  ggpi diagnose models --env ggpi/PointMass-v0          fresh futures of each policy
  ggpi diagnose models --data recorded.npz              futures in trajectories that the policies left
"""
PRETRAIN_EXAMPLES = """\
examples:
  ggpi pretrain ant                                     the shipped policies, made again
  ggpi pretrain ant --algorithm mpo --seed 3            any field of its config may be changed

A training that was stopped continues when the same command is given again.
"""
PLAY_EXAMPLES = """\
rewards:
  target:x=1,y=2,radius=.5      1 for arriving within .5 of this place, in the named numbers of the state
  features:vx=1,spin=-.1        a weighted sum of named numbers of the state, paid on arrival
  saved:DIR                     a reward that ggpi.save wrote, such as one of ggpi.fit_reward
  python:FILE.py:NAME           what FILE.py calls NAME: a reward, or a function of the state that is entered; this runs
                                the code of FILE.py, so give only files that you know

examples:
  ggpi play models --reward target:x=1,y=2,radius=.5 --depth 2 --video out.mp4
  ggpi play models --reward target:x=1,y=2,radius=.5 --depth 1      the same without looking ahead: GPI
  ggpi play models --reward target:x=1,y=2,radius=.5 --compare      is it better than the policies alone?
  ggpi play models --env boat:Boat-v0 --reward features:x=1         an environment whose module is imported first
"""
RAW = argparse.RawDescriptionHelpFormatter


class _Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("invalid int value:", "expected a whole number, got")
        raise ValueError(f"{message}; see {self.prog} --help")


class _Version(argparse.Action):
    """Looks the version up only when it is wanted."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"ggpi {version('ggpi')}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """What `ggpi` understands; `command` is the name of the command."""
    title = "Generalised policy improvement with geometric policy composition."
    whole = _Parser(
        prog="ggpi",
        usage="ggpi COMMAND [options]",
        description=title,
        epilog=EXAMPLES,
        formatter_class=RAW,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = whole.add_subparsers(prog="ggpi", title="commands", metavar="COMMAND", required=True)
    _add(commands, "list", "", help="name all experiments")
    for add in (_add_run, _add_plot, _add_pretrain, _add_fit, _add_diagnose, _add_play, _add_eq):
        add(commands)
    return whole


def _add(commands: Any, name: str, usage: str, **settings: Any) -> argparse.ArgumentParser:
    """A command; its usage names what has to be given."""
    usage = f"ggpi {name} {usage}".strip()
    settings = {"allow_abbrev": False, "formatter_class": RAW, "conflict_handler": "resolve", **settings}
    command = commands.add_parser(name, usage=usage, **settings)
    command.set_defaults(command=name, parser=command)
    return command


def _add_run(commands: Any) -> None:
    command = _add(
        commands, "run", "NAME [options]", help="run an experiment", add_help=False, epilog=RUN_EXAMPLES
    )
    command.add_argument("name", metavar="NAME", nargs="?", help="one of those in ggpi list (required)")
    command.add_argument(
        "--preset",
        default="cpu",
        metavar="P",
        help="tiny, cpu or paper: the paper's full scale (default: cpu)",
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/NAME-PRESET-seedN")
    command.add_argument("--force", action="store_true", help="replace other results of ggpi in DIR")
    command.add_argument("-h", "--help", action="store_true", help="with NAME: the fields of its config too")


def _add_plot(commands: Any) -> None:
    command = _add(commands, "plot", "DIR", help="redraw finished results")
    command.add_argument(
        "directory", metavar="DIR", type=Path, help="a directory written by ggpi run (required)"
    )


def _add_pretrain(commands: Any) -> None:
    command = _add(
        commands,
        "pretrain",
        "ant [options]",
        help="train base policies",
        add_help=False,
        epilog=PRETRAIN_EXAMPLES,
    )
    command.add_argument("world", metavar="ant", nargs="?", help="the sparse-reward ant (required)")
    command.add_argument(
        "--preset", default="cpu", metavar="P", help="tiny, cpu or paper: the paper's sizes (default: cpu)"
    )
    command.add_argument(
        "--algorithm", metavar="A", help="mpo or ppo; by default what is best for the preset"
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/pretrain-ant-…")
    command.add_argument("-h", "--help", action="store_true", help="show this help message and exit")


def _add_diagnose(commands: Any) -> None:
    command = _add(
        commands,
        "diagnose",
        "MODELS (--env ID | --data FILE) [options]",
        help="compare saved models with true futures",
        epilog=DIAGNOSE_EXAMPLES,
    )
    command.add_argument(
        "models", metavar="MODELS", type=Path, help="written by ggpi.save, or by ggpi.fit(out=…) (required)"
    )
    command.add_argument(
        "--env",
        metavar="ID",
        help="a Gymnasium environment, such as ggpi/PointMass-v0 (required, unless there is --data)",
    )
    command.add_argument(
        "--data",
        metavar="FILE",
        help="trajectories: .npz, .hdf5, .npy files, or a Minari dataset (required, unless there is --env)",
    )
    command.add_argument(
        "--keys", metavar="TEXT", help="parts of dictionary observations that make the state: observation"
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/diagnose-NAME")
    command.add_argument(
        "--seed", type=int, metavar="N", default=0, help="of futures and samples (default: 0)"
    )


def _add_eq(commands: Any) -> None:
    command = _add(commands, "eq", "ID", help="find an item of the paper in the code")
    command.add_argument(
        "id", metavar="ID", nargs="+", help='such as 3.2, "Thm 3.2", eq6, "Fig 3", "Alg 1" (required)'
    )


def _add_fit(commands: Any) -> None:
    command = _add(
        commands,
        "fit",
        "--env ID --policies FILE … [options]\n       ggpi fit ant [options]",
        help="learn models of policies' futures",
        add_help=False,
        epilog=FIT_EXAMPLES,
    )
    command.add_argument("--preset", metavar="P", help="of the ant: tiny, cpu or paper (default: cpu)")
    command.add_argument("--out", type=Path, metavar="DIR", help="default: results/fit-WORLD-…")
    command.add_argument(
        "--tensorboard", action="store_true", help="write curves for TensorBoard to DIR, too"
    )
    command.add_argument("-h", "--help", action="store_true", help="show this help message and exit")


def _add_play(commands: Any) -> None:
    command = _add(
        commands,
        "play",
        "MODELS --reward REWARD [options]",
        help="act for a reward that nobody trained on",
        epilog=PLAY_EXAMPLES,
    )
    command.add_argument(
        "models", metavar="MODELS", type=Path, help="a directory that ggpi fit wrote (required)"
    )
    command.add_argument("--reward", required=True, help="in words, see below (required)")
    command.add_argument(
        "--env",
        metavar="MODULE:ID",
        help="the models' environment, if its module has to be imported (which runs the module's code)",
    )
    command.add_argument(
        "--depth",
        type=int,
        default=2,
        metavar="N",
        help="1 is GPI; each more looks one switch ahead (default: 2)",
    )
    command.add_argument(
        "--samples", type=int, default=100, metavar="N", help="for each switching policy (default: 100)"
    )
    command.add_argument("--episodes", type=int, default=5, metavar="N", help="how many (default: 5)")
    command.add_argument(
        "--max-steps",
        type=int,
        default=1000,
        metavar="N",
        help="cut an episode after so many (default: 1000)",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of resets and samples (default: 0)"
    )
    command.add_argument(
        "--terminal",
        metavar="FILE.py:NAME",
        help="a function of JAX (jnp; |, & in the place of or, and): does the world end in this state? Runs FILE.py",
    )
    command.add_argument(
        "--first-actions",
        metavar="WHICH",
        help="head: the best plan's first policy acts; step, all: score every discrete action, by a model of the next "
        "state or by models of the future alone; a number: score so many of each policy's actions (default: head)",
    )
    command.add_argument("--video", type=Path, metavar="FILE.mp4", help="film all episodes")
    command.add_argument(
        "--compare",
        action="store_true",
        help="play every base policy, random switching and all depths up to --depth too: table, picture, JSON",
    )
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="of --compare (default: results/compare-MODELS)"
    )
