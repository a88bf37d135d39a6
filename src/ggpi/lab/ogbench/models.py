"""Models and graphs of `ogbench-mazes`: eight directions, one flow-matching network, landmarks of the data."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial

import jax

from ggpi.data import StateSpec
from ggpi.data.transitions import Transitions
from ggpi.envs import GymVectorEnv
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab.maze import closed_loop_models
from ggpi.lab.maze.closed_loop_models import Sizes, trained
from ggpi.lab.maze.tasks import DATA
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import Recipe
from ggpi.planning.graph_building import jumpy_graph
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.policies import ogbench_policies
from ggpi.rollout.collection import collect
from ggpi.storage.pretrained import pretrained
from ggpi.types import Policy

GAMMA = 0.998
"""A goal counts from 500 steps away."""
PATIENT = 0.999
"""In mazes with teleports, one exit of which is a dead end: with less patience it is best to try one's luck."""
WAVES = 8
"""In these mazes models see places down to 0.05 standard deviations: an entrance begins within one step."""
LEAKY = ("antmaze-giant", "pointmaze-teleport", "antmaze-teleport")
"""Mazes in which a first try failed because models lead through corners or out of dead ends.

A list of names, not a rule: the reported results of the other mazes are without recorded ways, and a threshold on what
these correct would have to be measured in all mazes before it could be said to give the same list."""
FOLDER = "ogbench-mazes"
"""Of the cache."""
EPISODE = 200
"""The length of an episode, in the transitions that models learn from."""


@dataclass(frozen=True)
class Kind:
    """How models of a body are trained and used."""

    policies: Callable[[], Sequence[Policy]]
    """Eight directions."""
    alpha: float
    """Of jumps."""
    turn: int
    """Longest turn of a policy, in the transitions that models learn from."""
    copies: int
    """Episodes at the same time."""
    recipe: Recipe
    gamma: float = GAMMA
    waves: int = StateSpec.waves


RECIPE = replace(closed_loop_models.RECIPE, batch_size=64)
"""Each step trains the network with 64 rows for each policy at each of four horizons."""
ALPHA = 0.3
"""Jumps of a ball: β = 0.699, 3.3 steps in the mean. Longer ones (α = 0.06 or 0.15) were sampled into walls more often,
and failed on episodes that are not reported."""
KINDS = {
    "pointmaze": Kind(ogbench_policies, ALPHA, 80, 1_024, RECIPE),
    "antmaze": Kind(
        partial(pretrained, "ogbench-ant-policies"),
        0.1,
        80,
        512,
        replace(RECIPE, model=FlowMatchingConfig(predict="change", num_steps=4)),
    ),
}
"""By the first word of a maze's name. Jumps of an ant last 10 steps in the mean."""


def kind_of(maze: str) -> Kind:
    """How models of a maze are trained; where it has teleports, more rows start near them."""
    body, _, size = maze.partition("-")
    kind = KINDS[body]
    if size != "teleport":
        return kind
    recipe = replace(kind.recipe, loss=TD2CFM(n_step=100, far=(0, 1)))
    return replace(kind, recipe=recipe, gamma=PATIENT, waves=WAVES)


@dataclass(frozen=True)
class Training:
    """How the network of a maze is trained, for all policies and every α."""

    maze: str
    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 400_000
    recipe: Recipe = RECIPE


def data_of(training: Training) -> Transitions:
    """Random switching from anywhere in the maze."""
    return _data(training.maze, training.num_transitions, DATA + training.seed)


@lru_cache(maxsize=1)
def _data(maze: str, count: int, seed: int) -> Transitions:
    kind = kind_of(maze)
    env = GymVectorEnv(OGBenchMaze(maze), kind.copies, EPISODE)
    return collect(env, kind.policies(), count, switch_every=kind.turn, seed=seed)


@lru_cache(maxsize=1)
def models(training: Training) -> GHMs:
    """The models of a maze for every α: kept, or trained now."""
    data, kind = partial(data_of, training), kind_of(training.maze)
    spec = replace(OGBenchMaze(training.maze).spec, waves=kind.waves)
    return trained(training, FOLDER, kind.policies(), data, kind.gamma, spec)


@lru_cache(maxsize=1)
def graph_of(training: Training, sizes: Sizes) -> JumpyGraph:
    """The graph of the models' jumps, along recorded transitions where models are known to leak."""
    ghms, key = models(training), jax.random.key(training.seed)
    graph = jumpy_graph(ghms, data_of(training), **asdict(sizes), key=key)
    return graph.along(data_of(training)) if training.maze in LEAKY else graph
