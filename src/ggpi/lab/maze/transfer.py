"""Zero-shot transfer in PointMaze: targets anywhere in a maze, reached by policies that know only directions.

The maze is UMaze, or for the full size a hook: a U with one more corner, drawn in `HOOK`. A ball starts in the
first cell. A plan of n policies imagines n − 1 turns, so targets behind two turns are out of sight for depth 2 and
in sight for depth 3. Out of sight the value of every plan is 0, and the ball wanders until a target comes in sight.

Equal budgets as for the ant: n samples for each of 16 GSPs at depth 2, 4n for each of 4 at depth 1, n/4 of 64 at
depth 3, n/16 of 256 at depth 4. The oracle plans with the simulator instead of models: the score of perfect
models. Beside them: each policy alone, random switching, and a guide who knows the maze.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.envs.maze import PointMaze
from ggpi.ghm.base import GHMs
from ggpi.lab import agents
from ggpi.lab.agents import budget
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.maze import scores
from ggpi.lab.maze import tasks as maze
from ggpi.lab.maze.calibration import calibration
from ggpi.lab.maze.models import RECIPES, SHIPPED, MazeFit, models
from ggpi.rewards import target
from ggpi.storage.pretrained import pretrained
from ggpi.types import Key

HOOK = """
#####
#...#
###.#
#...#
#.###
#...#
#####
"""
RANDOM_TURN = 20
"""Longest turn under random switching."""
SHOWN = 60
"""Samples for each GSP in the plans of the picture."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    maze: str = HOOK
    """UMaze, Medium, Large, or a drawing."""
    turns: tuple[int, ...] = (0, 1, 2, 3)
    """Targets are grouped by the turns of the shortest route."""
    depths: tuple[int, ...] = (1, 2, 3, 4)
    """Depths of the plans; 2 and 3 at least."""
    num_models: int = 5
    """Seeds of models."""
    episodes: int = 100
    """Episodes of each agent for each number of turns, the same for all."""
    samples: int = 64
    """Samples n for each GSP of depth 2."""
    max_steps: int = 40
    """Steps of an episode."""
    oracle_episodes: int = 40
    """Episodes of the oracle for each number of turns: the first ones of all."""
    oracle_samples: int = 16
    """The oracle's samples n for each GSP of depth 2: every one is true, so it needs fewer."""
    num_transitions: int = 1_000_000
    """Transitions that models learn from."""
    model: Literal["flow", "flow-matching"] = "flow"
    """Spline flows by CETD, or flow matching by TD²-CFM."""
    training_steps: int = 50_000
    """Steps of training; 0 takes the shipped models of Medium."""
    num_pairs: int = 64
    """Pairs (x, a) at which models are compared with simulation, and simulated futures of each."""

    def __post_init__(self):
        if not {2, 3} <= set(self.depths):
            raise ValueError(f"depths hold 2 and 3, which are compared, got {self.depths}")
        if not self.training_steps and (self.maze, self.num_models) != ("Medium", 1):
            raise ValueError(
                "training_steps=0 takes the shipped models, one seed, of Medium; got "
                f"num_models={self.num_models} and {self.maze}"
            )


