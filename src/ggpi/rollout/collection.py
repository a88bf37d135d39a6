"""Environments × policies → transitions, with the policy that acted in each.

Many copies of an environment run side by side, and all of them act in one compiled call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import create_empty_array

from ggpi._jax.forking import check_process
from ggpi.data import Transitions
from ggpi.data.spaces import check_action_space, clipped, state_reader
from ggpi.envs.making import make_vec
from ggpi.policies import PolicyBank
from ggpi.policies.checks import check_policies, listed
from ggpi.progress import progress
from ggpi.rollout.acting import act_at
from ggpi.rollout.episodes import Choose, Vector, follow, recorded
from ggpi.rollout.shards import SHARDS, collect_shards, planned
from ggpi.types import Key, Policy, whole

if TYPE_CHECKING:
    from ggpi.cluster import Executor

World = str | gymnasium.Env | VectorEnv | Callable[[int], VectorEnv]


def collect(
    env: World,
    policies: Sequence[Policy],
    num_steps: int,
    *,
    switch_every: int | None = None,
    explore: float = 0.0,
    num_envs: int = 16,
    keys: Sequence[str] | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    shards: int | None = None,
    mapped: str | Path | None = None,
) -> Transitions:
    """`num_steps` transitions of policies that take turns in an environment.

    A policy is drawn uniformly when an episode starts, and with `switch_every` again during the episode. Observations
    and actions are Box vectors or Discrete. An environment that reports `world_ended: False` in the info of a
    terminated step (the task is done, but the state is not terminal) is recorded as truncated.

    Args:
        env: an id, of which `num_envs` copies are made, one environment, a vector environment, or a function of
            `num_envs` that makes one.
        policies: the policies; `behaviour` of a transition is the index of the one that acted.
        num_steps: the number of transitions.
        switch_every: the longest turn k: a policy acts for Uniform{1 … k} steps before another is drawn.
        explore: the share of turns with random actions, uniform over the action space: models that score first
            actions have to learn what follows actions that no policy takes. Such rows have behaviour −1.
        num_envs: the number of copies that are made of an id.
        keys: of dictionary observations, the parts that make the state, in this order: `keys=("observation",)`
            leaves the goal of a maze out.
        seed: seeds the environment, the turns and the actions.
        executor: collects in shards, such as `ggpi.cluster.processes(4)`: `env` is then an id or a function.
        shards: the number of independent collections, each of `num_envs` copies (with an executor 16). Transitions
            depend on it and on the seed, not on the executor.
        mapped: a directory for the transitions, written shard by shard: for data larger than memory.
    """
    num_steps = whole(num_steps, "num_steps", least=None)
    if num_steps < 1 or (switch_every is not None and switch_every < 1):
        raise ValueError(f"collect needs at least one step, got {num_steps=} and {switch_every=}")
    check_process()
    if executor is not None or shards is not None or mapped is not None:
        _check_made_here(env)
        settings = {"switch_every": switch_every, "explore": explore, "num_envs": num_envs, "keys": keys}
        parts = planned(num_steps, SHARDS if shards is None else whole(shards, "shards"), seed)
        one = partial(collect, env, listed(policies), **settings)
        return collect_shards(one, parts, executor, mapped)
    bank = PolicyBank(listed(policies))
    vector = _vector_env(env, num_envs)
    try:
        check_action_space(vector.single_action_space)
        read = state_reader(vector.single_observation_space, keys)
        one = read(create_empty_array(vector.single_observation_space, fn=np.zeros))
        check_policies(policies, one, vector.single_action_space)
        _check_explorable(explore, vector.single_action_space)
        turns = _Turns(bank, switch_every, explore, vector.num_envs, seed)
        with progress(num_steps, "collecting") as advance:
            return _record(Vector(vector, read, seed), turns, num_steps, seed, advance)
    finally:
        if isinstance(env, str) or callable(env):
            vector.close()


def _check_made_here(env: World) -> None:
    if not (isinstance(env, str) or callable(env)):
        raise TypeError(
            f"shards make their own environments: give an id, or a function of num_envs that makes a vector "
            f"environment, such as functools.partial(SparseAntVector, target=None), instead of a {type(env).__name__}"
        )


def _vector_env(env: object, num_envs: int) -> VectorEnv:
    if isinstance(env, str):
        return make_vec(env, num_envs)
    if callable(env):
        return cast(VectorEnv, env(num_envs))
    if isinstance(env, VectorEnv):
        return env
    if isinstance(env, gymnasium.Env):
        return SyncVectorEnv([lambda: env], autoreset_mode=AutoresetMode.SAME_STEP)
    raise TypeError(f"collect takes an id, an Env or a VectorEnv of Gymnasium, got {type(env).__name__}")


def _check_explorable(explore: float, space: Space) -> None:
    if not 0 <= explore <= 1:
        raise ValueError(f"explore is a share of the turns, between 0 and 1, got {explore}")
    if explore and isinstance(space, Box) and not space.is_bounded():
        raise ValueError(
            f"random actions are uniform, but the action space has no bounds: {space}; give explore=0"
        )


def _record(
    copies: Vector, turns: _Turns, num_steps: int, seed: int, advance: Callable[[int, str], None]
) -> Transitions:
    """Steps of all copies until there are enough rows, as transitions."""
    steps, behaviour, count, outside = [], [], 0, 0
    for step in follow(copies, turns.actions(copies.env.single_action_space, jax.random.key(seed))):
        steps.append(step)
        behaviour.append(turns.index.copy())
        count, outside = count + int(step.live.sum()), outside + int((turns.outside & step.live).sum())
        advance(min(count, num_steps), "")
        if count >= num_steps:
            break
        turns.advance(step.ended | ~step.live)
    if outside:
        warnings.warn(
            f"{outside} of {count} actions were outside of the action space and clipped", stacklevel=3
        )
    return recorded(steps, behaviour, num_steps)


class _Turns:
    """Which policy acts in each copy of the environment; −1 means random actions."""

    def __init__(self, bank: PolicyBank, longest: int | None, explore: float, num_envs: int, seed: int):
        self.bank, self.longest, self.explore = bank, longest, explore
        self.rng = np.random.default_rng(seed)
        self.index, self.left = np.zeros((2, num_envs), int)
        self.outside = np.zeros(num_envs, bool)
        """Copies whose last action was outside of the action space."""
        self._draw(np.ones(num_envs, bool))

    def advance(self, new_episode: np.ndarray) -> None:
        """One step later; policies are drawn where an episode begins or a turn is over."""
        self.left -= 1
        self._draw(new_episode if self.longest is None else new_episode | (self.left == 0))

    def _draw(self, rows: np.ndarray) -> None:
        self.index[rows] = self.rng.integers(len(self.bank), size=rows.sum())
        if self.longest is not None:
            self.left[rows] = self.rng.integers(1, self.longest + 1, size=rows.sum())
        if self.explore:
            self.index[rows & (self.rng.random(len(rows)) < self.explore)] = -1

    def actions(self, space: Space, key: Key) -> Choose:
        """The choice of actions in this space: those of the policies whose turn it is, or random ones."""

        def choose(t: int, states: np.ndarray) -> np.ndarray:
            chosen = np.asarray(act_at(self.bank, np.maximum(self.index, 0), states, key, np.uint32(t)))
            inside, self.outside = clipped(self._explored(chosen, space), space)
            return inside

        return choose

    def _explored(self, actions: np.ndarray, space: Space) -> np.ndarray:
        """The policies' actions, with random ones in turns that explore."""
        rows = np.flatnonzero(self.index < 0)
        if not len(rows):
            return actions
        actions = actions.copy()
        if isinstance(space, Discrete):
            actions[rows] = self.rng.integers(space.n, size=len(rows))
        elif isinstance(space, Box):
            actions[rows] = self.rng.uniform(space.low, space.high, (len(rows), *space.shape))
        return actions
