"""True futures of any Gymnasium environment that is reproducible: the same seed and actions, the same states.

The state of a Gymnasium environment can rarely be set, but almost all of them return to one: `reset(seed=…)` and
the same actions lead to the same observation. From there another first action can be tried, with the same
random numbers afterwards. So there are many futures of one pair (x, a), and of (x, a′) beside it.

A pair is visited `NUM_PATHS` times; each path is followed by the policy and read at several random times T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Space
from jaxtyping import Integer

from ggpi.data.spaces import clipped, executed, state_reader
from ggpi.envs.making import make
from ggpi.policies import PolicyBank
from ggpi.rollout.acting import act_at
from ggpi.rollout.episodes import Singles, follow
from ggpi.types import Key, Policy

NUM_PATHS = 32
"""Paths from each pair; futures beyond that many are further times on the same paths."""
LONGEST = 40
"""Pairs are at most this many steps after a reset, one policy acting until then."""


class NotRepeatableError(Exception):
    """The same seed and the same actions led to another observation."""


class Visit(NamedTuple):
    """How to come to a pair (x, a) again."""

    seed: int
    before: list[np.ndarray]
    """Actions since the reset."""
    state: np.ndarray
    action: np.ndarray


class Path(NamedTuple):
    """X₁, X₂, … after a first action, and whether the last of them is terminal."""

    states: np.ndarray
    is_over: bool


class Replay:
    """Pairs of an environment to which one can return, and their futures under any policy and first action.

    Of an environment's id as many copies are made as there are pairs; an environment itself serves all of them.
    """

    def __init__(
        self,
        env: str | gymnasium.Env,
        policies: Sequence[Policy],
        num_pairs: int,
        keys: Sequence[str] | None,
        seed: int,
    ):
        self.is_own = isinstance(env, str)
        self.envs = [make(env, disable_env_checker=True) for _ in range(num_pairs)] if self.is_own else [env]
        self.read, self.seed = state_reader(self.envs[0].observation_space, keys), seed
        rng = np.random.default_rng(seed)
        whose, when = rng.integers(len(policies), size=num_pairs), rng.integers(LONGEST, size=num_pairs)
        bank = PolicyBank(policies)
        self.visits = [
            self._visit(bank, i, int(k), int(t)) for i, (k, t) in enumerate(zip(whose, when, strict=True))
        ]

    def close(self) -> None:
        """Closes the copies that were made here."""
        for env in self.envs if self.is_own else []:
            env.close()

    @property
    def action_space(self) -> Space:
        return self.envs[0].action_space

    def _visit(self, bank: PolicyBank, number: int, policy: int, steps: int) -> Visit:
        """A pair `steps` steps after a reset, or earlier if the episode is shorter."""
        env, seed = self.envs[number % len(self.envs)], 1000 * self.seed + number
        key = jax.random.fold_in(jax.random.key(self.seed), number)
        copies = Singles.reset([env], self.read, [seed])
        path = [*follow(copies, lambda t, x: self._act(bank, policy, x, key, t), steps + 1)]
        if path[-1].ended[0]:
            last = len(path) - 1
            steps = int(np.random.default_rng(seed).integers(last)) if last else 0
        actions = [step.action[0] for step in path]
        return Visit(seed, actions[:steps], path[steps].state[0], actions[steps])

    def _act(self, bank: PolicyBank, policy: int, states: np.ndarray, key: Key, time: int) -> np.ndarray:
        chosen = act_at(bank, np.int32(policy), states, key, np.uint32(time))
        return clipped(np.asarray(chosen), self.action_space)[0]

    def futures(
        self, policy: Policy, actions: np.ndarray, beta: float, num_samples: int, number: int
    ) -> tuple[np.ndarray, int]:
        """X_T [P, N, D] after the given first actions, and how many T lay beyond a truncated episode.

        The same `number` means the same T and the same random numbers: futures of two actions are comparable one
        by one.
        """
        rng, bank = np.random.default_rng([self.seed, number]), PolicyBank([policy])
        num_pairs, num_paths = len(self.visits), min(NUM_PATHS, num_samples)
        owner = np.arange(num_samples) * num_paths // num_samples
        times = rng.geometric(1 - beta, (num_pairs, num_samples))
        found, left_out = [], 0
        for r in range(num_paths):
            mine = times[:, owner == r]
            for first in range(0, num_pairs, len(self.envs)):
                rows = range(first, min(first + len(self.envs), num_pairs))
                paths = self._paths(bank, rows, actions, mine[first : rows.stop].max(axis=1), (number, r))
                for row, path in zip(rows, paths, strict=True):
                    states, missing = _at_times(path, mine[row], beta, [self.seed, number, r, row])
                    found.append((row, r, states))
                    left_out += missing
        found.sort(key=lambda part: part[:2])
        return np.concatenate([states for *_, states in found]).reshape(num_pairs, num_samples, -1), left_out

    def _paths(
        self,
        bank: PolicyBank,
        rows: range,
        actions: np.ndarray,
        lengths: Integer[np.ndarray, "P"],
        run: tuple[int, int],
    ) -> list[Path]:
        """Paths of some pairs, side by side, so that their policy acts in one call."""
        for env, row in zip(self.envs, rows, strict=False):
            self._return(env, self.visits[row])
            env.unwrapped.np_random = np.random.default_rng([self.seed, *run, row])
        key = jax.random.key(np.random.default_rng([self.seed, *run, rows.start]).integers(2**31))
        first = actions[rows.start : rows.stop]
        state = np.stack([self.visits[row].state for row in rows])
        copies = Singles(self.envs[: len(rows)], self.read, state)
        seen, over = [], np.zeros(len(rows), bool)

        def choose(t: int, states: np.ndarray) -> np.ndarray:
            return self._act(bank, 0, states, key, t - 1) if t else first

        for t, step in enumerate(follow(copies, choose), start=1):
            seen.append(step)
            over |= step.terminated
            copies.live &= t < lengths
        return [
            Path(np.stack([step.next_state[i] for step in seen if step.live[i]]), bool(over[i]))
            for i in range(len(rows))
        ]

    def _return(self, env: gymnasium.Env, visit: Visit) -> None:
        observed, _ = env.reset(seed=visit.seed)
        for action in visit.before:
            observed, *_ = env.step(executed(action, self.action_space))
        if not np.array_equal(self.read(observed), visit.state, equal_nan=True):
            raise NotRepeatableError


def _at_times(path: Path, times: np.ndarray, beta: float, seed: Sequence[int]) -> tuple[np.ndarray, int]:
    """The path's states at times T; it stays in a terminal state, and T beyond a truncated one is redrawn."""
    left_out, length, rng = 0, len(path.states), np.random.default_rng(seed)
    while not path.is_over and (missing := times > length).any():
        left_out += int(missing.sum())
        times = np.where(missing, rng.geometric(1 - beta, len(times)), times)
    return path.states[np.minimum(times, length) - 1], left_out
