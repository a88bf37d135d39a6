"""Steps of a Gymnasium environment from any state: simulation to compare ours with."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np


class SettableEnv:
    """The step of a Gymnasium environment that can be put into any state, one state after the other.

    `set_state(env, observation)` puts the unwrapped environment where it would observe this. `terminal`
    tells which observations end an episode: they are stayed in.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        set_state: Callable[[Any, np.ndarray], None],
        terminal: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        self.env, self.set_state, self.terminal = env.unwrapped, set_state, terminal
        self.env.reset(seed=0)

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> np.ndarray:
        """The state after each action; terminal states stay."""
        states = np.asarray(states)
        following = np.array(states)
        moving = np.ones(len(states), bool) if self.terminal is None else ~self.terminal(states)
        self.env.np_random = rng
        for i in np.flatnonzero(moving):
            self.set_state(self.env, states[i])
            following[i] = self.env.step(actions[i])[0]
        return following


def set_pendulum(env: Any, observation: np.ndarray) -> None:
    """Puts an unwrapped Gymnasium Pendulum where it observes this; for `SettableEnv`."""
    env.state = np.array([np.arctan2(observation[1], observation[0]), observation[2]], float)
