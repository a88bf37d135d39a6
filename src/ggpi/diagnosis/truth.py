"""True futures to compare a model with: simulated or replayed where possible, else read from trajectories."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, Space
from gymnasium.vector import VectorEnv
from jaxtyping import Float, Real

from ggpi.data import Transitions
from ggpi.diagnosis.distances import Clouds
from ggpi.diagnosis.replay import NotRepeatableError, Replay
from ggpi.envs import Environment, GymEnv, GymVectorEnv, Pendulum
from ggpi.envs.environment import Confined, Dynamics
from ggpi.envs.making import make
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.learning.targets import followed_steps, why_loose
from ggpi.policies import PolicyBank
from ggpi.rollout.acting import act
from ggpi.rollout.collection import collect
from ggpi.rollout.futures import simulate_futures
from ggpi.types import Key, Policy

Source = Environment | Transitions | str | gymnasium.Env | VectorEnv
TAIL = 0.01
"""Rows are preferred from which at most this mass of T lies beyond the record."""
RECORDED = 1024
"""Pairs that are read from trajectories, each with one future."""
VISITED = 8192
"""States among which samples should lie."""
FEWEST = 256
"""Rows that these pairs are drawn from, at least: those with the longest records if too few are long."""


@dataclass(frozen=True, eq=False)
class Truth:
    """P pairs (x, a) with N true futures each."""

    state: Float[np.ndarray, "P D"]
    action: Real[np.ndarray, "P *A"]
    """One first action per pair, vectors [P, A] or integers [P]; or one per future, with an axis N after the first."""
    future: Clouds
    again: Float[np.ndarray, "P m D"] | None = None
    """A second set of futures: the distance between two sets is the least that a model can reach."""
    left_out: int = 0
    """Draws of T that lay beyond the recording."""
    other: Real[np.ndarray, "P *A"] | None = None
    """Another first action for each pair."""
    other_future: Clouds | None = None
    """Futures after the other action, with the T and the random numbers of `future`; None for recorded ones."""
    visited: Float[np.ndarray, "M D"] | None = None
    """States of other episodes, among which samples should lie."""
    possible: Callable[[np.ndarray], np.ndarray] | None = None
    """Which of states [..., D] can occur, where the environment can tell."""

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The state and the first action of each future, pair by pair [P·N, …]."""
        return rows_of(self.state, self.action, self.future.shape[1])


