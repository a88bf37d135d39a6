"""Executes a switching policy in a world, with its memory of the segment that it is in.

At t = 0 the first policy acts (or the given first action is taken). Before each later action the
segment ends with probability αₘ, and the next policy acts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ggpi.data import Transitions
from ggpi.mdp.rows import running_sums
from ggpi.mdp.tabular import TabularMDP
from ggpi.switching import GSP


def rollout(
    gsp: GSP,
    policies: Sequence[Any],
    world: Any,
    *,
    num_steps: int,
    num_episodes: int = 1,
    start: Any = None,
    first_action: Any = None,
    seed: int = 0,
) -> Transitions:
    """Episodes of a GSP in a `TabularMDP` or a Gymnasium environment; `behaviour` says which policy acted.

    `start` is a state, or one per episode; a Gymnasium environment chooses its own.

    Paper: Def 3.1, Fig 2
    """
    if num_steps < 1 or num_episodes < 1:
        raise ValueError(f"a rollout has at least one step and episode, got {num_steps} and {num_episodes}")
    if max(gsp.policies) >= len(policies):
        raise IndexError(f"{gsp} names policy {max(gsp.policies)}, but there are {len(policies)}")
    if isinstance(world, TabularMDP):
        if start is None:
            raise ValueError("a rollout in a TabularMDP needs start=, the state where it begins")
        return _in_mdp(gsp, policies, world, num_steps, num_episodes, start, first_action, seed)
    if start is not None:
        raise ValueError("a Gymnasium environment chooses its own start; leave start out")
    return _in_env(gsp, policies, world, num_steps, num_episodes, first_action, seed)


def _in_mdp(gsp, policies, mdp, num_steps, num_episodes, start, first_action, seed):
    """All episodes side by side; an episode that reached a terminal state is recorded no further."""
    rng = np.random.default_rng(seed)
    sums = running_sums(np.stack([np.asarray(policies[i]) for i in gsp.policies]))
    alphas = np.array([*gsp.alphas, 0.0])
    x = np.broadcast_to(np.asarray(start), (num_episodes,)).copy()
    segment = np.zeros(num_episodes, int)
    columns = []
    for t in range(num_steps):
        if t > 0:
            segment += rng.random(num_episodes) < alphas[segment]
        u = rng.random((num_episodes, 1))
        action = (sums[segment, x] <= u).sum(axis=1)
        if t == 0 and first_action is not None:
            action = np.broadcast_to(np.asarray(first_action), action.shape)
        following = mdp.step(x, action, rng)
        ended = mdp.terminal[following]
        behaviour = np.array(gsp.policies)[segment]
        last = np.full(num_episodes, t == num_steps - 1) & ~ended
        columns.append(
            (x, action, following, ended, last, behaviour, np.arange(num_episodes), np.full_like(x, t))
        )
        x = following
    rows = [np.stack(column, axis=1).ravel() for column in zip(*columns, strict=True)]
    alive = ~mdp.terminal[rows[0]]
    return Transitions(*(row[alive] for row in rows))


def _in_env(gsp, policies, env, num_steps, num_episodes, first_action, seed):
    rng = np.random.default_rng(seed)
    key = jax.random.key(seed)
    alphas = (*gsp.alphas, 0.0)
    rows = []
    for episode in range(num_episodes):
        x, _ = env.reset(seed=seed if episode == 0 else None)
        segment = 0
        for t in range(num_steps):
            if t > 0 and rng.random() < alphas[segment]:
                segment += 1
            if t == 0 and first_action is not None:
                action = first_action
            else:
                key, now = jax.random.split(key)
                action = np.asarray(policies[gsp.policies[segment]].sample(x, key=now))
            following, _, terminated, truncated, _ = env.step(action if np.ndim(action) else int(action))
            truncated = bool(truncated or t == num_steps - 1) and not terminated
            rows.append(
                (x, action, following, bool(terminated), truncated, gsp.policies[segment], episode, t)
            )
            x = following
            if terminated or truncated:
                break
    return Transitions(*(np.array(column) for column in zip(*rows, strict=True)))
