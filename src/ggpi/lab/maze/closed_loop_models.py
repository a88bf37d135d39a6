"""Models and graphs of `maze-closed-loop`: eight directions, one flow-matching network, landmarks of the data."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np

from ggpi.data import StateSpec
from ggpi.data.transitions import Transitions
from ggpi.envs import GymVectorEnv
from ggpi.envs.directions import DIAGONALS, DIRECTIONS
from ggpi.envs.environment import Confined
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab.cache import SECONDS, kept, trained_once
from ggpi.lab.cells import Metrics
from ggpi.lab.maze import tasks as maze
from ggpi.lab.maze.models import SHIPPED
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import CPU, Recipe
from ggpi.planning.graph_building import jumpy_graph
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.policies.linear import LinearPolicy, maze_policies
from ggpi.rollout.collection import collect
from ggpi.storage.arrays import write_json
from ggpi.storage.pretrained import pretrained
from ggpi.types import Policy

GAMMA, ALPHA = 0.99, 0.3
"""Jumps of β = 0.693 last 3 steps in the mean, up to 1.3 cells, and a target counts from 100 steps away."""
TURN, EPISODE = 60, 120
"""Longest turn of a policy, and the length of an episode, in the transitions that models learn from."""
RECIPE = replace(
    CPU,
    model=FlowMatchingConfig(predict="state", num_steps=4),
    loss=TD2CFM(n_step=100),
    batch_size=128,
    learning_rate=2e-3,
)
"""Each step trains the network with 128 rows for each policy at each of four horizons."""


@dataclass(frozen=True)
class Training:
    """How the network of a maze is trained, for all policies and every α."""

    maze: str
    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 400_000
    recipe: Recipe | None = RECIPE
    """None takes the shipped models."""


@dataclass(frozen=True)
class Sizes:
    """What a graph is made of."""

    num_landmarks: int
    num_jumps: int
    num_neighbours: int
    alpha: float = ALPHA


def policies() -> list[LinearPolicy]:
    """Eight directions."""
    return maze_policies(maze.SPEED, directions=DIRECTIONS | DIAGONALS)


def data_of(training: Training) -> Transitions:
    """Random switching from anywhere in the maze."""
    return _data(training.maze, training.num_transitions, maze.DATA + training.seed)


@lru_cache(maxsize=1)
def _data(name: str, num_transitions: int, seed: int) -> Transitions:
    env = GymVectorEnv(maze.world(name), 256, EPISODE)
    return collect(env, policies(), num_transitions, switch_every=TURN, seed=seed)


@lru_cache(maxsize=1)
def models(training: Training) -> GHMs:
    """The models of a maze, with α as above where nothing else is said: kept, or trained now.

    Without a recipe: the shipped ones, of four directions in Medium, which sample in one pass.
    """
    if training.recipe is None:
        if training.maze != "Medium":
            raise ValueError(
                f"the shipped models are of Medium, got {training.maze}: training_steps is at least 1"
            )
        return pretrained(SHIPPED).with_gamma(GAMMA).with_alpha(ALPHA)
    spec = replace(maze.world(training.maze).spec, places=(0, 1))
    data = partial(data_of, training)
    return trained(training, "maze-closed-loop", policies(), data, GAMMA, spec).with_alpha(ALPHA)


def trained(
    training: Any,
    folder: str,
    policies: Sequence[Policy],
    data: Callable[[], Transitions],
    gamma: float,
    spec: StateSpec,
) -> GHMs:
    """The models of a training, for every α: kept, or trained now.

    Args:
        training: a dataclass with a seed and a recipe; the models are kept by all of its fields.
        folder: where in the cache.
        policies: whose models.
        data: the transitions, made only if they are needed.
        gamma: γ.
        spec: of the states.
    """
    out = kept(training, folder)

    def train() -> GHMs:
        transitions, begun = data(), time.perf_counter()
        ghms = fit(
            policies,
            transitions,
            gamma=gamma,
            alpha="any",
            recipe=training.recipe,
            spec=spec,
            out=out,
            key=jax.random.key(training.seed),
        )
        write_json(out / SECONDS, {"training": time.perf_counter() - begun})
        return ghms

    return trained_once(out, policies, train)


@lru_cache(maxsize=1)
def graph_of(training: Training, sizes: Sizes) -> JumpyGraph:
    """The graph of the models' jumps."""
    key = jax.random.key(training.seed)
    return jumpy_graph(models(training), data_of(training), **asdict(sizes), key=key)


def described(graph: JumpyGraph, world: Confined) -> Metrics:
    """What is known of models and graph before any episode."""
    return {
        "in_walls": float(1 - world.possible(graph.jumps.end).mean()),
        "left_out": float((graph.jumps.share == 0).mean()),
        "distance": float(np.median(graph.jumps.distance)),
        "landmarks": len(graph.landmarks),
    }
