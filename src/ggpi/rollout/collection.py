"""Environments × policies → transitions, with the acting policy recorded.

Many copies of an environment run side by side, and all of them act in one compiled call. What Gymnasium does
at the end of an episode depends on the vector environment; whatever it is, the next state recorded there is
the last observation of the old episode, never the first of the new one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import create_empty_array

from ggpi._jax.forking import check_process
from ggpi._jax.jit import jit
from ggpi.data import Transitions
from ggpi.data.spaces import check_action_space, state_reader
from ggpi.data.transitions import numbered
from ggpi.envs.making import check_finite, make_vec, naming
from ggpi.policies import PolicyBank
from ggpi.policies.checks import check_policies, listed
from ggpi.progress import progress as progress_bar
from ggpi.types import whole

Column = dict[str, np.ndarray]


def collect(
    env: Any,
    policies: Sequence[Any],
    num_steps: int,
    *,
    switch_every: int | None = None,
    explore: float = 0.0,
    num_envs: int = 16,
    keys: Sequence[str] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Transitions:
    """`num_steps` transitions of policies that take turns in an environment.

    `env` is an id, of which `num_envs` copies are made, one environment, or a vector environment.
    A policy is drawn uniformly when an episode starts, and with `switch_every` = k again after
    Uniform{1 … k} steps. `explore` is the share of these turns in which actions are random, uniform over the action
    space: models that score first actions have to know what follows actions that no policy takes. Such rows have
    behaviour −1. `progress` is called with the number of transitions so far, in place of a progress bar.

    Observations are Box vectors or Discrete, and so are actions. Of observations that are dictionaries, `keys`
    says which parts make the state, in this order: `keys=("observation",)` leaves a maze's goal out.

    An environment that says `world_ended: False` in the info of a terminated step (the task was done, the
    world goes on) is recorded as truncated.
    """
    num_steps = whole(num_steps, "num_steps", least=None)
    if num_steps < 1 or (switch_every is not None and switch_every < 1):
        raise ValueError(f"collect needs at least one step, got {num_steps=} and {switch_every=}")
    check_process()
    bank = PolicyBank(listed(policies))
    vector = _vector_env(env, num_envs)
    try:
        check_action_space(vector.single_action_space)
        read = state_reader(vector.single_observation_space, keys)
        one = read(create_empty_array(vector.single_observation_space, fn=np.zeros))
        check_policies(policies, one, vector.single_action_space)
        _check_explorable(explore, vector.single_action_space)
        turns = _Turns(len(bank), switch_every, explore, vector.num_envs, np.random.default_rng(seed))
        own = contextlib.nullcontext(lambda done, text: progress(done)) if progress else None
        with own or progress_bar(num_steps, "collecting") as advance:
            told = lambda done: advance(done, "")  # noqa: E731
            columns = _record(vector, read, bank, num_steps, turns, seed, told)
    finally:
        if isinstance(env, str):
            vector.close()
    return _in_episodes(columns, num_steps)


def _vector_env(env: Any, num_envs: int) -> VectorEnv:
    if isinstance(env, str):
        return make_vec(env, num_envs)
    if isinstance(env, VectorEnv):
        return env
    if isinstance(env, gymnasium.Env):
        return SyncVectorEnv([lambda: env], autoreset_mode=AutoresetMode.SAME_STEP)
    raise TypeError(f"collect takes an id, an Env or a VectorEnv of Gymnasium, got {type(env).__name__}")


def _check_explorable(explore: float, space: Any) -> None:
    if not 0 <= explore <= 1:
        raise ValueError(f"explore is a share of the turns, between 0 and 1, got {explore}")
    if explore and not (isinstance(space, Discrete) or space.is_bounded()):
        raise ValueError(
            f"random actions are uniform, but the action space has no bounds: {space}; give explore=0"
        )


def _record(vector, read, bank, num_steps, turns: _Turns, seed, progress) -> list[Column]:
    """One column of rows per step of the vector environment, until there are enough rows."""
    key = jax.random.key(seed)
    mode = AutoresetMode(vector.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    with naming(vector):
        states = read(vector.reset(seed=seed)[0])
    idle = np.zeros(vector.num_envs, bool)  # this step of the row merely resets it
    steps = np.zeros(vector.num_envs, int)  # of the row's episode
    columns, recorded, clipped = [], 0, 0
    while recorded < num_steps:
        check_finite(states, ~idle, steps, vector)
        actions = np.asarray(act(bank, np.maximum(turns.index, 0), states, key, np.uint32(len(columns))))
        actions = turns.explored(actions, vector.single_action_space)
        actions, outside = executed(actions, vector.single_action_space)
        with naming(vector):
            observed, _, terminated, truncated, info = vector.step(actions)
        following, steps = read(observed), np.where(idle, 0, steps + 1)
        ended = (np.asarray(terminated) | np.asarray(truncated)) & ~idle
        column = {"state": states, "action": actions, "behaviour": turns.index.copy(), "live": ~idle}
        column |= _outcome(following, read, np.asarray(terminated), ended, info, mode)
        check_finite(column["next_state"], ~idle, steps, vector)
        columns.append(column)
        recorded, clipped = recorded + int((~idle).sum()), clipped + int((outside & ~idle).sum())
        if mode == AutoresetMode.DISABLED and ended.any():
            following = read(vector.reset(options={"reset_mask": ended})[0])
        steps[ended] = 0
        turns.advance(ended | idle)
        idle = ended if mode == AutoresetMode.NEXT_STEP else np.zeros_like(idle)
        states = following
        progress(min(recorded, num_steps))
    if clipped:
        warnings.warn(
            f"{clipped} of {recorded} actions were outside of the action space and clipped", stacklevel=3
        )
    return columns


class _Turns:
    """Whose turn it is in each copy of the environment: a policy's, or −1 for random actions."""

    def __init__(
        self,
        num_policies: int,
        longest: int | None,
        explore: float,
        num_envs: int,
        rng: np.random.Generator,
    ):
        self.num_policies, self.longest, self.explore, self.rng = num_policies, longest, explore, rng
        self.index, self.left = np.zeros((2, num_envs), int)
        self._draw(np.ones(num_envs, bool))

    def advance(self, new_episode: np.ndarray) -> None:
        """One step later; policies are drawn where an episode begins or a turn is over."""
        self.left -= 1
        self._draw(new_episode if self.longest is None else new_episode | (self.left == 0))

    def _draw(self, rows: np.ndarray) -> None:
        self.index[rows] = self.rng.integers(self.num_policies, size=rows.sum())
        if self.longest is not None:
            self.left[rows] = self.rng.integers(1, self.longest + 1, size=rows.sum())
        if self.explore:
            self.index[rows & (self.rng.random(len(rows)) < self.explore)] = -1

    def explored(self, actions: np.ndarray, space: Any) -> np.ndarray:
        """The policies' actions, with random ones in turns that explore."""
        rows = np.flatnonzero(self.index < 0)
        if not len(rows):
            return actions
        actions = actions.copy()
        if isinstance(space, Discrete):
            actions[rows] = self.rng.integers(space.n, size=len(rows))
        else:
            actions[rows] = self.rng.uniform(space.low, space.high, (len(rows), *space.shape))
        return actions


