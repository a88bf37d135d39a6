"""Gymnasium's `Pendulum-v1` for many states at once: observations (cos θ, sin θ, θ̇), torque in [−2, 2].

θ̇′ = θ̇ + (3g/(2l) sin θ + 3/(ml²) a) dt, clipped to ±8,   θ′ = θ + θ̇′ dt,   g = 10, m = l = 1, dt = 0.05
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from ggpi.data import StateSpec


@dataclass(frozen=True)
class Pendulum:
    """The dynamics of Gymnasium's Pendulum as a function of observations."""

    spec = StateSpec(("cos", "sin", "speed"))

    @cached_property
    def observation_space(self) -> Box:
        high = np.array([1.0, 1.0, 8.0], np.float32)
        return Box(-high, high, dtype=np.float32)

    @cached_property
    def action_space(self) -> Box:
        return Box(-2.0, 2.0, (1,), np.float32)

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """First states: any angle, speeds within ±1."""
        angle = rng.uniform(-np.pi, np.pi, n)
        return np.stack([np.cos(angle), np.sin(angle), rng.uniform(-1, 1, n)], axis=1)

    def step(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """One step of each observation [n, 3] with torques [n, 1]."""
        states = np.asarray(states)
        torque = np.clip(np.asarray(actions)[:, 0], -2, 2)
        angle = np.arctan2(states[:, 1], states[:, 0])
        speed = np.clip(states[:, 2] + (15 * np.sin(angle) + 3 * torque) * 0.05, -8, 8)
        angle = angle + speed * 0.05
        return np.stack([np.cos(angle), np.sin(angle), speed], axis=1)
