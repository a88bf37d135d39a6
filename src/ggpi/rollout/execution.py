"""Executes a switching policy in an environment, with its memory of the current segment.

At t = 0 the first policy acts (or the given first action is taken). Before each later action the
segment ends with probability αₘ, and the next policy acts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.data import Transitions
from ggpi.data.spaces import state_reader
from ggpi.mdp.rows import running_sums
from ggpi.mdp.tabular import TabularMDP
from ggpi.policies import PolicyBank, TabularPolicy
from ggpi.rollout.acting import act_at
from ggpi.rollout.episodes import Simulation, Singles, follow, recorded
from ggpi.switching import GSP
from ggpi.types import Policy


def rollout(
    gsp: GSP,
    policies: Sequence[Any],
    env: TabularMDP | gymnasium.Env,
    *,
    num_steps: int,
    num_episodes: int = 1,
    start: ArrayLike | None = None,
    first_action: ArrayLike | None = None,
    seed: int = 0,
) -> Transitions:
    """Episodes of a GSP in a `TabularMDP` or a Gymnasium environment; `behaviour` is the policy that acted.

    Args:
        policies: the base policies that `gsp` numbers.
        num_steps: the longest episode.
        start: a state of the MDP, or one per episode; a Gymnasium environment chooses its own.
        first_action: the action at t = 0 instead of the first policy's.

    Paper: Def 3.1, Fig 2
    """
    if num_steps < 1 or num_episodes < 1:
        raise ValueError(f"a rollout has at least one step and episode, got {num_steps} and {num_episodes}")
    if max(gsp.policies) >= len(policies):
        raise IndexError(f"{gsp} names policy {max(gsp.policies)}, but there are {len(policies)}")
    rng = np.random.default_rng(seed)
    if isinstance(env, TabularMDP):
        if start is None:
            raise ValueError("a rollout in a TabularMDP needs start=, the state where it begins")
        starts = np.broadcast_to(np.asarray(start), (num_episodes,)).copy()
        copies = Simulation(env, starts, rng, lambda states: env.terminal[states])
        first = None if first_action is None else np.broadcast_to(np.asarray(first_action), (num_episodes,))
        switching = _Switching(gsp, _from_tables(policies, rng), first, rng)
        return recorded([*follow(copies, switching, num_steps)], switching.behaviour)
    if start is not None:
        raise ValueError("a Gymnasium environment chooses its own start; leave start out")
    first = None if first_action is None else np.asarray(first_action)[None]
    switching = _Switching(gsp, _from_bank(policies, seed), first, rng)
    return _in_env(switching, env, num_steps, num_episodes, seed)


Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(policies [B], states [B, …]) ↦ actions [B, …]."""


class _Switching:
    """Chooses the actions of a GSP, and remembers the segment that each episode is in and which policies acted."""

    def __init__(self, gsp: GSP, act: Act, first_action: np.ndarray | None, rng: np.random.Generator):
        self.policies, self.alphas = np.array(gsp.policies), np.array([*gsp.alphas, 0.0])
        self.act, self.first_action, self.rng = act, first_action, rng
        self.segment = np.zeros(0, int)
        self.behaviour: list[np.ndarray] = []

    def __call__(self, t: int, states: np.ndarray) -> np.ndarray:
        if t == 0:
            self.segment = np.zeros(len(states), int)
        else:
            self.segment = self.segment + (self.rng.random(len(states)) < self.alphas[self.segment])
        self.behaviour.append(self.policies[self.segment])
        if t == 0 and self.first_action is not None:
            return self.first_action
        return self.act(self.behaviour[-1], states)


def _from_tables(policies: Sequence[TabularPolicy | np.ndarray], rng: np.random.Generator) -> Act:
    sums = running_sums(np.stack([np.asarray(policy, float) for policy in policies]))

    def act(index: np.ndarray, states: np.ndarray) -> np.ndarray:
        return (sums[index, states] <= rng.random((len(states), 1))).sum(axis=1)

    return act


def _from_bank(policies: Sequence[Policy], seed: int) -> Act:
    bank, key, count = PolicyBank(policies), jax.random.key(seed), 0

    def act(index: np.ndarray, states: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return np.asarray(act_at(bank, index, states, key, np.uint32(count)))

    return act


def _in_env(
    switching: _Switching, env: gymnasium.Env, num_steps: int, num_episodes: int, seed: int
) -> Transitions:
    """One episode after the other; each is cut after `num_steps`."""
    read, steps = state_reader(env.observation_space), []
    for episode in range(num_episodes):
        copies = Singles.reset([env], read, [seed if episode == 0 else None])
        steps += follow(copies, switching, num_steps)
        steps[-1] = steps[-1]._replace(truncated=~steps[-1].terminated)
    return recorded(steps, switching.behaviour)
