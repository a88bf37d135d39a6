"""What the ant's experiments share: agents and episodes.

Seeds of worlds lie far apart: base policies were trained below 2·10⁹, models learn from worlds at `DATA`, settings
were chosen on worlds at `CHOOSING`, and what is reported was measured on worlds at `REPORTED`, never seen before.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ggpi.envs.ant import AntDynamics, SparseAntVector
from ggpi.ghm.base import GHMs
from ggpi.lab import agents
from ggpi.lab.agents import Decide as Decide
from ggpi.lab.agents import Timed as Timed
from ggpi.lab.agents import bucket
from ggpi.lab.agents import budget as budget
from ggpi.storage.pretrained import pretrained

GAMMA, ALPHA = 0.9, 1 / 9
"""The paper's horizons: μ_γ and μ_β with β = γ(1−α) = 0.8."""
RADIUS = 0.3
MAX_STEPS = 150
DATA, CHOOSING, REPORTED = 3_000_000_000, 3_500_000_000, 4_000_000_000


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


def episodes(
    decide: Decide, num_episodes: int, seed: int, radius: float = RADIUS, distance: float | None = None
) -> Outcome:
    """Episodes side by side, each until its target is reached or for 150 steps; the same seed, the same starts.

    `distance` puts every target at this distance instead of 2 to 4, in the same direction.
    """
    env = SparseAntVector(num_episodes, radius=radius)
    states, info = env.reset(seed=seed)
    goals = np.array(info["target"])
    if distance is not None:
        apart = goals - states[:, :2]
        goals = states[:, :2] + distance * apart / np.linalg.norm(apart, axis=1, keepdims=True)
    env.targets[:] = np.inf  # reached by nobody: episodes end here, not in the environment
    steps, places = np.zeros(num_episodes, int), [states[:, :2].copy()]
    for t, key in enumerate(jax.random.split(jax.random.key(seed), MAX_STEPS), start=1):
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
        near = np.linalg.norm(states[:, :2] - goals, axis=1) <= radius
        steps[active] = np.where(near[active], t, np.where(diverged[active], -1, 0))
        places.append(states[:, :2].copy())
    return Outcome(steps, np.stack(places), goals)


def planner(ghms: GHMs, depth: int, num_samples: int, radius: float = RADIUS, **options: Any) -> Decide:
    """GGPI at a depth; 1 is GPI."""
    return agents.planner(ghms, depth, num_samples, radius, **options)


def oracle(depth: int, num_samples: int, radius: float = RADIUS) -> Decide:
    """The same planner with true simulator samples in the place of models."""
    policies = pretrained("ant-policies")
    return agents.oracle(
        AntDynamics(), policies, GAMMA, ALPHA, depth=depth, num_samples=num_samples, radius=radius
    )


def alone(policy: int) -> Decide:
    """One base policy all the time."""
    return agents.alone(pretrained("ant-policies"), policy)


def random_switching(every: int = 40) -> Decide:
    """A policy drawn at random for each of Uniform(1, every) steps, whatever the target."""
    return agents.random_switching(pretrained("ant-policies"), every)
