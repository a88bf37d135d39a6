"""Mazes with many turns: closed-loop switching on a jumpy graph, beside plans of fixed depth and other searches.

A ball that can be pushed in eight directions looks for targets behind many turns. No policy knows the maze; one
flow-matching network for the eight policies learns it from transitions.

    closed loop       a graph of landmarks, built once and solved for each target; one jump from the true state
    depth m           m policies in a row; at depth 3 and 4 with fewer samples of each plan
    halving           plans of depth 3, sampled adaptively, with memory of the last decision
    cross-entropy     plans of depth 4, drawn from a distribution that is fitted to the best ones
    recorded steps    shortest ways over recorded transitions between the same landmarks; no model
    closed loop, true the closed loop with simulated jumps in the place of models
    guide             knows the maze: the upper bound

Before any episode a table says how many samples lie in walls, how well landmarks cover the jumps, and by how much the
graph overestimates V compared with fresh jumps. Agents other than
the closed loop have the models of the first seed.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import jax
import numpy as np

from ggpi.agent import fresh_values
from ggpi.agent.agent import GGPIAgent
from ggpi.lab import agents
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.maze import scores, true_loop
from ggpi.lab.maze import tasks as maze
from ggpi.lab.maze.closed_loop_models import (
    RECIPE,
    Sizes,
    Training,
    data_of,
    described,
    graph_of,
    models,
    policies,
)
from ggpi.lab.maze.recorded_search import recorded_search
from ggpi.lab.maze.value_maps import value_map
from ggpi.planning import CrossEntropy, Exhaustive, JumpyGraph, SequentialHalving
from ggpi.rewards import target

RANDOM_TURN = 20
OTHERS = {
    "halving": "halving, depth 3",
    "cross-entropy": "cross-entropy, depth 4",
    "recorded": "recorded steps",
    "true": "closed loop, true",
    "random": "random switching",
    "guide": "guide",
}
"""Agents beside the closed loop and plans of fixed depth."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    maze: str = "Large"
    """UMaze, Medium, Large, Snake (a corridor of eight turns), or a drawing."""
    num_models: int = 3
    """Seeds of models."""
    first_model: int = 0
    """The first of these seeds."""
    depths: tuple[int, ...] = (1, 2, 3, 4)
    """Depths of plans, beside the closed loop."""
    others: tuple[str, ...] = tuple(OTHERS)
    """Other agents: halving, cross-entropy, recorded, true, random, guide."""
    episodes: int = 20
    """Episodes of the closed loop for each number of turns."""
    few_episodes: int = 5
    """Of the other agents: the first ones of all."""
    max_steps: int = 200
    """Steps of an episode."""
    num_transitions: int = 1_000_000
    """Transitions that models learn from."""
    training_steps: int = 20_000
    """Steps of training; 0 takes the shipped models of Medium."""
    num_landmarks: int = 4_000
    """Landmarks of the graph."""
    num_jumps: int = 16
    """Jumps of each policy from each landmark."""
    num_neighbours: int = 3
    """Landmarks that V is interpolated from."""
    samples: int = 32
    """Samples for each policy of the closed loop, and for each plan of depth 2."""
    draws: int = 4_096
    """Draws of a decision by halving and, about, by the cross-entropy method."""

    def __post_init__(self):
        if unknown := set(self.others) - set(OTHERS):
            raise ValueError(f"others are of {list(OTHERS)}, got {sorted(unknown)}")

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.num_landmarks, self.num_jumps, self.num_neighbours)


