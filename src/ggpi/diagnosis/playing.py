"""Actors on true episodes: copies of an environment that run side by side, and the rewards of every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.jit import jit
from ggpi.data.spaces import state_reader
from ggpi.envs.making import make, name_of
from ggpi.evaluation.rewards import OnHost, Table, checked_reward, rewards_at
from ggpi.policies import PolicyBank
from ggpi.policies.checks import check_policies
from ggpi.rewards import Reward
from ggpi.rollout.acting import act
from ggpi.rollout.episodes import Singles, follow
from ggpi.types import Key, Policy


@runtime_checkable
class Actor(Protocol):
    """Anything that chooses actions for a batch of states."""

    def act(self, states: np.ndarray, /, *, key: Key) -> Any: ...


class Base:
    """One base policy."""

    def __init__(self, bank: PolicyBank, index: int):
        self.bank, self.index = bank, index

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        return np.asarray(act(self.bank, np.int32(self.index), states, key))


class Switching:
    """Another base policy is drawn with probability α in each step, in each episode by itself."""

    def __init__(self, bank: PolicyBank, alpha: float, episodes: int, seed: int):
        self.bank, self.alpha, self.rng = bank, alpha, np.random.default_rng(seed)
        self.index = self.rng.integers(len(bank), size=episodes)

    def act(self, states: np.ndarray, *, key: Key) -> np.ndarray:
        switches = self.rng.random(len(states)) < self.alpha
        self.index = np.where(switches, self.rng.integers(len(self.bank), size=len(states)), self.index)
        return np.asarray(act(self.bank, self.index, states, key))


class Episodes:
    """Copies of an environment that run side by side, so that each actor chooses all actions of a step in one call."""

    def __init__(self, env: str | Callable[[], gymnasium.Env], count: int, keys: Sequence[str] | None):
        self.envs = [make(env) if isinstance(env, str) else env() for _ in range(count)]
        self.read = state_reader(self.envs[0].observation_space, keys)

    def check(self, policies: Sequence[Policy]) -> None:
        """Raises if the policies do not match the spaces of this environment."""
        env = self.envs[0]
        example = self.read(env.observation_space.sample())
        check_policies(policies, example[None], env.action_space, f"environment {name_of(env)}")

    def play(
        self,
        agent: Actor,
        reward: Reward,
        gamma: float,
        max_steps: int,
        seed: int,
        advance: Callable[[int], None],
    ) -> tuple[np.ndarray, ...]:
        """Sums of rewards, discounted sums, steps, and whether the environment terminated, per episode."""
        copies = Singles.reset(self.envs, self.read, range(seed, seed + len(self.envs)))
        total, discounted = np.zeros((2, len(self.envs)))
        steps, done = np.zeros(len(self.envs), int), np.zeros(len(self.envs), bool)
        key, values = jax.random.key(seed), None

        def choose(t: int, states: np.ndarray) -> np.ndarray:
            return agent.act(states, key=jax.random.fold_in(key, t))

        for t, step in enumerate(follow(copies, choose, max_steps)):
            values = values or checked_values(reward, step.state, step.action)
            rewards = paid_for(reward.form, values, step.state, step.action, step.next_state)
            rewards = np.where(step.live, rewards, 0.0)
            total, discounted = total + rewards, discounted + gamma**t * rewards
            steps, done = steps + step.live, done | step.is_done
            advance(t + 1)
        return total, discounted, steps, done

    def close(self) -> None:
        for env in self.envs:
            env.close()


def checked_values(reward: Reward, states: np.ndarray, actions: np.ndarray) -> Any:
    """The reward's values for `paid_for`, after a check on the shapes of a state and an action."""
    shapes = [jax.ShapeDtypeStruct(part.shape[1:], part.dtype) for part in (states, actions)]
    shape = () if callable(reward.values) else np.shape(reward.values)
    values = checked_reward(reward, shapes[0], shapes[1], (shape[0], shape[-1]) if shape else None).values
    return values if callable(values) else Table(jnp.asarray(values, jnp.float32))


def paid_for(
    form: str, values: Any, states: np.ndarray, actions: np.ndarray, next_states: np.ndarray
) -> np.ndarray:
    """The rewards of true steps [B]."""
    parts = {"state": (states,), "state_action": (states, actions), "arrival": (next_states,)}[form]
    pay = rewards_at if isinstance(values, OnHost) else _pay
    return np.asarray(pay(values, *(part[None, :, None] for part in parts)))[0, :, 0]


_pay = jit(rewards_at)
