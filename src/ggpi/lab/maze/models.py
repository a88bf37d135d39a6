"""The maze's geometric horizon models: flows of four policies at two horizons, learned from random switching.

Walls make the futures of a straight run end in points and edges, which flows follow better than VAEs: half the
samples inside walls after the same time; flow matching is there to be compared. Models are kept in the user's cache
folder.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax

from ggpi.envs import GymVectorEnv
from ggpi.envs.maze import PointMaze
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.lab.cache import kept, trained_once
from ggpi.lab.maze import tasks as maze
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.losses import CETD
from ggpi.learning.recipe import CPU, Recipe
from ggpi.rollout.collection import collect

SHIPPED = "maze-ghms"
"""Models of Medium that come with the package: four directions, one network, one pass."""
RECIPE = replace(
    CPU,
    model=FlowConfig(layers=2, hidden=128, predict="state"),
    loss=CETD(n_step=60),
    steps=20_000,
    learning_rate=2e-3,
)
RECIPES = {
    "flow": RECIPE,
    "flow-matching": replace(RECIPE, model=FlowMatchingConfig(predict="state"), loss=TD2CFM(n_step=60)),
}
"""Spline flows by CETD, or flow matching by TD²-CFM; data, updates and batches are the same."""


@dataclass(frozen=True)
class MazeFit:
    """How the maze's models are trained."""

    maze: str
    """A name, or a drawing."""
    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 400_000
    """Transitions under random switching."""
    recipe: Recipe = RECIPE
    """How they are trained."""


def models(config: MazeFit) -> GHMs:
    """The models of a config: kept, or trained now."""
    out = kept(config, "maze-ghms")
    return trained_once(out, maze.policies(), partial(_trained, config, out))


def _trained(config: MazeFit, out: Path) -> GHMs:
    world, policies = PointMaze(config.maze), maze.policies()
    data = collect(
        GymVectorEnv(world, 256, maze.EPISODE),
        policies,
        config.num_transitions,
        switch_every=maze.SWITCH_EVERY,
        seed=maze.DATA + config.seed,
    )
    return fit(
        policies,
        data,
        gamma=maze.GAMMA,
        alpha=maze.ALPHA,
        recipe=config.recipe,
        key=jax.random.key(config.seed),
        spec=world.spec,
        out=out,
    )