PRESETS = {
    "tiny": Config(
        maze="UMaze",
        num_models=1,
        depths=(1,),
        others=("recorded", "true", "random", "guide"),
        episodes=2,
        few_episodes=1,
        max_steps=4,
        num_transitions=4_096,
        training_steps=20,
        num_landmarks=100,
        num_jumps=4,
        samples=4,
    ),
    "cpu": Config(
        maze="Medium",
        num_models=2,
        num_transitions=400_000,
        training_steps=1_500,
        num_landmarks=2_000,
        few_episodes=3,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Models, graphs, then episodes of every agent."""
    seeds = range(config.num_models)
    compared = {f"depth-{d}": f"depth {d}" for d in config.depths} | {k: OTHERS[k] for k in config.others}
    jobs: Metrics = {}
    for s in seeds:
        jobs |= {f"graph/{s}": partial(describe, config, s), f"fresh/{s}": partial(fresh, config, s)}
        jobs |= {f"closed-loop/{s}": partial(loop, config, s)}
        jobs |= {"picture": partial(picture, config)}  # of the first seed
        jobs |= {name: partial(compare, config, name) for name in compared}
    results = cells(jobs)
    turns = turns_of(config)
    found = {"closed loop": [results[f"closed-loop/{s}"] for s in seeds]}
    found |= {words: [results[name]] for name, words in compared.items()}
    return {
        "maze": config.maze,
        "free": maze.world(config.maze).free,
        "turns": turns,
        "num_models": config.num_models,
        "first_model": config.first_model,
        "episodes": config.episodes,
        "few_episodes": config.few_episodes,
        "graphs": [results[f"graph/{s}"] | results[f"fresh/{s}"] for s in seeds],
        "success": {name: scores.by_turns(turns, parts) for name, parts in found.items()},
        "milliseconds": {
            name: 1e3 * float(np.mean([part["seconds_per_plan"] for part in parts]))
            for name, parts in found.items()
        },
        "picture": results["picture"],
    }


def compare(config: Config, name: str) -> Metrics:
    """Episodes of another agent, with the models of the first seed."""
    return play(config, agent_of(config, name), config.few_episodes)


def agent_of(config: Config, name: str) -> agents.Decide:
    """An agent by its name."""
    training, world = training_of(config, 0), maze.world(config.maze)
    match name:
        case "halving":
            search = SequentialHalving(config.draws, value_samples=1, factor=8, memory=0.5)
            return agents.WarmPlanner(models(training), 3, maze.RADIUS, search)
        case "cross-entropy":
            return agents.WarmPlanner(models(training), None, maze.RADIUS, cross_entropy(config, 4))
        case "recorded":
            graph = graph_of(training, config.sizes)
            return recorded_search(graph, data_of(training), policies(), maze.RADIUS)
        case "true":
            graph = true_loop.true_graph(graph_of(training, config.sizes), world, maze.CALIBRATED)
            return true_loop.true_loop(world, graph, config.samples)
        case "random":
            return agents.random_switching(policies(), RANDOM_TURN)
        case "guide":
            return maze.guide(world, maze.policies(), world.free)
        case _:
            return planner(config, int(name.removeprefix("depth-")))


def cross_entropy(config: Config, depth: int, **switches: Any) -> CrossEntropy:
    """Four rounds of plans of a depth, with about as many draws as halving.

    Args:
        config: samples and draws.
        depth: segments of a plan.
        switches: `alphas` or an `alpha_range`; by default the α of the models.
    """
    num_samples = max(1, config.samples // 4)
    num_plans = max(9, config.draws // (4 * depth * num_samples))
    return CrossEntropy(num_plans, depth=depth, num_samples=num_samples, value_samples=1, **switches)


def planner(config: Config, depth: int) -> agents.Decide:
    """Plans of a depth, with as many samples for each policy as the closed loop has, but at least one of each plan."""
    samples = max(1, round(config.samples * 8.0 ** (2 - depth)))
    ghms = models(training_of(config, 0))
    return agents.planner(ghms, depth, samples, maze.RADIUS, planner=Exhaustive(num_samples=samples))


def turns_of(config: Config) -> tuple[int, ...]:
    """All numbers of turns that targets of the maze need."""
    return tuple(maze.targets_by_turns(maze.world(config.maze)))


def training_of(config: Config, i: int) -> Training:
    """What the models of the i-th seed are trained with."""
    recipe = replace(RECIPE, steps=config.training_steps) if config.training_steps else None
    return Training(config.maze, config.first_model + i, config.num_transitions, recipe)


def describe(config: Config, seed: int) -> Metrics:
    """What is known of models and graph before any episode."""
    return described(graph_of(training_of(config, seed), config.sizes), maze.world(config.maze))


def fresh(config: Config, seed: int) -> Metrics:
    """By how much V of the graph exceeds that by fresh jumps, for the target of the picture, as a share of its mean."""
    agent = agent_for(config, seed, picture_tasks(config).targets[0])
    found = fresh_values(agent, key=jax.random.key(maze.REPORTED + seed))
    mean = float(np.abs(found.graph).mean())
    return {"excess": found.excess / mean, "excess_stderr": found.excess_stderr / mean}


def loop(config: Config, seed: int) -> Metrics:
    """Episodes of the closed loop."""
    return play(config, closed_loop(config, seed), config.episodes)


def closed_loop(config: Config, seed: int) -> agents.Decide:
    """The closed loop with the models of a seed."""
    training = training_of(config, seed)
    graph = graph_of(training, config.sizes)
    return agents.closed_loop(models(training), graph, config.samples, maze.RADIUS)


def play(config: Config, decide: agents.Decide, episodes: int) -> Metrics:
    """Steps to the target in each episode (0: not reached), and the time of a decision."""
    world, seed = maze.world(config.maze), maze.REPORTED + 1_000 * config.seed
    timed = agents.Timed(decide)
    given = maze.tasks(world, turns_of(config), episodes, seed)
    steps, _ = maze.episodes(world, timed, given, seed, config.max_steps)
    return {"steps": steps, "seconds_per_plan": timed.seconds_per_decision}


def picture_tasks(config: Config) -> maze.Tasks:
    """One task with a target behind most turns, of no reported episode."""
    seed = maze.REPORTED + 500 + 1_000 * config.seed
    return maze.tasks(maze.world(config.maze), turns_of(config)[-1:], 1, seed)


def agent_for(config: Config, seed: int, place: np.ndarray) -> GGPIAgent:
    """The closed loop to one target, with the models of a seed."""
    training = training_of(config, seed)
    graph, reward = graph_of(training, config.sizes), target(place, maze.RADIUS)
    return GGPIAgent(models(training), reward, depth="inf", graph=graph, num_samples=config.samples)


def picture(config: Config) -> Metrics:
    """V of the landmarks for a target behind most turns, the best policy at each, and the path of an episode."""
    world, seed = maze.world(config.maze), maze.REPORTED + 500 + 1_000 * config.seed
    given = picture_tasks(config)
    agent = agent_for(config, 0, given.targets[0])
    steps, places = maze.episodes(world, closed_loop(config, 0), given, seed, config.max_steps)
    return {
        "target": given.targets[0],
        "radius": maze.RADIUS,
        **value_map(agent, cast(JumpyGraph, agent.graph), seed),
        "path": np.round(places[:, 0].astype(float), 3),
        "steps": int(steps[0]),
    }
