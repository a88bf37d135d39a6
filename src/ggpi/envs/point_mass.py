"""A point mass in a box: pushed by a force, slowed by drag, stopped by the walls.

    v′ = (1 − drag) v + force · a,   p′ = p + v′,   and where p′ is beyond a wall, p′ is on it and v′ is 0

A full push reaches speed force/drag: the box of width 2 is crossed in 25 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from ggpi.data import StateSpec
from ggpi.envs.environment import GymEnv, GymVectorEnv


@dataclass(frozen=True)
class PointMass:
    """States (x, y, vx, vy) with |x|, |y| ≤ 1 and actions in [−1, 1]²; deterministic."""

    drag: float = 0.25
    """Fraction of the velocity that is lost in a step."""
    force: float = 0.02
    """Change of velocity of a full push."""

    spec = StateSpec(("x", "y", "vx", "vy"))

    @cached_property
    def observation_space(self) -> Box:
        fastest = self.force / self.drag
        high = np.array([1.0, 1.0, fastest, fastest], np.float32)
        return Box(-high, high, dtype=np.float32)

    @cached_property
    def action_space(self) -> Box:
        return Box(-1.0, 1.0, (2,), np.float32)

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """First states: at rest, anywhere in the box."""
        return np.concatenate([rng.uniform(-1, 1, (n, 2)), np.zeros((n, 2))], axis=1)

    def possible(self, states: ArrayLike) -> np.ndarray:
        """Which of states [..., 4] are inside the box."""
        return np.asarray((np.abs(np.asarray(states)[..., :2]) <= 1).all(axis=-1))

    def step(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """One step of each state [n, 4]."""
        states = np.asarray(states)
        velocity = (1 - self.drag) * states[:, 2:] + self.force * np.clip(actions, -1, 1)
        place = states[:, :2] + velocity
        inside = np.abs(place) <= 1
        return np.concatenate([np.clip(place, -1, 1), velocity * inside], axis=1)


def point_mass(max_steps: int = 100) -> GymEnv:
    """The entry point of `ggpi/PointMass-v0`."""
    return GymEnv(PointMass(), max_steps)


def point_masses(num_envs: int = 1, max_steps: int = 100) -> GymVectorEnv:
    """The vector entry point of `ggpi/PointMass-v0`."""
    return GymVectorEnv(PointMass(), num_envs, max_steps)
