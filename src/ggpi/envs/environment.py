"""Environments whose step is a function of arrays, and how they become Gymnasium environments.

They are stepped for many states at once, from any states, so that true futures can be simulated quickly. The
observation is the whole state. `TabularMDP.step` has the same form, with integer states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from ggpi.data import StateSpec

Info = dict[str, Any]


@runtime_checkable
class Dynamics(Protocol):
    """Dynamics on arrays, from any states: `step` moves each state by its action."""

    def step(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator, /) -> np.ndarray: ...


@runtime_checkable
class Environment(Protocol):
    """Dynamics with spaces and first states: `start` samples n of them."""

    @property
    def spec(self) -> StateSpec: ...

    @property
    def observation_space(self) -> Any: ...

    @property
    def action_space(self) -> Any: ...

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray: ...

    def step(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator, /) -> np.ndarray: ...


@runtime_checkable
class Confined(Protocol):
    """An environment that can tell states that cannot occur, such as places inside walls."""

    def possible(self, states: ArrayLike) -> np.ndarray:
        """Which of states [..., D] can occur [...]; of a state that is not finite, False."""
        ...


class GymEnv(gymnasium.Env):
    """A Gymnasium environment without reward; episodes are truncated after `max_steps`.

    `reset(options={"state": …})` starts from a given state.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, environment: Environment, max_steps: int = 100):
        self.environment, self.max_steps = environment, max_steps
        self.observation_space, self.action_space = environment.observation_space, environment.action_space
        self.state = np.zeros(environment.spec.size, np.float32)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[np.ndarray, Info]:
        super().reset(seed=seed)
        chosen = (options or {}).get("state")
        state = self.environment.start(1, self.np_random)[0] if chosen is None else chosen
        self.state, self.steps = np.array(state, np.float32), 0
        return self.state.copy(), {}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, Info]:
        moved = self.environment.step(self.state[None], np.asarray(action)[None], self.np_random)
        self.state, self.steps = moved[0].astype(np.float32), self.steps + 1
        return self.state.copy(), 0.0, False, self.steps >= self.max_steps, {}


class GymVectorEnv(VectorEnv):
    """Many copies in one array; autoreset is `SAME_STEP`."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(self, environment: Environment, num_envs: int = 1, max_steps: int = 100):
        self.environment, self.num_envs, self.max_steps = environment, num_envs, max_steps
        self.single_observation_space = environment.observation_space
        self.single_action_space = environment.action_space
        self.observation_space = batch_space(environment.observation_space, num_envs)
        self.action_space = batch_space(environment.action_space, num_envs)
        self.rng = np.random.default_rng()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Info | None = None
    ) -> tuple[np.ndarray, Info]:
        if seed is not None:
            self.rng, _ = np_random(seed if isinstance(seed, int) else seed[0])
        self.states = self.environment.start(self.num_envs, self.rng).astype(np.float32)
        self.steps = np.zeros(self.num_envs, int)
        return self.states.copy(), {}

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        moved = self.environment.step(self.states, np.asarray(actions), self.rng)
        self.states = moved.astype(np.float32)
        self.steps += 1
        ended = self.steps >= self.max_steps
        info: Info = {}
        if ended.any():
            info = {"final_obs": self.states.copy(), "_final_obs": ended}
            self.states[ended] = self.environment.start(int(ended.sum()), self.rng)
            self.steps[ended] = 0
        return self.states.copy(), np.zeros(self.num_envs), np.zeros(self.num_envs, bool), ended, info
