"""How well base policies walk, alone and in turns: trials in new episodes, all ants at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from ggpi.data.spaces import state_reader
from ggpi.envs.ant import SPEC, SparseAntVector
from ggpi.lab.pretraining.walking import displacements
from ggpi.policies.bank import PolicyBank
from ggpi.rollout.acting import act
from ggpi.rollout.episodes import Vector, follow
from ggpi.types import Policy

NOWHERE = (1e6, 1e6)
"""A target that is never reached: the ants walk on for 150 steps."""


@dataclass(frozen=True)
class Trial:
    """States of the ants, and the policies that acted."""

    states: np.ndarray
    """[T + 1, N, 35]"""
    turns: np.ndarray
    """Index of the acting policy, [T, N]."""

    def moved(self) -> tuple[np.ndarray, np.ndarray]:
        """Units per step along the direction of the acting policy, and across it, [T, N] each."""
        return displacements(self.states[:-1], self.states[1:], self.turns)

    def upside_down(self) -> np.ndarray:
        """Which ants lie on their backs at the end, [N]."""
        return self.states[-1, :, SPEC.index("up_z")] < 0


def trial(policies: Sequence[Policy], turns: np.ndarray, seed: int) -> Trial:
    """Lets policy `turns[t, i]` (its index is its direction) move ant i at step t, for at most 150 steps."""
    steps, ants = turns.shape
    env, bank = SparseAntVector(ants, target=NOWHERE), PolicyBank(policies)
    copies = Vector(env, state_reader(env.single_observation_space), seed)
    keys, first = jax.random.split(jax.random.key(seed), steps), copies.state
    moved = follow(copies, lambda t, states: act(bank, turns[t].astype(np.int32), states, keys[t]), steps)
    return Trial(np.stack([first, *(step.next_state for step in moved)]), turns)


def one_each(num_policies: int, steps: int, ants: int) -> np.ndarray:
    """Turns of ants that each follow one policy, `ants` for every policy."""
    return np.tile(np.arange(num_policies).repeat(ants), (steps, 1))


def one_switch(num_policies: int, before: int, after: int, ants: int) -> np.ndarray:
    """Turns with one switch, `ants` for every ordered pair of different policies."""
    pairs = [(i, j) for i in range(num_policies) for j in range(num_policies) if i != j]
    first, second = np.array(pairs).repeat(ants, axis=0).T
    return np.concatenate([np.tile(first, (before, 1)), np.tile(second, (after, 1))])


def random_switches(num_policies: int, every: int, steps: int, ants: int, seed: int) -> np.ndarray:
    """Turns that last Uniform(1, every) steps each, as in training."""
    rng = np.random.default_rng(seed)
    turns = np.zeros((steps, ants), int)
    for i in range(ants):
        spans = rng.integers(1, every, size=steps, endpoint=True)
        turns[:, i] = rng.integers(num_policies, size=steps).repeat(spans)[:steps]
    return turns
