"""How the closed loop of `ogbench-mazes` grows: success and time against data, network and graph.

One size differs at a time from the base, with one seed of models:

    transitions   that models learn from, and that landmarks are chosen from
    units         of each layer of the network
    landmarks     of the graph
    jumps         of each policy from each landmark

A size of the graph costs no training.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.ogbench import mazes
from ggpi.lab.ogbench.before import describe
from ggpi.lab.ogbench.episodes import success

SIZES = {
    "num_transitions": "transitions",
    "width": "units of a layer",
    "num_landmarks": "landmarks",
    "num_jumps": "jumps of each policy",
}
"""Fields of the base, and what they are called."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes, in the place of the base's own."""
    base: mazes.Config = field(default_factory=mazes.Config)
    """Maze, models, graph and episodes that all others differ from."""
    num_transitions: tuple[int, ...] = (50_000, 100_000, 200_000, 400_000)
    """Numbers of transitions; the base's own is added, here and below."""
    width: tuple[int, ...] = (32, 64)
    """Widths of the network."""
    num_landmarks: tuple[int, ...] = (500, 1_000, 2_000)
    """Numbers of landmarks."""
    num_jumps: tuple[int, ...] = (2, 4, 8)
    """Numbers of jumps."""


PRESETS = {
    "tiny": Config(
        base=mazes.PRESETS["tiny"], num_transitions=(), width=(16,), num_landmarks=(20,), num_jumps=(2,)
    ),
    "cpu": Config(base=replace(mazes.PRESETS["cpu"], episodes=2), num_transitions=(100_000, 200_000)),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of the closed loop with every size, and the time of each phase."""
    base = replace(config.base, seed=config.seed)
    others, rows = dict[str, Callable[[], Metrics]](), []
    for name, words in SIZES.items():
        own = getattr(base, name)
        for value in sorted({own, *getattr(config, name)}):
            cell = "base" if value == own else f"{name}/{value}"
            if value != own:
                others[cell] = partial(grown, replace(base, **{name: value}))
            rows.append({"group": words, "setting": value, "cell": cell})
    # the last groups share the models of the base, which are at hand
    results = cells({"base": partial(grown, base), **dict(reversed(others.items()))})
    return {
        "maze": base.maze,
        "episodes": base.episodes * len(OGBenchMaze(base.maze).tasks),
        "rows": [row | results[row["cell"]] for row in rows],
    }


def grown(base: mazes.Config) -> Metrics:
    """The closed loop with a size, and what is known before its episodes."""
    found, played = describe(mazes.training_of(base, 0), base.sizes), mazes.loop(base, 0)
    return found | {
        "success": success(np.asarray(played["steps"])),
        "seconds_per_plan": played["seconds_per_plan"],
    }
