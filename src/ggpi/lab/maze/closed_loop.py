"""Mazes with many turns: closed-loop switching on a jumpy graph, beside plans of fixed depth.

A ball that can be pushed in eight directions looks for targets behind many turns. No policy knows the maze;
flow-matching models of the eight policies learn it from transitions. The *closed loop* builds a graph of landmarks once
and solves it for each target; a plan of depth m is m policies in a row.

Before any episode a table says how many samples lie in walls and how well landmarks cover the jumps. A guide who knows
the maze is the upper bound, random switching the lower one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.data.transitions import Transitions
from ggpi.envs import GymVectorEnv
from ggpi.envs.directions import DIAGONALS, DIRECTIONS
from ggpi.envs.maze import PointMaze
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab import agents
from ggpi.lab.cache import kept, trained_once
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.maze import scores
from ggpi.lab.maze import tasks as maze
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import CPU, Recipe
from ggpi.planning.graph_building import jumpy_graph
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.policies.linear import LinearPolicy, maze_policies
from ggpi.rewards import target
from ggpi.rollout.collection import collect
from ggpi.types import Key

GAMMA, ALPHA = 0.99, 0.1
"""Jumps of β = 0.891 last 9 steps in the mean, up to 4 cells, and a target counts from 100 steps away."""
TURN, EPISODE = 60, 120
"""Longest turn of a policy, and the length of an episode, in the transitions that models learn from."""
RECIPE = replace(
    CPU, model=FlowMatchingConfig(predict="state", num_steps=4), loss=TD2CFM(n_step=100), learning_rate=2e-3
)
RANDOM_TURN = 20


@dataclass(frozen=True)
class Training:
    """How the models of a maze are trained."""

    maze: str
    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 400_000
    recipe: Recipe = RECIPE


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    maze: str = "Large"
    """UMaze, Medium, Large, or a drawing."""
    num_models: int = 3
    """Seeds of models."""
    depths: tuple[int, ...] = (1, 2)
    """Depths of plans, beside the closed loop."""
    episodes: int = 20
    """Episodes of the closed loop for each number of turns."""
    few_episodes: int = 5
    """Of the other agents: the first ones of all."""
    max_steps: int = 200
    """Steps of an episode."""
    num_transitions: int = 1_000_000
    """Transitions that models learn from."""
    training_steps: int = 20_000
    """Steps of training."""
    num_landmarks: int = 4_000
    """Landmarks of the graph."""
    num_jumps: int = 16
    """Jumps of each policy from each landmark."""
    num_neighbours: int = 3
    """Landmarks that V is interpolated from."""
    samples: int = 32
    """Samples for each policy of the closed loop, and for each plan of depth 2."""


PRESETS = {
    "tiny": Config(
        maze="UMaze",
        num_models=1,
        depths=(1,),
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
        num_models=1,
        num_transitions=400_000,
        training_steps=5_000,
        num_landmarks=2_000,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Models, graphs, then episodes of every agent."""
    seeds = range(config.num_models)
    jobs: Metrics = {}
    for s in seeds:
        jobs |= {f"graph/{s}": partial(describe, config, s), f"closed-loop/{s}": partial(loop, config, s)}
        jobs |= {f"depth-{d}/{s}": partial(plan, config, s, d) for d in config.depths}
    jobs |= {"random": partial(random_switching, config), "guide": partial(guided, config)}
    jobs |= {"picture": partial(picture, config)}
    results = cells(jobs)
    turns = turns_of(config)
    found = {"closed loop": [results[f"closed-loop/{s}"] for s in seeds]}
    found |= {f"depth {d}": [results[f"depth-{d}/{s}"] for s in seeds] for d in config.depths}
    found |= {"random switching": [results["random"]], "guide who knows the maze": [results["guide"]]}
    return {
        "maze": config.maze,
        "free": PointMaze(config.maze).free,
        "turns": turns,
        "num_models": config.num_models,
        "episodes": config.episodes,
        "few_episodes": config.few_episodes,
        "graphs": [results[f"graph/{s}"] for s in seeds],
        "success": {name: scores.by_turns(turns, parts) for name, parts in found.items()},
        "milliseconds": {
            name: 1e3 * float(np.mean([part["seconds_per_plan"] for part in parts]))
            for name, parts in found.items()
        },
        "picture": results["picture"],
    }


def turns_of(config: Config) -> tuple[int, ...]:
    """All numbers of turns that targets of the maze need."""
    return tuple(maze.targets_by_turns(PointMaze(config.maze)))


def policies() -> list[LinearPolicy]:
    """Eight directions."""
    return maze_policies(maze.SPEED, directions=DIRECTIONS | DIAGONALS)


def data_of(training: Training) -> Transitions:
    """Random switching from anywhere in the maze."""
    env = GymVectorEnv(PointMaze(training.maze), 256, EPISODE)
    seed = maze.DATA + training.seed
    return collect(env, policies(), training.num_transitions, switch_every=TURN, seed=seed)


@lru_cache(maxsize=1)
def models(training: Training) -> GHMs:
    """The models of a maze: kept, or trained now."""
    out = kept(training, "maze-closed-loop")
    return trained_once(out, policies(), partial(_trained, training, out))