PRESETS = {
    "tiny": Config(
        maze="UMaze",
        turns=(2,),
        depths=(2, 3),
        num_models=1,
        episodes=2,
        samples=8,
        max_steps=4,
        oracle_episodes=1,
        oracle_samples=8,
        num_transitions=2_048,
        training_steps=20,
        num_pairs=8,
    ),
    "cpu": Config(
        maze="UMaze",
        turns=(0, 1, 2),
        num_models=3,
        episodes=34,
        oracle_episodes=8,
        num_transitions=200_000,
        training_steps=5_000,
        num_pairs=32,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of every agent."""
    few, deepest_first = replace(config, episodes=config.oracle_episodes), config.depths[::-1]
    true = {f"oracle/depth-{d}": partial(true_plan, few, d) for d in deepest_first}
    jobs: Metrics = {}
    for s in range(config.num_models):
        jobs |= {f"models/{s}": partial(calibrate, config, s)}
        jobs |= {f"learned/depth-{d}/{s}": partial(plan, config, s, d) for d in deepest_first}
        jobs |= true  # after the first models: a run that is cut short has both
    jobs |= {"picture": partial(picture, config)}
    jobs |= {f"alone/{k}": partial(alone, config, k) for k in range(4)}
    jobs |= {"random": partial(random_switching, config), "guide": partial(guided, config)}
    results = cells(jobs)
    return _metrics(config, results)


def calibrate(config: Config, seed: int) -> list[Metrics]:
    """How near the models are to simulation, before any planning."""
    ghms = models_of(config, seed)
    return calibration(PointMaze(config.maze), ghms, config.num_pairs, config.num_pairs)


def models_of(config: Config, seed: int) -> GHMs:
    """The models of a seed, or the shipped ones."""
    if not config.training_steps:
        return pretrained(SHIPPED).with_gamma(maze.GAMMA).with_alpha(maze.ALPHA)
    recipe = replace(RECIPES[config.model], steps=config.training_steps)
    return models(MazeFit(config.maze, seed, config.num_transitions, recipe))


def plan(config: Config, seed: int, depth: int) -> Metrics:
    """Episodes of GGPI at a depth, with learned models."""
    ghms = models_of(config, seed)
    return play(config, agents.planner(ghms, depth, budget(config.samples, depth), maze.RADIUS))


def true_plan(config: Config, depth: int) -> Metrics:
    """Episodes of the same planner with the simulator instead of models."""
    return play(config, oracle(PointMaze(config.maze), depth, config.oracle_samples))


def oracle(world: PointMaze, depth: int, samples: int) -> agents.Decide:
    """The planner on the simulator, at the budget of `samples` for each GSP of depth 2."""
    return agents.oracle(
        world,
        maze.policies(),
        maze.GAMMA,
        maze.ALPHA,
        depth=depth,
        num_samples=budget(samples, depth),
        radius=maze.RADIUS,
    )


def alone(config: Config, policy: int) -> Metrics:
    """Episodes of one policy."""
    return play(config, agents.alone(maze.policies(), policy))


def random_switching(config: Config) -> Metrics:
    """Episodes of policies that take turns at random."""
    return play(config, agents.random_switching(maze.policies(), RANDOM_TURN))


def guided(config: Config) -> Metrics:
    """Episodes of the same policies, chosen by a guide who knows the maze."""
    world = PointMaze(config.maze)
    return play(config, maze.guide(world, maze.policies(), world.free))


def play(config: Config, decide: agents.Decide) -> Metrics:
    """Steps to the target in each episode (0: not reached), and the time of a decision."""
    world, seed = PointMaze(config.maze), maze.REPORTED + 1_000 * config.seed
    timed = agents.Timed(decide)
    given = maze.tasks(world, config.turns, config.episodes, seed)
    steps, _ = maze.episodes(world, timed, given, seed, config.max_steps)
    return {"steps": steps, "seconds_per_plan": timed.seconds_per_decision}


def picture(config: Config) -> Metrics:
    """An episode at depth 3 to a target behind two turns, and the samples of its first plan, with more samples."""
    world, seed = PointMaze(config.maze), maze.REPORTED + 500 + 1_000 * config.seed
    given = maze.tasks(world, (2,), 1, seed)
    ghms = models_of(config, 0)
    agent = GGPIAgent(ghms, target(given.targets[0], maze.RADIUS), depth=3, num_samples=SHOWN)
    plans = []

    def decide(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        plans.append(agent.plan(states[0], key=key))
        return plans[-1].action[None]

    steps, places = maze.episodes(world, decide, given, seed, config.max_steps)
    best = int(plans[0].best)
    return {
        "target": given.targets[0],
        "plan": plans[0].gsps[best].name(ghms.names),
        "samples": [np.round(part[:, :2].astype(float), 3) for part in plans[0].samples(best)],
        "path": np.round(places[:, 0].astype(float), 3),
        "steps": int(steps[0]),
    }


def _metrics(config: Config, results: Metrics) -> Metrics:
    world = PointMaze(config.maze)
    targets = maze.targets_by_turns(world)
    return {
        "maze": config.maze,
        "free": world.free,
        "turns": config.turns,
        "targets": {str(k): targets[k] for k in config.turns},
        "depths": config.depths,
        "num_models": config.num_models,
        "episodes": config.episodes,
        "samples": config.samples,
        "oracle_episodes": config.oracle_episodes,
        "oracle_samples": config.oracle_samples,
        "radius": maze.RADIUS,
        "calibration": scores.mean_calibration([results[f"models/{s}"] for s in range(config.num_models)]),
        **_compared(config, world, results),
        "picture": results["picture"],
    }


def _compared(config: Config, world: PointMaze, results: Metrics) -> Metrics:
    """Success of all agents by turns and by target, and what each more policy in a plan gains."""
    turns, depths = config.turns, config.depths
    learned = {d: [results[f"learned/depth-{d}/{s}"] for s in range(config.num_models)] for d in depths}
    true = {d: [results[f"oracle/depth-{d}"]] for d in depths}
    few = config.oracle_episodes * len(turns)
    same = {d: [{"steps": part["steps"][:few]} for part in parts] for d, parts in learned.items()}
    baselines = {f"{p.name} alone": [results[f"alone/{k}"]] for k, p in enumerate(maze.policies())}
    baselines |= {"random switching": [results["random"]], "guide who knows the maze": [results["guide"]]}
    cells = maze.tasks(world, turns, config.episodes, 0).cells
    by_target = {"learned": scores.by_target(cells, learned), "oracle": scores.by_target(cells[:few], true)}
    return {
        "learned": {str(d): scores.by_turns(turns, learned[d]) for d in depths},
        "oracle": {str(d): scores.by_turns(turns, true[d]) for d in depths},
        "same_episodes": {str(d): scores.by_turns(turns, same[d]) for d in depths},
        "minus_oracle": {str(d): scores.minus_oracle(turns, same[d], true[d]) for d in depths},
        "baselines": {name: scores.by_turns(turns, found) for name, found in baselines.items()},
        "by_target": by_target,
        "gains": {"learned": scores.gains(turns, learned), "oracle": scores.gains(turns, true)},
        "depth_3_needed": {
            name: scores.depth_3_needed(config.maze, rows) for name, rows in by_target.items()
        },
        "seconds_per_plan": {
            str(d): float(np.mean([cell["seconds_per_plan"] for cell in learned[d]])) for d in depths
        },
    }
