"""A walk on a ring: finite, so μ is exact, and seen as a point on the circle, so models can learn it.

Action 0 goes back and action 1 forward; with probability `slip` a step goes the other way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

import ggpi
from ggpi.data import StateSpec
from ggpi.mdp.tabular import TabularMDP


@ggpi.savable("ring/1")
@dataclass(frozen=True)
class Ring:
    """The world of observations (cos 2πi/n, sin 2πi/n) for places i = 0 … n − 1."""

    size: int = 12
    slip: float = 0.1

    spec = StateSpec(("cos", "sin"))

    def __post_init__(self):
        if self.size < 3 or not 0 <= self.slip <= 1:
            raise ValueError(f"a ring has 3 places or more and slips with probability 0 to 1, got {self}")

    @cached_property
    def mdp(self) -> TabularMDP:
        """The same walk on integers."""
        places = np.arange(self.size)
        P = np.zeros((self.size, 2, self.size))
        for action, way in ((0, -1), (1, 1)):
            P[places, action, (places + way) % self.size] += 1 - self.slip
            P[places, action, (places - way) % self.size] += self.slip
        return TabularMDP(P)

    @cached_property
    def observation_space(self) -> Box:
        return Box(-1.0, 1.0, (2,), np.float32)

    @cached_property
    def action_space(self) -> Discrete:
        return Discrete(2)

    def observe(self, places: Any) -> np.ndarray:
        """The points [n, 2] of places [n]."""
        angle = 2 * np.pi * np.asarray(places) / self.size
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    def place(self, states: Any) -> np.ndarray:
        """The places [n] that points [n, 2] are nearest to."""
        states = np.asarray(states)
        turns = np.arctan2(states[..., 1], states[..., 0]) / (2 * np.pi)
        return np.round(turns * self.size).astype(int) % self.size

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Anywhere on the ring."""
        return self.observe(rng.integers(self.size, size=n))

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> np.ndarray:
        """One step of each observation."""
        way = np.where(np.asarray(actions) == 1, 1, -1)
        slipped = rng.random(way.shape) < self.slip
        return self.observe((self.place(states) + np.where(slipped, -way, way)) % self.size)