def rows_of(state: np.ndarray, action: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """States and actions of n futures of each pair [P·n, …]; actions may be given per pair or per future."""
    per_pair = action.ndim == (1 if action.dtype.kind in "iu" else 2)
    actions = np.repeat(action, n, axis=0) if per_pair else np.concatenate(action)
    return np.repeat(state, n, axis=0), actions


def scales(truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of states and of true displacements, coordinate by coordinate."""
    moved = truth.future - truth.state[:, None]
    deviations = (truth.state.std(axis=0), moved.reshape(-1, moved.shape[-1]).std(axis=0))
    return np.maximum(deviations[0], SMALLEST_SCALE), np.maximum(deviations[1], SMALLEST_SCALE)


def simulate_pairs(
    dynamics: Dynamics,
    policy: Policy,
    state: np.ndarray,
    action: np.ndarray,
    beta: float,
    n: int,
    *,
    seed: int,
) -> Clouds:
    """n futures X_T ∼ μ^π_β(·|x, a) of each pair, by simulation."""
    rows = rows_of(state, action, n)
    return simulate_futures(dynamics, policy, *rows, beta, seed=seed).reshape(len(state), n, -1)


def on_policy_truth(
    dynamics: Dynamics,
    policy: Policy,
    state: np.ndarray,
    beta: float,
    n: int,
    *,
    seeds: Sequence[int],
    key: Key,
) -> Truth:
    """n futures from each state, each after a first action of the policy; a second set where there are two seeds."""
    states = np.repeat(state, n, axis=0)
    action = np.asarray(act(PolicyBank([policy]), np.int32(0), states, key))
    action = action.reshape(len(state), n, *action.shape[1:])
    future, *more = (simulate_pairs(dynamics, policy, state, action, beta, n, seed=seed) for seed in seeds)
    return Truth(state, action, future, more[0] if more else None)


def random_rows(data: Transitions, count: int, seed: int) -> Transitions:
    """Rows of transitions, drawn without replacement."""
    return data[np.random.default_rng(seed).choice(len(data), count, replace=False)]


def true_futures(
    source: Source,
    policies: Sequence[Policy],
    index: int,
    beta: float,
    *,
    num_pairs: int = 16,
    num_samples: int = 256,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Truth:
    """Futures of policy `index` at horizon β.

    An environment of `ggpi.envs` is simulated from pairs that the policies visit in turns. A Gymnasium environment is
    brought to such pairs repeatedly by its seeds (`ggpi.diagnosis.replay`); one that is not reproducible, or a vector
    environment, is run with the policy alone and its trajectories are followed. Of transitions, those of the policy
    are followed.

    Args:
        source: an environment of `ggpi.envs`, transitions, or a Gymnasium environment or its id.
        policies: the policies, of which `index` is evaluated.
        beta: the horizon.
        num_pairs: pairs (x, a) of a simulated environment.
        num_samples: futures of each pair.
        keys: of dictionary observations, the parts that make the state.
    """
    if isinstance(source, Transitions):
        return _followed(source, index, beta, seed)
    environment, policy = _environment_of(source), policies[index]
    env: Any = source if environment is None else GymVectorEnv(environment, 16)
    visited = _visited(env, policies, policy, keys, seed + 1)
    if environment is not None:
        state, action = _met(environment, policies, num_pairs, seed)
        truth = _simulated(environment, policy, state, action, beta, num_samples, seed)
        return replace(truth, visited=visited, possible=possible_in(environment))
    if not isinstance(env, VectorEnv):
        with (
            contextlib.suppress(NotRepeatableError),
            contextlib.closing(Replay(env, policies, num_pairs, keys, seed)) as replay,
        ):
            return replace(_replayed(replay, policy, beta, num_samples), visited=visited)
    data = collect(env, [policy], 20 * RECORDED, keys=keys, seed=seed)
    return replace(recorded_futures(data, 0, beta, RECORDED, seed=seed), visited=visited)


def possible_in(environment: object) -> Callable[[np.ndarray], np.ndarray] | None:
    """The environment's own `possible`, if it has one."""
    return environment.possible if isinstance(environment, Confined) else None


def _environment_of(source: Environment | str | gymnasium.Env | VectorEnv) -> Environment | None:
    """The dynamics on arrays, if `source` has them: itself, or inside a Gymnasium environment made of it."""
    if source == "Pendulum-v1":
        return Pendulum()
    if isinstance(source, str):
        source = make(source)
    inner = source.unwrapped if isinstance(source, gymnasium.Env | VectorEnv) else source
    found = inner.environment if isinstance(inner, GymEnv | GymVectorEnv) else inner
    return (
        found if isinstance(found, Environment) and not isinstance(found, gymnasium.Env | VectorEnv) else None
    )


def _visited(
    env: str | gymnasium.Env | VectorEnv,
    policies: Sequence[Policy],
    policy: Policy,
    keys: Sequence[str] | None,
    seed: int,
) -> np.ndarray:
    """States of the policies taking turns, and of the policy alone."""
    turns = collect(env, policies, VISITED // 2, switch_every=40, keys=keys, seed=seed)
    alone = collect(env, [policy], VISITED // 2, keys=keys, seed=seed + 1)
    _check_vectors(turns)
    return np.concatenate([turns.next_state, alone.next_state])


def _check_vectors(data: Transitions) -> None:
    if data.state.ndim != 2:
        raise ValueError(
            f"clouds are compared of state vectors [N, D], got states of shape {data.state.shape}"
        )


def _met(
    environment: Environment, policies: Sequence[Policy], num_pairs: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """States and actions that the policies visit in turns."""
    seen = collect(GymVectorEnv(environment, num_pairs), policies, 40 * num_pairs, switch_every=40, seed=seed)
    rows = random_rows(seen, num_pairs, seed)
    return rows.state, rows.action


def _simulated(
    environment: Environment,
    policy: Policy,
    state: np.ndarray,
    action: np.ndarray,
    beta: float,
    num_samples: int,
    seed: int,
) -> Truth:
    other = other_actions(action, environment.action_space)
    future, again, after_other = (
        simulate_pairs(environment, policy, state, actions, beta, num_samples, seed=seed + 1 + number)
        for actions, number in ((action, 0), (action, 1), (other, 0))
    )
    return Truth(state, action, future, again, other=other, other_future=after_other)


def _replayed(replay: Replay, policy: Policy, beta: float, num_samples: int) -> Truth:
    state, action = (np.stack(part) for part in zip(*(visit[2:] for visit in replay.visits), strict=True))
    other = other_actions(action, replay.action_space)
    found = [
        replay.futures(policy, actions, beta, num_samples, number)
        for actions, number in ((action, 0), (action, 1), (other, 0))
    ]
    (future, left), (again, more), (other_future, _) = found
    return Truth(state, action, future, again, left + more, other, other_future)


def other_actions(actions: np.ndarray, space: Space | None = None) -> np.ndarray:
    """Another first action for each pair: the next one of a finite number, else the action of the pair before."""
    if actions.dtype.kind not in "iu":
        return np.roll(actions, 1, axis=0)
    count = int(space.n) if isinstance(space, Discrete) else int(actions.max()) + 1
    return (actions + 1) % max(count, 2)


def _followed(data: Transitions, index: int, beta: float, seed: int) -> Truth:
    """Futures in half of the episodes; states of the others are the visited ones."""
    data.check()
    _check_vectors(data)
    rng = np.random.default_rng(seed)
    episodes = rng.permutation(np.unique(data.episode))
    aside = np.isin(data.episode, episodes[: len(episodes) // 2])
    with contextlib.suppress(ValueError):
        truth = recorded_futures(data[~aside], index, beta, RECORDED, seed=seed)
        rows = rng.permutation(np.flatnonzero(aside))[:VISITED]
        return replace(truth, visited=data.next_state[rows]) if len(rows) else truth
    return recorded_futures(data, index, beta, RECORDED, seed=seed)


def recorded_futures(data: Transitions, policy: int, beta: float, n: int, *, seed: int = 0) -> Truth:
    """n recorded pairs with one X_T each; the steps after the pair's own are those that `policy` took.

    Pairs come from rows with a long recording ahead, or from the longest if there are few such rows. A T beyond the
    recording is redrawn, which favours the near future a little: `left_out` counts how often that happened. A
    terminated episode stays at its end, and no T lies beyond it. Transitions that cannot be followed raise an error.
    """
    rng = np.random.default_rng(seed)
    length = followed_steps(data, policy)
    ends = np.asarray(data.terminated, bool)[np.arange(len(data)) + length - 1]
    if beta > 0 and (length == 1).all() and not ends.all():
        raise ValueError(
            f"no futures of policy {policy} at β = {beta:g} can be read from these transitions: {why_loose(data)}. "
            "Give the environment instead (--env ID), or transitions in their order with the behaviour policy"
        )
    needed = math.ceil(math.log(TAIL) / math.log(beta)) if beta > 0 else 1
    reach = np.where(ends, needed, np.minimum(length, needed))
    rows = rng.choice(np.flatnonzero(reach >= np.sort(reach)[-min(FEWEST, len(reach))]), n)
    left_out, drawn = 0, []
    for _ in range(2):
        time, missing = rng.geometric(1 - beta, n), np.ones(n, bool)
        while (missing := (time > length[rows]) & ~ends[rows]).any():
            left_out += int(missing.sum())
            time[missing] = rng.geometric(1 - beta, missing.sum())
        drawn.append(data.next_state[rows + np.minimum(time, length[rows]) - 1][:, None])
    state, action = data.state[rows], data.action[rows]
    return Truth(state, action, drawn[0], drawn[1], left_out, other_actions(action))
