"""Episodes of the ant, and the constants that its experiments share.

Seeds of episodes are far apart: base policies were trained below 2·10⁹, models are trained on data from `DATA`,
settings were chosen on episodes from `CHOOSING`, and results are measured on new episodes, from `REPORTED`.
"""

from dataclasses import dataclass

import jax
import numpy as np

from ggpi.envs.ant import SparseAntVector
from ggpi.lab.agents import Decide, bucket

GAMMA, ALPHA = 0.9, 1 / 9
"""The paper's horizons: μ_γ and μ_β with β = γ(1−α) = 0.8."""
RADIUS = 0.3
MAX_STEPS = 150
DATA, CHOOSING, REPORTED = 3_000_000_000, 3_500_000_000, 4_000_000_000


@dataclass(frozen=True)
class Tasks:
    """Which episodes are run: the same for all agents."""

    num_episodes: int
    seed: int
    """Seed of starts, targets and agents."""
    radius: float = RADIUS
    """Radius of the targets."""
    distance: float | None = None
    """Distance of every target, in its own direction; 2 to 4 by default."""


@dataclass(frozen=True)
class Outcome:
    """How episodes went: the step at which each target was reached (0: never, −1: the simulation diverged)."""

    steps: np.ndarray
    """[E]"""
    places: np.ndarray
    """[T + 1, E, 2], frozen once the target is reached."""
    targets: np.ndarray
    """[E, 2]"""

    @property
    def reached(self) -> np.ndarray:
        return self.steps > 0


def episodes(decide: Decide, tasks: Tasks) -> Outcome:
    """Runs episodes side by side, each until its target is reached or for 150 steps."""
    num_episodes = tasks.num_episodes
    env = SparseAntVector(num_episodes, radius=tasks.radius)
    states, info = env.reset(seed=tasks.seed)
    goals = np.array(info["target"])
    if tasks.distance is not None:
        apart = goals - states[:, :2]
        goals = states[:, :2] + tasks.distance * apart / np.linalg.norm(apart, axis=1, keepdims=True)
    env.targets[:] = np.inf  # never reached: this function ends the episodes, not the environment
    steps, places = np.zeros(num_episodes, int), [states[:, :2].copy()]
    for t, key in enumerate(jax.random.split(jax.random.key(tasks.seed), MAX_STEPS), start=1):
        active = np.flatnonzero(steps == 0)
        if not len(active):
            break
        rows = np.resize(active, bucket(len(active)))
        actions = np.zeros((num_episodes, 8), np.float32)
        actions[rows] = decide(states[rows], goals[rows], key)
        following, _, diverged, truncated, info = env.step(actions)
        for i in np.flatnonzero(diverged | truncated):
            following[i] = info["final_obs"][i]
        states[active] = following[active]
        near = np.linalg.norm(states[:, :2] - goals, axis=1) <= tasks.radius
        steps[active] = np.where(near[active], t, np.where(diverged[active], -1, 0))
        places.append(states[:, :2].copy())
    return Outcome(steps, np.stack(places), goals)