@jit
def act(bank: PolicyBank, index: Any, states: Any, key: Any, time: Any) -> Any:
    """Actions [B] of policies `index` [B] of a bank in states [B, D], at this time."""
    return bank.sample(index, states, key=jax.random.fold_in(key, time))


def executed(actions: np.ndarray, space: Any) -> tuple[np.ndarray, np.ndarray]:
    """Actions within the space, and in which rows they were not."""
    if isinstance(space, Discrete):
        if not ((actions >= 0) & (actions < space.n)).all():
            raise ValueError(f"this environment has actions 0 to {space.n - 1}, a policy gave {actions!r}")
        return actions, np.zeros(len(actions), bool)
    inside = np.clip(actions, space.low, space.high).astype(space.dtype)
    return inside, np.any(np.abs(inside - actions) > 1e-6, axis=1, keepdims=True)[:, 0]


def _outcome(following, read, terminated, ended, info, mode) -> Column:
    """Next states and flags of one step, with the last observations of the episodes that ended."""
    if mode == AutoresetMode.SAME_STEP and ended.any():
        following = following.copy()
        for i in np.flatnonzero(ended):
            following[i] = read(info["final_obs"][i])
        info = info.get("final_info", {})
    if "world_ended" in info:
        told = np.asarray(info.get("_world_ended", np.ones(len(ended), bool)))
        terminated = terminated & ~(told & ~np.asarray(info["world_ended"], bool))
    return {"next_state": following, "terminated": terminated & ended, "truncated": ended & ~terminated}


def _in_episodes(columns: list[Column], num_steps: int) -> Transitions:
    """The first `num_steps` rows in order of time, arranged episode by episode."""
    stacked = {name: np.stack([column[name] for column in columns]) for name in columns[0]}
    live = stacked.pop("live")
    kept = live & (np.cumsum(live).reshape(live.shape) <= num_steps)
    rows = {name: values.swapaxes(0, 1)[kept.T] for name, values in stacked.items()}
    copy_of = np.nonzero(kept.T)[0]
    ended = rows["terminated"] | rows["truncated"]
    last = np.append(copy_of[1:] != copy_of[:-1], True)
    rows["truncated"] |= last & ~ended
    starts = np.concatenate([[True], (ended | last)[:-1]])
    episode, step = numbered(starts)
    return Transitions(**rows, episode=episode, step=step)
