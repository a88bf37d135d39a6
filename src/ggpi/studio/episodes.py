"""An episode of one agent: its body, what it has met, and what it decided."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ggpi.rewards import Reward
from ggpi.studio.bodies import Body
from ggpi.studio.decisions import Decider, Decision, Settings, decide
from ggpi.studio.worlds import World
from ggpi.types import Key

LONGEST = 5_000
"""Moments that are remembered."""
WAY = 40
"""Steps before a moment that are sent with it, for pages that have missed them."""


class Past(NamedTuple):
    """An earlier decision, and all that it depended on."""

    state: np.ndarray
    followed: tuple[int, ...]
    """The policies of the chosen plan."""
    settings: Settings
    formula: str
    key: Key


class Episode:
    """The moments of an agent, the last of which is now."""

    def __init__(self, world: World, body: Body, seed: int, agent: int):
        self.world, self.body = world, body
        self.restart()

    def restart(self) -> None:
        """Time 0, wherever the body is."""
        self.t, self.total, self.reward = 0, 0.0, 0.0
        self.reached: int | None = None
        self.is_counted = False
        self.decision: Decision | None = None
        self.history: list[Past] = []
        self.way: deque[tuple[float, float, int, float]] = deque(maxlen=WAY)
        self.poses: np.ndarray | None = None

    @property
    def is_over(self) -> bool:
        """The reward was met, time is up, or the environment has ended the episode."""
        return self.reached is not None or self.t >= self.world.max_steps or self.body.has_ended

    def put(self, x: float, y: float) -> bool:
        """A new episode at a place; False where the body cannot be."""
        if not self.body.put(x, y):
            return False
        self.restart()
        return True

    def decide(self, chosen: Decider, settings: Settings, formula: str, *, key: Key) -> None:
        """Plans in the current state; settings and formula are those that the agent was made for."""
        self.decision = decide(chosen, self.world, self.body.state, key=key)
        followed = tuple(self.decision.about["plans"][0]["policies"])
        moment = Past(self.body.state, followed, settings, formula, key)
        if len(self.history) <= self.t < LONGEST:
            self.history.append(moment)
        elif self.t < LONGEST:
            self.history[self.t] = moment

    def step(self, reward: Reward) -> None:
        """Acts as decided; the reward is that of the state that is entered."""
        assert self.decision is not None
        if self.body.has_ended:
            return
        x, y = self.world.place(self.body.state)
        self.way.append((float(x), float(y), self.decision.policy, self.reward))
        self.poses = self.body.step(self.decision.action)
        values = reward.values
        found = values(self.body.state) if callable(values) else values[int(self.body.state)]
        self.reward = float(found)
        self.total += self.world.ghms.gamma**self.t * self.reward
        self.t += 1
        if self.reward > 0 and self.reached is None:
            self.reached = self.t

    def moment(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Now, for the page."""
        assert self.decision is not None
        header = {
            "t": self.t,
            "place": self.world.place(self.body.state),
            "policy": self.decision.policy,
            "reward": self.reward,
            "return": self.total,
            "reached": self.reached,
            "ended": self.body.has_ended,
            "way": list(self.way),
            **self.decision.about,
        }
        arrays = {"places": self.decision.places}
        if self.world.geometry is not None:
            arrays["poses"] = self.poses if self.poses is not None else _still(self.body)
        return header, arrays


def _still(body: Any) -> np.ndarray:
    """The pose of a body that has not moved yet."""
    return body.poses()[None]
