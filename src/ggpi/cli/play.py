"""`ggpi play MODELS --reward REWARD`: an agent acts for a reward that it was not trained on."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from ggpi.cli.own_modules import find_own_modules
from ggpi.progress import waiting

HELP, USAGE = "act for a new reward", "MODELS --reward REWARD [options]"
EXAMPLES = """\
rewards:
  target:x=1,y=2,radius=.5      1 on entering a state within .5 of this point, in the named coordinates
  features:vx=1,spin=-.1        a weighted sum of coordinates of the state that is entered
  formula:disc(1,2,.5)-.1*vx    a formula: coordinates, + - * / ^ < >, abs, exp, log, sqrt, sin, cos, tanh, min, max,
                                disc(x,y,radius), box(x1,y1,x2,y2), line(x1,y1,x2,y2,width)
  saved:DIR                     a reward of ggpi.save, such as one of ggpi.fit_reward
  python:FILE.py:NAME           NAME in FILE.py: a reward, or a function of the state that is entered. This runs the
                                code of FILE.py, so only name files that you trust

examples:
  ggpi play models --reward target:x=1,y=2,radius=.5 --depth 2 --video out.mp4
  ggpi play models --reward target:x=1,y=2,radius=.5 --depth 1      plain GPI
  ggpi play models --reward target:x=1,y=2,radius=.5 --compare      is it better than the policies alone?
  ggpi play ant-ghms --reward "formula:disc(2, 2, .5)"              models that come with the package
  ggpi play models --env boat:Boat-v0 --reward features:x=1         import the environment's module first
  ggpi play four-rooms --reward "formula:disc(9, 7, 1)" --start 3,2      a world of ggpi studio that has no directory
"""
FIELDS = (
    *("reward", "depth", "samples", "episodes", "max_steps", "seed", "terminal", "env", "first_actions"),
    *("planner", "gamma", "alpha", "start"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Models, reward, episodes and what is written; and how the agent plans."""
    parser.add_argument(
        "models",
        metavar="MODELS",
        type=Path,
        help="a directory of ggpi fit, shipped models such as ant-ghms, or a world of ggpi studio: four-rooms, or a "
        "maze of OGBench such as pointmaze-giant (required)",
    )
    parser.add_argument("--reward", required=True, help="see below (required)")
    parser.add_argument(
        "--env",
        metavar="MODULE:ID",
        help="the models' environment, if a module has to be imported; runs its code",
    )
    parser.add_argument(
        "--episodes", type=int, default=5, metavar="N", help="number of episodes (default: 5)"
    )
    parser.add_argument(
        "--max-steps", type=int, default=1000, metavar="N", help="longest episode, in steps (default: 1000)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of resets and samples (default: 0)"
    )
    parser.add_argument(
        "--start",
        type=numbers,
        metavar="X,Y,…",
        help="the state in which every episode starts, in environments that can be put in one; of a finite world the "
        "place. Write --start=-1,2 if the first number is negative",
    )
    parser.add_argument("--video", type=Path, metavar="FILE.mp4", help="film all episodes")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="also play every base policy, random switching and all depths up to --depth: table, figure and numbers",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="directory of --compare (default: results/compare-MODELS)"
    )
    _add_agent_options(parser)
    _add_studio_options(parser)


def _add_agent_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("planning")
    group.add_argument(
        "--depth",
        type=depth,
        default=2,
        metavar="N",
        help="planning depth; 1 is plain GPI, each extra level adds one policy switch; inf is the closed loop, which "
        "draws jumps between landmarks first (default: 2)",
    )
    group.add_argument(
        "--samples",
        type=int,
        default=100,
        metavar="N",
        help="samples for each switching policy (default: 100)",
    )
    group.add_argument(
        "--terminal",
        metavar="FILE.py:NAME",
        help="JAX predicate state → bool marking terminal states (use | and &, not or/and); runs FILE.py",
    )
    group.add_argument(
        "--first-actions",
        metavar="WHICH",
        help="how the first action is chosen. head: by the best plan's first policy; step, all: score every discrete "
        "action, with a model of the next state or with the models of the future; a number: score so many actions of "
        "each policy (default: head)",
    )


def _add_studio_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("planning as in ggpi studio")
    group.add_argument("--planner", metavar="WHICH", help="exhaustive, halving or beam (default: exhaustive)")
    group.add_argument("--gamma", type=float, metavar="X", help="discount, of models that allow another")
    group.add_argument(
        "--alpha", type=float, metavar="X", help="switching probability, of models that allow another"
    )


def depth(text: str) -> int | float:
    """A whole number, or inf."""
    if text == "inf":
        return float("inf")
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or inf, got {text!r}") from None


def numbers(text: str) -> tuple[float, ...]:
    """Numbers between commas."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(f"expected finite numbers separated by commas, got {text!r}")
    return found


def run(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Plays episodes and prints a table of them; films them if asked."""
    is_code = options.reward.startswith("python:")
    find_own_modules(options.env, options.terminal, options.reward if is_code else None)
    with waiting("starting…"):
        from rich.console import Console

        from ggpi.cli.play_episodes import PlayConfig, compare_agents, play
        from ggpi.cli.play_world import is_world, play_world

    config = PlayConfig(**{name: getattr(options, name) for name in FIELDS})
    if is_world(options.models):
        if options.video or options.compare:
            raise ValueError("--video and --compare need a directory of ggpi fit, or shipped models")
        Console().print(play_world(options.models.name, config))
        return
    if options.compare:
        if options.video:
            raise ValueError("--compare makes no film; use --video without it")
        out = options.out or Path("results") / f"compare-{options.models.resolve().name}"
        Console().print(compare_agents(options.models, config, out))
        print(f"figure:  {out / 'figure.png'}\nnumbers: {out / 'metrics.json'}")
        return
    Console().print(play(options.models, config, options.video))
    if options.video:
        print(f"film:    {options.video}")
