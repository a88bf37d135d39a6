"""How many of OGBench's ants lie on their backs while their walkers are switched at random, in the open and in a maze.

Each ant follows one of the eight shipped walkers for 1 to 40 steps, then another. Ants are looked at a few times on the
way, so that the share on their backs is seen to grow or to settle, and so is how many get up again.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import binomtest

from ggpi.envs.ant.ogbench_ground import SUBSTEPS, ogbench_ground
from ggpi.envs.ogbench_bodies import Ant
from ggpi.envs.ogbench_maze import MAZES, OGBenchMaze
from ggpi.lab import one_of
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.ogbench.models import kind_of
from ggpi.lab.ogbench.walkers import TURN, on_backs, walk
from ggpi.lab.pretraining.trials import random_switches
from ggpi.policies import PolicyBank

SWITCHED = 4_000_000
"""Seeds of these ants."""
PLACES = {"open": "in the open", "maze": "in the maze"}


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of ants and turns."""
    maze: str = "antmaze-medium"
    """An ant maze of ogbench-mazes."""
    num_ants: int = 1_000
    """Ants in the open, and as many in the maze."""
    steps: int = 1_000
    """Steps of random switching."""
    looks: int = 4
    """How often ants are looked at, the last time after all steps."""

    def __post_init__(self):
        one_of("maze", self.maze, [maze for maze in MAZES if maze.startswith("antmaze")])
        if not 1 <= self.looks <= self.steps or self.num_ants < 1:
            raise ValueError(f"ants are looked at 1 to {self.steps} times, got {self.looks}")


PRESETS = {
    "tiny": Config(num_ants=8, steps=20, looks=2),
    "cpu": Config(),
    "paper": Config(num_ants=10_000),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Shares on their backs at each look, and of those that had got up by the next."""
    results = cells({name: partial(switched, config, name) for name in PLACES})
    return {
        "maze": config.maze,
        "ants": config.num_ants,
        "times": looks_of(config),
        "places": {words: _shares(np.array(results[name]["down"])) for name, words in PLACES.items()},
    }


def looks_of(config: Config) -> list[int]:
    """The steps after which ants are looked at."""
    return [config.steps * (i + 1) // config.looks for i in range(config.looks)]


def switched(config: Config, place: str) -> Metrics:
    """Which ants lie on their backs at each look [looks, ants]."""
    world, seed = OGBenchMaze(config.maze), SWITCHED + 10 * config.seed + list(PLACES).index(place)
    bank, rng = PolicyBank(list(kind_of(config.maze).policies())), np.random.default_rng(seed)
    turns = random_switches(len(bank), TURN, config.steps, config.num_ants, seed)
    if place == "open":
        plane = Ant(ogbench_ground("RK4", 0).model, SUBSTEPS, world.num_threads)
        step, states = plane.step, plane.standing(np.zeros((config.num_ants, 2)), rng)
    else:
        step, states = world.step, world.start(config.num_ants, rng)
    found, begun = [], 0
    for look in looks_of(config):
        states = walk(bank, step, states, turns[begun:look], seed + 1_000_000 * (len(found) + 1))
        found.append(on_backs(states))
        begun = look
    return {"down": np.array(found)}


def _shares(down: np.ndarray) -> Metrics:
    """With exact 95% intervals; of ants that get up, all pairs of looks together."""
    lay, up = down[:-1].sum(), (down[:-1] & ~down[1:]).sum()
    return {
        "down": [_share(int(one.sum()), one.size) for one in down],
        "got_up": _share(int(up), int(lay)) if lay else None,
    }


def _share(count: int, size: int) -> Metrics:
    interval = binomtest(count, size).proportion_ci()
    return {"mean": count / size, "low": float(interval.low), "high": float(interval.high), "count": count}
