"""Following policies in an environment, one step of many copies at a time.

    Singles       Gymnasium environments, one episode each; a copy rests when its episode has ended
    Vector        a vector environment of Gymnasium, one episode after the other in every copy
    Simulation    an environment whose step is a function of arrays, from any states

`follow` steps any of them with the actions that a function chooses, and yields what happened:

    for step in follow(Singles.reset([env], read, [seed]), lambda t, states: agent.act(states), num_steps=100):
        …
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Bool, Integer, Shaped

from ggpi.data import Transitions
from ggpi.data.spaces import Reader, executed
from ggpi.data.transitions import episode_ends, numbered
from ggpi.envs.environment import Dynamics
from ggpi.envs.making import check_finite, naming

Rows = Shaped[np.ndarray, "B ..."]
Mask = Bool[np.ndarray, "B"]
Choose = Callable[[int, np.ndarray], Any]
"""(t, states [B, …]) ↦ actions [B, …]."""


class Step(NamedTuple):
    """One step of B copies. In rows that are not live nothing happened."""

    state: Rows
    action: Rows
    next_state: Rows
    terminated: Mask
    """The copy entered a terminal state."""
    truncated: Mask
    """Its episode ended otherwise."""
    live: Mask
    is_done: Mask
    """The environment said `terminated`: it entered a terminal state, or its task is done."""

    @property
    def ended(self) -> Mask:
        return self.terminated | self.truncated


@runtime_checkable
class Copies(Protocol):
    """B copies of an environment, stepped together."""

    state: Rows
    live: Mask
    """Copies that the next step moves."""

    @property
    def is_over(self) -> bool:
        """No step will move anything any more."""
        ...

    def step(self, actions: Rows) -> Step: ...


def follow(copies: Copies, choose: Choose, num_steps: int | None = None) -> Iterator[Step]:
    """Steps all copies until their episodes have ended, or `num_steps` times.

    Between two steps the caller may take copies out: `copies.live[i] = False`.
    """
    for t in itertools.count() if num_steps is None else range(num_steps):
        yield copies.step(np.asarray(choose(t, copies.state)))
        if copies.is_over:
            return


class Singles:
    """Gymnasium environments side by side, with the states in which they are."""

    def __init__(self, envs: Sequence[gymnasium.Env], read: Reader, state: Rows):
        self.envs, self.read, self.state = envs, read, state
        self.live = np.ones(len(envs), bool)

    @classmethod
    def reset(
        cls,
        envs: Sequence[gymnasium.Env],
        read: Reader,
        seeds: Sequence[int | None],
        options: dict[str, Any] | None = None,
    ) -> Singles:
        """New episodes, each with its own seed; all with the same options of `reset`."""
        first = [
            read(env.reset(seed=seed, options=options)[0]) for env, seed in zip(envs, seeds, strict=True)
        ]
        return cls(envs, read, np.stack(first))

    @property
    def is_over(self) -> bool:
        return not self.live.any()

    def step(self, actions: Rows) -> Step:
        following = self.state.copy()
        terminated, truncated, is_done = np.zeros((3, len(self.envs)), bool)
        for i in np.flatnonzero(self.live):
            env = self.envs[int(i)]
            with naming(env):
                observed, _, is_done[i], is_cut, info = env.step(executed(actions[i], env.action_space))
            following[i] = self.read(observed)
            terminated[i] = is_done[i] and info.get("world_ended", True)
            truncated[i] = (is_done[i] or is_cut) and not terminated[i]
        step = Step(self.state, actions, following, terminated, truncated, self.live, is_done)
        self.state, self.live = following, self.live & ~step.ended
        return step


class Vector:
    """A vector environment of Gymnasium, in any autoreset mode.

    The next state at the end of an episode is the last observation of that episode, never the first of the next one.
    In mode NEXT_STEP a copy rests for the step that merely resets it.
    """

    is_over = False

    def __init__(self, env: VectorEnv, read: Reader, seed: int):
        self.env, self.read = env, read
        self.mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        with naming(env):
            self.state = read(env.reset(seed=seed)[0])
        self.live = np.ones(env.num_envs, bool)
        self.times = np.zeros(env.num_envs, int)
        """Steps of each copy's episode."""

    def step(self, actions: Rows) -> Step:
        check_finite(self.state, self.live, self.times, self.env)
        with naming(self.env):
            observed, _, terminated, truncated, info = self.env.step(actions)
        following, live = self.read(observed), self.live
        self.times = np.where(live, self.times + 1, 0)
        is_done = np.asarray(terminated) & live
        ended = is_done | (np.asarray(truncated) & live)
        last, terminated = self._outcome(following, is_done, ended, info)
        check_finite(last, live, self.times, self.env)
        step = Step(self.state, actions, last, terminated, ended & ~terminated, live, is_done)
        if self.mode == AutoresetMode.DISABLED and ended.any():
            following = self.read(self.env.reset(options={"reset_mask": ended})[0])
        self.times[ended] = 0
        self.live = ~ended if self.mode == AutoresetMode.NEXT_STEP else np.ones_like(live)
        self.state = following
        return step

    def _outcome(
        self, following: Rows, terminated: Mask, ended: Mask, info: dict[str, Any]
    ) -> tuple[Rows, Mask]:
        """Next states, with the last observations of ended episodes, and which of these are terminal."""
        if self.mode == AutoresetMode.SAME_STEP and ended.any():
            following = following.copy()
            for i in np.flatnonzero(ended):
                following[i] = self.read(info["final_obs"][i])
            info = info.get("final_info", {})
        if "world_ended" in info:
            told = np.asarray(info.get("_world_ended", np.ones(len(ended), bool)))
            terminated = terminated & ~(told & ~np.asarray(info["world_ended"], bool))
        return following, terminated


class Simulation:
    """An environment of arrays, from given states; `terminal(states)` tells where episodes end."""

    def __init__(
        self,
        dynamics: Dynamics,
        state: Rows,
        rng: np.random.Generator,
        terminal: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        self.dynamics, self.state, self.rng, self.terminal = dynamics, state, rng, terminal
        self.live = np.ones(len(state), bool) if terminal is None else ~terminal(state)

    @property
    def is_over(self) -> bool:
        return not self.live.any()

    def step(self, actions: Rows) -> Step:
        following = self.dynamics.step(self.state, actions, self.rng)
        none = np.zeros(len(following), bool)
        terminated = none if self.terminal is None else self.terminal(following) & self.live
        step = Step(self.state, actions, following, terminated, none, self.live, terminated)
        self.state, self.live = following, self.live & ~terminated
        return step


def recorded(
    steps: Sequence[Step], behaviour: Sequence[Integer[np.ndarray, "B"]], limit: int | None = None
) -> Transitions:
    """The steps as transitions, episode by episode, copy by copy.

    Args:
        behaviour: the policy that acted in each copy, for each step.
        limit: rows that are kept, in order of time; by default all. Where the record of a copy stops, its episode
            is truncated.
    """
    live = np.stack([step.live for step in steps])
    kept = live if limit is None else live & (np.cumsum(live).reshape(live.shape) <= limit)
    copy_of = np.nonzero(kept.T)[0]

    def column(parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack(parts).swapaxes(0, 1)[kept.T]

    state, action, next_state, terminated, truncated = (column([step[i] for step in steps]) for i in range(5))
    truncated = truncated | (episode_ends(copy_of) & ~terminated)
    episode, step = numbered(np.append(True, (terminated | truncated)[:-1])[: len(state)])
    return Transitions(state, action, next_state, terminated, truncated, column(behaviour), episode, step)