def _trained(training: Training, out: Path) -> GHMs:
    return fit(
        policies(),
        data_of(training),
        gamma=GAMMA,
        alpha=ALPHA,
        recipe=training.recipe,
        spec=PointMaze(training.maze).spec,
        out=out,
        key=jax.random.key(training.seed),
    )


def training_of(config: Config, seed: int) -> Training:
    """What the models of a seed are trained with."""
    recipe = replace(RECIPE, steps=config.training_steps)
    return Training(config.maze, seed, config.num_transitions, recipe)


def graph_of(config: Config, seed: int) -> tuple[GHMs, JumpyGraph]:
    """Models and the graph of their jumps."""
    return _graph(training_of(config, seed), config.num_landmarks, config.num_jumps, config.num_neighbours)


@lru_cache(maxsize=1)
def _graph(training: Training, landmarks: int, jumps: int, neighbours: int) -> tuple[GHMs, JumpyGraph]:
    ghms = models(training)
    made = jumpy_graph(
        ghms,
        data_of(training),
        num_landmarks=landmarks,
        num_jumps=jumps,
        num_neighbours=neighbours,
        key=jax.random.key(training.seed),
    )
    return ghms, made


def describe(config: Config, seed: int) -> Metrics:
    """What is known of models and graph before any episode."""
    _, graph = graph_of(config, seed)
    inside = PointMaze(config.maze).possible(graph.jumps.end)
    return {
        "in_walls": float(1 - inside.mean()),
        "left_out": float((graph.jumps.share == 0).mean()),
        "distance": float(np.median(graph.jumps.distance)),
        "landmarks": len(graph.landmarks),
    }


def loop(config: Config, seed: int) -> Metrics:
    """Episodes of the closed loop."""
    return play(config, closed_loop(config, seed), config.episodes)


def closed_loop(config: Config, seed: int) -> agents.Decide:
    """An agent for each target, whose values are solved when it is first seen; no two episodes share a target."""
    ghms, graph = graph_of(config, seed)
    first = GGPIAgent(
        ghms, target((0.0, 0.0), maze.RADIUS), depth="inf", graph=graph, num_samples=config.samples
    )
    solved: dict[bytes, GGPIAgent] = {}

    def decide(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        keys, actions = jax.random.split(key, len(states)), dict[bytes, np.ndarray]()
        for state, goal, own in zip(states.astype(np.float32), goals, keys, strict=True):
            name = goal.tobytes()
            if name not in solved:
                solved[name] = first.with_reward(target(goal, maze.RADIUS))
            if name not in actions:  # rows are repeated to fill a batch
                actions[name] = solved[name].act(state, key=own)
        return np.stack([actions[goal.tobytes()] for goal in goals])

    return decide


def plan(config: Config, seed: int, depth: int) -> Metrics:
    """Episodes of plans of a depth, with as many samples for each policy as the closed loop has."""
    ghms = models(training_of(config, seed))
    samples = max(1, round(config.samples * 8.0 ** (2 - depth)))
    return play(config, agents.planner(ghms, depth, samples, maze.RADIUS), config.few_episodes)


def random_switching(config: Config) -> Metrics:
    """Episodes of policies that take turns at random."""
    return play(config, agents.random_switching(policies(), RANDOM_TURN), config.few_episodes)


def guided(config: Config) -> Metrics:
    """Episodes of four of the policies, chosen by a guide who knows the maze."""
    return play(config, maze.guide(PointMaze(config.maze)), config.few_episodes)


def play(config: Config, decide: Callable[..., np.ndarray], episodes: int) -> Metrics:
    """Steps to the target in each episode (0: not reached), and the time of a decision."""
    world, seed = PointMaze(config.maze), maze.REPORTED + 1_000 * config.seed
    timed = agents.Timed(decide)
    given = maze.tasks(world, turns_of(config), episodes, seed)
    steps, _ = maze.episodes(world, timed, given, seed, config.max_steps)
    return {"steps": steps, "seconds_per_plan": timed.seconds_per_decision}


def picture(config: Config) -> Metrics:
    """V of the landmarks for a target behind most turns, the best policy at each, and the path of an episode."""
    world, seed = PointMaze(config.maze), maze.REPORTED + 500 + 1_000 * config.seed
    given = maze.tasks(world, turns_of(config)[-1:], 1, seed)
    ghms, graph = graph_of(config, 0)
    reward = target(given.targets[0], maze.RADIUS)
    agent = GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples=config.samples)
    few = np.random.default_rng(seed).permutation(len(graph.landmarks))[:300]
    found: Any = agent.plan(graph.landmarks[few], key=jax.random.key(seed))
    steps, places = maze.episodes(world, closed_loop(config, 0), given, seed, config.max_steps)
    return {
        "target": given.targets[0],
        "landmarks": np.round(graph.landmarks[:, :2].astype(float), 3),
        "values": np.round(graph.solve(reward).astype(float), 4),
        "places": np.round(graph.landmarks[few, :2].astype(float), 3),
        "headings": np.round(np.array(list((DIRECTIONS | DIAGONALS).values()))[found.best], 3),
        "path": np.round(places[:, 0].astype(float), 3),
        "steps": int(steps[0]),
    }
