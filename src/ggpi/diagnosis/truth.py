"""True futures to hold a model against: simulated when the world allows it, else read from trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from ggpi.collection import collect
from ggpi.data import Transitions
from ggpi.envs import Pendulum, World, WorldVectorEnv
from ggpi.futures import simulate_futures
from ggpi.ghm.targets import followed_steps, why_loose

TAIL = 0.01
"""Rows are preferred from which at most this mass of T lies beyond the record."""
RECORDED = 1024
"""Pairs that are read from trajectories, each with one future."""
FEWEST = 256
"""Rows that these pairs are drawn from, at least: those with the longest records if too few are long."""


@dataclass(frozen=True, eq=False)
class Truth:
    """P pairs (x, a) with N true futures each, and as many again to see how far truth is from truth.

    Paper: Prop 2.3
    """

    state: np.ndarray
    action: np.ndarray
    future: np.ndarray
    again: np.ndarray
    left_out: int = 0
    """Draws of T that lay beyond the record."""
    simulate: Callable[[np.ndarray, np.ndarray, int], np.ndarray] | None = None
    """Futures of other pairs, where the world can be simulated: (states, actions, seed) → futures."""


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

    A world is simulated from `num_pairs` pairs that the policies visit in turns, `num_samples` times each.
    Of transitions, those of the policy are followed. An environment is first run with the policy alone; of
    observations that are dictionaries, `keys` says which parts make the state.

    Paper: Prop 2.3, Eq 7
    """
    world = _world_of(source)
    if world is not None:
        return _simulated(world, policies, index, beta, num_pairs, num_samples, seed)
    if not isinstance(source, Transitions):
        source, index = collect(source, [policies[index]], 20 * RECORDED, keys=keys, seed=seed), 0
    source.check()
    if source.state.ndim != 2:
        raise ValueError(
            f"clouds are compared of state vectors [N, D], got states of shape {source.state.shape}"
        )
    return recorded_futures(source, index, beta, RECORDED, seed=seed)


def _world_of(source: Any) -> World | None:
    """The world itself, or the one inside an environment that we made of it."""
    if isinstance(source, Transitions):
        return None
    if source == "Pendulum-v1":
        return Pendulum()
    if isinstance(source, str):
        source = gymnasium.make(source)
    inner = source.unwrapped if isinstance(source, gymnasium.Env | VectorEnv) else source
    found = getattr(inner, "world", inner)
    return found if isinstance(found, World) and not isinstance(found, gymnasium.Env | VectorEnv) else None


def _simulated(world, policies, index, beta, num_pairs, num_samples, seed) -> Truth:
    visited = collect(WorldVectorEnv(world, num_pairs), policies, 40 * num_pairs, switch_every=40, seed=seed)
    rows = np.random.default_rng(seed).choice(len(visited), num_pairs, replace=False)
    state, action = visited.state[rows], visited.action[rows]

    def simulate(states: np.ndarray, actions: np.ndarray, number: int) -> np.ndarray:
        x, a = (np.repeat(values, num_samples, axis=0) for values in (states, actions))
        futures = simulate_futures(world, policies[index], x, a, beta, seed=seed + 1 + number)
        return futures.reshape(len(states), num_samples, -1)

    return Truth(state, action, simulate(state, action, 0), simulate(state, action, 1), simulate=simulate)


def recorded_futures(data: Transitions, policy: int, beta: float, n: int, *, seed: int = 0) -> Truth:
    """n pairs of a record with one X_T each; the steps after the pair's own are those that `policy` took.

    Pairs come from rows with a long record ahead, or from the longest if there are few such rows. A T beyond the
    record is left out and drawn again, which favours the near future a little: `left_out` says how often that
    happened. A terminated episode stays at its end, and no T lies beyond it. A record of which nothing can be
    followed tells no future but X₁, and is refused.

    Paper: Eq 7
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
    return Truth(data.state[rows], data.action[rows], drawn[0], drawn[1], left_out)
