"""Worlds whose step is a function of arrays, and what makes Gymnasium environments of them.

A world is stepped for many states at once, from any states: so true futures can be simulated as fast as NumPy
goes. Its observation is its whole state. `TabularMDP.step` has the same form, with integer states.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ggpi.data import StateSpec


@runtime_checkable
class Dynamics(Protocol):
    """Dynamics on arrays, from any states: `step` moves each state by its action. A `TabularMDP` is one, too."""

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> np.ndarray: ...


@runtime_checkable
class World(Protocol):
    """Dynamics on arrays: `start` draws n first states, `step` moves each state by its action."""

    @property
    def spec(self) -> StateSpec: ...

    @property
    def observation_space(self) -> Any: ...

    @property
    def action_space(self) -> Any: ...

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray: ...

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> np.ndarray: ...


class WorldEnv(gymnasium.Env):
    """One world as a Gymnasium environment without reward; episodes are truncated after `max_steps`.

    `reset(options={"state": …})` starts from a given state.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, world: World, max_steps: int = 100):
        self.world, self.max_steps = world, max_steps
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self.state = np.zeros(world.spec.size, np.float32)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        given = (options or {}).get("state")
        state = self.world.start(1, self.np_random)[0] if given is None else given
        self.state, self.steps = np.array(state, np.float32), 0
        return self.state.copy(), {}

    def step(self, action: Any):
        moved = self.world.step(self.state[None], np.asarray(action)[None], self.np_random)
        self.state, self.steps = moved[0].astype(np.float32), self.steps + 1
        return self.state.copy(), 0.0, False, self.steps >= self.max_steps, {}


class WorldVectorEnv(VectorEnv):
    """Many copies of a world in one array; autoreset is `SAME_STEP`."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(self, world: World, num_envs: int = 1, max_steps: int = 100):
        self.world, self.num_envs, self.max_steps = world, num_envs, max_steps
        self.single_observation_space, self.single_action_space = world.observation_space, world.action_space
        self.observation_space = batch_space(world.observation_space, num_envs)
        self.action_space = batch_space(world.action_space, num_envs)
        self.rng = np.random.default_rng()

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None):
        if seed is not None:
            self.rng, _ = np_random(seed if isinstance(seed, int) else seed[0])
        self.states = self.world.start(self.num_envs, self.rng).astype(np.float32)
        self.steps = np.zeros(self.num_envs, int)
        return self.states.copy(), {}

    def step(self, actions: Any):
        self.states = self.world.step(self.states, np.asarray(actions), self.rng).astype(np.float32)
        self.steps += 1
        ended = self.steps >= self.max_steps
        info: dict[str, Any] = {}
        if ended.any():
            info = {"final_obs": self.states.copy(), "_final_obs": ended}
            self.states[ended] = self.world.start(int(ended.sum()), self.rng)
            self.steps[ended] = 0
        return self.states.copy(), np.zeros(self.num_envs), np.zeros(self.num_envs, bool), ended, info
