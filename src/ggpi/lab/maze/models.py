"""The maze's geometric horizon models: flows of four policies at two horizons, learned from random switching.

Walls make the futures of a straight run end in points and edges, which flows follow better than VAEs: half the
samples inside walls after the same time. Models are kept in the user's cache folder.
"""

from dataclasses import dataclass

import jax

from ggpi.envs import WorldVectorEnv
from ggpi.envs.maze import PointMaze
from ggpi.ghm.base import GHMs
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.lab.cache import finished, kept
from ggpi.lab.maze import tasks as maze
from ggpi.learning.fitting import fit
from ggpi.learning.losses import CETD
from ggpi.rollout.collection import collect


@dataclass(frozen=True)
class MazeFit:
    """How the maze's models are trained."""

    maze: str
    """A name, or a drawing."""
    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 400_000
    """Transitions under random switching."""
    steps: int = 20_000
    """Training steps."""
    batch_size: int = 256
    """Transitions per model and step."""
    learning_rate: float = 2e-3
    """Adam's step size; it falls to zero over the run."""
    n_step: int = 60
    """Recorded steps that CETD follows before the model is asked."""
    layers: int = 2
    """Coupling layers of a flow."""
    hidden: int = 128
    """Hidden units of each."""


def models(config: MazeFit) -> GHMs:
    """The models of a config: kept, or trained now."""
    out = kept(config, "maze-ghms")
    world, policies = PointMaze(config.maze), maze.policies()
    if found := finished(out, policies):
        return found
    data = collect(
        WorldVectorEnv(world, 256, maze.EPISODE),
        policies,
        config.num_transitions,
        switch_every=maze.SWITCH_EVERY,
        seed=maze.DATA + config.seed,
    )
    return fit(
        policies,
        data,
        maze.GAMMA,
        maze.ALPHA,
        key=jax.random.key(config.seed),
        model=FlowConfig(layers=config.layers, hidden=config.hidden, predict="state"),
        loss=CETD(n_step=config.n_step),
        steps=config.steps,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        decay="linear",
        spec=world.spec,
        out=out,
    )
