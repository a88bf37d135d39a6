"""True futures to compare a model with: simulated or replayed where possible, else read from trajectories."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv

from ggpi.data import Transitions
from ggpi.diagnosis.replay import NotRepeatableError, Replay
from ggpi.envs import Pendulum, World, WorldVectorEnv
from ggpi.envs.making import make
from ggpi.learning.targets import followed_steps, why_loose
from ggpi.rollout.collection import collect
from ggpi.rollout.futures import simulate_futures

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
    """P pairs (x, a) with N true futures each, and as many again to see how far truth is from truth."""

    state: np.ndarray
    action: np.ndarray
    future: np.ndarray
    again: np.ndarray
    left_out: int = 0
    """Draws of T that lay beyond the record."""
    other: np.ndarray | None = None
    """Another first action for each pair."""
    other_future: np.ndarray | None = None
    """Futures after the other action, with the T and the random numbers of `future`; None for a record."""
    visited: np.ndarray | None = None
    """States [M, D] of other episodes, to see where the world's states lie."""


def true_futures(
    source: Any,
    policies: Sequence[Any],
    index: int,
    beta: float,
    *,
    num_pairs: int = 16,
    num_samples: int = 256,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Truth:
    """Futures of policy `index` at horizon β, from a world, transitions, or a Gymnasium environment.

    A world is simulated from `num_pairs` pairs that the policies visit in turns, `num_samples` times each. A Gymnasium
    environment is brought to such pairs again and again by its seeds (`ggpi.diagnosis.replay`); one that does not
    repeat itself, or a vector environment, is run with the policy alone and its record is followed. Of transitions,
    those of the policy are followed. Of observations that are dictionaries, `keys` says which parts make the state.
    """
    if isinstance(source, Transitions):
        return _followed(source, index, beta, seed)
    world, policy = _world_of(source), policies[index]
    env = source if world is None else WorldVectorEnv(world, 16)
    visited = _visited(env, policies, policy, keys, seed + 1)
    sizes = (num_pairs, num_samples, seed)
    if world is not None:
        return replace(_simulated(world, policies, policy, beta, *sizes), visited=visited)
    if not isinstance(source, VectorEnv):
        with contextlib.suppress(NotRepeatableError):
            return replace(_replayed(source, policies, policy, beta, *sizes, keys), visited=visited)
    record = collect(source, [policy], 20 * RECORDED, keys=keys, seed=seed)
    return replace(recorded_futures(record, 0, beta, RECORDED, seed=seed), visited=visited)


def _world_of(source: Any) -> World | None:
    """The world itself, or the one inside an environment that we made of it."""
    if source == "Pendulum-v1":
        return Pendulum()
    if isinstance(source, str):
        source = make(source)
    inner = source.unwrapped if isinstance(source, gymnasium.Env | VectorEnv) else source
    found = getattr(inner, "world", inner)
    return found if isinstance(found, World) and not isinstance(found, gymnasium.Env | VectorEnv) else None


def _visited(env: Any, policies: Sequence[Any], policy: Any, keys: Any, seed: int) -> np.ndarray:
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


def _simulated(world, policies, policy, beta, num_pairs, num_samples, seed) -> Truth:
    seen = collect(WorldVectorEnv(world, num_pairs), policies, 40 * num_pairs, switch_every=40, seed=seed)
    rows = np.random.default_rng(seed).choice(len(seen), num_pairs, replace=False)
    state, action = seen.state[rows], seen.action[rows]
    other = other_actions(action, world.action_space)

    def simulate(actions: np.ndarray, number: int) -> np.ndarray:
        x, a = (np.repeat(values, num_samples, axis=0) for values in (state, actions))
        futures = simulate_futures(world, policy, x, a, beta, seed=seed + 1 + number)
        return futures.reshape(num_pairs, num_samples, -1)

    found = simulate(action, 0), simulate(action, 1), simulate(other, 0)
    return Truth(state, action, found[0], found[1], other=other, other_future=found[2])


def _replayed(env, policies, policy, beta, num_pairs, num_samples, seed, keys) -> Truth:
    with contextlib.closing(Replay(env, policies, num_pairs, keys, seed)) as replay:
        state, action = (np.stack(part) for part in zip(*(visit[2:] for visit in replay.visits), strict=True))
        other = other_actions(action, replay.action_space)
        found = [
            replay.futures(policy, actions, beta, num_samples, number)
            for actions, number in ((action, 0), (action, 1), (other, 0))
        ]
    (future, left), (again, more), (other_future, _) = found
    return Truth(state, action, future, again, left + more, other, other_future)


def other_actions(actions: np.ndarray, space: Any = None) -> np.ndarray:
    """Another first action for each pair: the next one of a finite number, else the action of the pair before."""
    if actions.dtype.kind not in "iu":
        return np.roll(actions, 1, axis=0)
    count = int(space.n) if isinstance(space, Discrete) else int(actions.max()) + 1
    return (actions + 1) % max(count, 2)


def _followed(data: Transitions, index: int, beta: float, seed: int) -> Truth:
    """Futures in half of the episodes; the others tell where states lie."""
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
    """n pairs of a record with one X_T each; the steps after the pair's own are those that `policy` took.

    Pairs come from rows with a long record ahead, or from the longest if there are few such rows. A T beyond the
    record is left out and drawn again, which favours the near future a little: `left_out` says how often that
    happened. A terminated episode stays at its end, and no T lies beyond it. A record of which nothing can be
    followed tells no future but X₁, and is refused.
    """
    rng = np.random.default_rng(seed)
    length = followed_steps(data, policy)
    ends = np.asarray(data.terminated, bool)[np.arange(len(data)) + length - 1]
    if beta > 0 and (length == 1).all() and not ends.all():
        raise ValueError(
            f"no futures of policy {policy} at β = {beta:g} can be read from this record: {why_loose(data)}. Give the "
            "environment instead (--env ID), or transitions in their order whose behaviour tells who acted"
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
