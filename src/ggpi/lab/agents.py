"""Agents of the transfer experiments, as functions of states and targets: planners, an oracle, and baselines.

The *oracle* is the same planner with the simulator as its Sampler: the score of perfect models. What it lacks is due
to depth and budget; what planners with learned models lack beyond that is due to the models.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ggpi._jax.jit import jit
from ggpi.agent.agent import GGPIAgent
from ggpi.agent.choosing import Plan
from ggpi.evaluation import evaluate_states_sampled
from ggpi.ghm.base import GHMs
from ggpi.planning import AbstractPlanner, JumpyGraph
from ggpi.policies.bank import PolicyBank
from ggpi.rewards import target, targets
from ggpi.rollout.futures import simulate_futures
from ggpi.switching import GSPs, compositions
from ggpi.types import Key, Numbers

Decide = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]
"""(states [b, D], targets [b, 2], key) ↦ actions [b, A]."""


def budget(samples: int, depth: int) -> int:
    """Samples for each GSP, so that all depths draw as many chains as depth 2 with `samples`: 4n, n, n/4."""
    return max(1, round(samples * 4.0 ** (2 - depth)))


def bucket(count: int) -> int:
    """Few sizes of batches, so that few programs are compiled."""
    return next(size for size in (4, 8, 16, 32, 64, 128, 256, 512, count) if size >= count)


def planner(ghms: GHMs, depth: int, num_samples: int, radius: float, **options: Any) -> Decide:
    """GGPI at a depth; 1 is GPI."""
    agent = GGPIAgent(
        ghms, targets(np.zeros((1, 2)), radius), depth=depth, num_samples=num_samples, **options
    )

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        return agent.with_reward(targets(goals, radius)).act(states, key=key)

    return decide


def closed_loop(ghms: GHMs, graph: JumpyGraph, num_samples: int, radius: float) -> Decide:
    """GGPI at infinite depth: an agent for each target, whose values are solved when it is first seen."""
    first = GGPIAgent(ghms, target((0.0, 0.0), radius), depth="inf", graph=graph, num_samples=num_samples)
    solved: dict[bytes, GGPIAgent] = {}

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        keys, actions = jax.random.split(key, len(states)), dict[bytes, np.ndarray]()
        for state, goal, own in zip(states.astype(np.float32), goals, keys, strict=True):
            name = goal.tobytes()
            if name not in solved:
                solved[name] = first.with_reward(target(goal, radius))
            if name not in actions:  # rows are repeated to fill a batch
                actions[name] = solved[name].act(state, key=own)
        return np.stack([actions[goal.tobytes()] for goal in goals])

    return decide


class WarmPlanner:
    """GGPI with an adaptive planner that starts from the last decision of each episode.

    Episodes are told apart by their targets: no two are the same. Where one of them is new, all begin without memory.
    """

    def __init__(self, ghms: GHMs, depth: int | None, radius: float, search: AbstractPlanner):
        self.agent = GGPIAgent(ghms, targets(np.zeros((1, 2)), radius), depth=depth, planner=search)
        self.radius, self.places = radius, dict[bytes, int]()
        self.last: Plan | None = None

    def __call__(self, states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        ids, warm = [goal.tobytes() for goal in goals], None
        if self.last is not None and self.places.keys() >= set(ids):
            rows = np.array([self.places[name] for name in ids])
            warm = replace(self.last, search=jax.tree.map(lambda part: part[rows], self.last.search))
        agent = self.agent.with_reward(targets(goals, self.radius))
        self.last = agent.plan(states, warm=warm, key=key)
        self.places = {name: i for i, name in enumerate(ids)}
        return self.last.action


def oracle(
    world: Any,
    policies: Sequence[Any],
    gamma: float,
    alpha: float,
    *,
    depth: int,
    num_samples: int,
    radius: float,
) -> Decide:
    """The same planner with samples of `world.step` in the place of models."""
    gsps, bank = compositions(len(policies), depth, alpha), PolicyBank(policies)
    values = true_values(world, policies, gamma, gsps, num_samples, radius)
    heads = np.array([gsp.head for gsp in gsps])

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        draw_key, tie_key, act_key = jax.random.split(key, 3)
        count, same = _without_repeats(states, goals)
        value = values(states[:count], goals[:count], draw_key)
        lots = np.asarray(jax.random.uniform(tie_key, value.shape))
        best = np.where(value == value.max(axis=0), lots, -1.0).argmax(axis=0)
        actions = np.asarray(sample_bank(bank, heads[best], states[:count], act_key))
        return actions[same]

    return decide


def _without_repeats(states: np.ndarray, goals: np.ndarray) -> tuple[int, np.ndarray]:
    """How many of the first rows, a multiple of 16, have all pairs, and for each row the first that is equal.

    Batches are filled with rows that repeat, and simulation is slow.
    """
    pairs = np.concatenate([states, goals], axis=1)
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return min(16 * math.ceil((first.max() + 1) / 16), len(goals)), first[inverse.reshape(-1)]


def true_values(
    world: Any, policies: Sequence[Any], gamma: float, gsps: GSPs, num_samples: int, radius: float
) -> Decide:
    """(states [b, D], targets [b, 2], key) ↦ values [N, b] of the GSPs, estimated by simulation."""
    simulator = SimulatorSampler(world, tuple(policies), gamma)

    def values(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        reward = targets(goals, radius)
        found = evaluate_states_sampled(gsps, simulator, reward, states, num_samples=num_samples, key=key)
        return np.asarray(found.mean)

    return values


@dataclass(frozen=True, eq=False)
class SimulatorSampler:
    """True actions and futures of a world that steps on the host."""

    world: Any
    policies: tuple[Any, ...]
    gamma: float
    terminal: None = None

    def act(self, policies: tuple[int, ...], state: Numbers, *, key: Key) -> np.ndarray:
        parts = [
            sample_policy(self._banks[k], np.asarray(state[row]), jax.random.fold_in(key, row))
            for row, k in enumerate(policies)
        ]
        return np.stack([np.asarray(part) for part in parts])

    def jump(
        self, policies: tuple[int, ...], horizon: float, state: Numbers, action: Numbers, *, key: Key
    ) -> np.ndarray:
        seeds = np.asarray(jax.random.bits(key, (len(policies),), np.uint32))
        ends = [
            simulate_futures(self.world, self.policies[k], x, a, horizon, seed=int(seed))
            for k, x, a, seed in zip(policies, np.asarray(state), np.asarray(action), seeds, strict=True)
        ]
        return np.stack(ends)

    def onward(self, policies: tuple[int, ...], horizon: float, state: Numbers, *, key: Key) -> np.ndarray:
        action_key, jump_key = jax.random.split(key)
        return self.jump(policies, horizon, state, self.act(policies, state, key=action_key), key=jump_key)

    @cached_property
    def _banks(self) -> tuple[PolicyBank, ...]:
        return tuple(PolicyBank([policy]) for policy in self.policies)


@jit
def sample_policy(bank: PolicyBank, states: Any, key: Any) -> Any:
    """Actions of a bank's only policy."""
    return bank.sample_each(states[None], key=key)[0]


