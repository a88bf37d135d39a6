"""Models and graphs of `ogbench-mazes`: eight directions, one flow-matching network, landmarks of the data."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial

import jax

from ggpi.data.transitions import Transitions
from ggpi.envs import GymVectorEnv
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.ghm.base import GHMs
from ggpi.lab.maze import closed_loop_models
from ggpi.lab.maze.closed_loop_models import Sizes, trained
from ggpi.lab.maze.tasks import DATA
from ggpi.learning.recipe import Recipe
from ggpi.planning.graph_building import jumpy_graph
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.policies import ogbench_policies
from ggpi.rollout.collection import collect

GAMMA, ALPHA = 0.998, 0.3
"""Jumps of β = 0.699 last 3.3 steps in the mean, and a goal counts from 500 steps away. Longer jumps (α = 0.06 or 0.15)
were sampled into walls more often, and failed on episodes that are not reported."""
FOLDER = "ogbench-mazes"
"""Of the cache."""
TURN, EPISODE = 80, 200
"""Longest turn of a policy, and the length of an episode, in the transitions that models learn from."""
RECIPE = replace(closed_loop_models.RECIPE, batch_size=64)
"""Each step trains the network with 64 rows for each policy at each of four horizons."""


@dataclass(frozen=True)
class Training:
    """How the network of a maze is trained, for all policies and every α."""

    maze: str
    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 400_000
    recipe: Recipe = RECIPE


@lru_cache(maxsize=1)
def data_of(training: Training) -> Transitions:
    """Random switching from anywhere in the maze."""
    env = GymVectorEnv(OGBenchMaze(training.maze), 1_024, EPISODE)
    count, seed = training.num_transitions, DATA + training.seed
    return collect(env, ogbench_policies(), count, switch_every=TURN, seed=seed)


@lru_cache(maxsize=1)
def models(training: Training) -> GHMs:
    """The models of a maze for every α: kept, or trained now."""
    data = partial(data_of, training)
    return trained(training, FOLDER, ogbench_policies(), data, GAMMA, OGBenchMaze.spec)


@lru_cache(maxsize=1)
def graph_of(training: Training, sizes: Sizes) -> JumpyGraph:
    """The graph of the models' jumps."""
    ghms, key = models(training), jax.random.key(training.seed)
    return jumpy_graph(ghms, data_of(training), **asdict(sizes), key=key)