@jit
def sample_bank(bank: PolicyBank, index: Any, states: Any, key: Any) -> Any:
    """Actions of the policies that `index` names, one for each state."""
    return bank.sample(index, states, key=key)


@jit
def sample_model(model: Any, states: Any, actions: Any, key: Any) -> Any:
    """One future of each pair."""
    keys = jax.random.split(key, len(states))
    return jax.vmap(lambda x, a, k: model.sample(x, a, key=k))(states, actions, keys)


def acting(choose: Decide, policies: Sequence[Any]) -> Decide:
    """Actions of the policies that `choose` names, one for each state."""
    bank = PolicyBank(policies)
    return lambda states, goals, key: np.asarray(sample_bank(bank, choose(states, goals, key), states, key))


def alone(policies: Sequence[Any], policy: int) -> Decide:
    """One base policy all the time."""
    bank = PolicyBank(policies)
    return lambda states, goals, key: np.asarray(sample_bank(bank, np.full(len(states), policy), states, key))


def random_switching(policies: Sequence[Any], every: int) -> Decide:
    """A policy drawn at random for each of Uniform(1, every) steps, whatever the target.

    Episodes are told apart by their targets: no two are the same.
    """
    bank = PolicyBank(policies)
    turns: dict[bytes, tuple[int, int]] = {}

    def decide(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        ids = [goal.tobytes() for goal in goals]
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        for name in dict.fromkeys(ids):
            policy, left = turns.get(name, (0, 0))
            turns[name] = (policy, left - 1) if left > 0 else _turn(rng, len(bank), every)
        return np.asarray(sample_bank(bank, np.array([turns[name][0] for name in ids]), states, key))

    return decide


def _turn(rng: np.random.Generator, num_policies: int, every: int) -> tuple[int, int]:
    """A policy and how many more steps it acts."""
    return int(rng.integers(num_policies)), int(rng.integers(every))


class Timed:
    """An agent that notes how long its decisions take."""

    def __init__(self, decide: Decide):
        self.decide, self.times = decide, list[float]()

    def __call__(self, states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        begun = time.perf_counter()
        actions = self.decide(states, goals, key)
        self.times.append((time.perf_counter() - begun) / len(states))
        return actions

    @property
    def seconds_per_decision(self) -> float:
        """The median, so that the first ones, which compile, do not count."""
        return float(np.median(self.times)) if self.times else 0.0
