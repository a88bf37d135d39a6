"""Agents of the transfer experiments, as functions of states and targets: planners, an oracle, and baselines.

The *oracle* is the planner with true simulator samples in the models' place: what perfect models would score. It
draws the same tree of segments, so that what it lacks is what depth and budget lack, and the rest is the models'.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ggpi._jax.jit import jit
from ggpi.agent.agent import GGPIAgent
from ggpi.evaluation.rewards import payment
from ggpi.evaluation.tree import Block, build_tree, draw, worth
from ggpi.ghm.base import GHMs
from ggpi.policies.bank import PolicyBank
from ggpi.rewards import Reward, targets
from ggpi.rollout.futures import simulate_futures
from ggpi.switching import GSPs, compositions

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
        value = values(states, goals, draw_key)
        lots = np.asarray(jax.random.uniform(tie_key, value.shape))
        best = np.where(value == value.max(axis=0), lots, -1.0).argmax(axis=0)
        return np.asarray(sample_bank(bank, heads[best], states, act_key))

    return decide


def true_values(
    world: Any, policies: Sequence[Any], gamma: float, gsps: GSPs, num_samples: int, radius: float
) -> Decide:
    """(states [b, D], targets [b, 2], key) ↦ values [N, b] of the GSPs, estimated by simulation."""
    alphas = tuple(dict.fromkeys(alpha for gsp in gsps for alpha in gsp.alphas))
    ghms = GHMs(tuple(policies), gamma, alphas, {})
    tree, _ = build_tree([gsp.segments(gamma) for gsp in gsps], ghms, "arrival")
    simulated = Simulated(policies, world)

    def values(states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        drawn = draw(tree, simulated, states, None, num_samples, form="arrival", key=key)
        reward: Reward = targets(goals, radius)
        pay = payment(reward.values, "arrival", None, gamma)
        return np.asarray(worth(tree, pay, states, drawn, form="arrival").mean(axis=-1))

    return values


class Simulated:
    """The simulator in the models' place: `move` draws true futures."""

    def __init__(self, policies: Sequence[Any], world: Any):
        self.policies, self.world = policies, world
        self.banks = {(k,): PolicyBank([policy]) for k, policy in enumerate(policies)}

    def act(self, block: Block, x: Any, *, key: Any) -> Any:
        parts = [
            sample_policy(self.banks[(k,)], np.asarray(x[row]), jax.random.fold_in(key, row))
            for row, k in enumerate(block.policies)
        ]
        return np.stack([np.asarray(part) for part in parts])

    def move(self, block: Block, x: Any, action: Any, *, key: Any) -> Any:
        seeds = np.asarray(jax.random.bits(key, (len(block.policies),), np.uint32))
        ends = []
        for row, k in enumerate(block.policies):
            given = np.asarray(x[row]), np.asarray(action[row])
            ends.append(
                simulate_futures(self.world, self.policies[k], *given, block.horizon, seed=int(seeds[row]))
            )
        return np.stack(ends)


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
    """An agent that counts its decisions and the time that they take."""

    def __init__(self, decide: Decide):
        self.decide, self.seconds, self.decisions = decide, 0.0, 0

    def __call__(self, states: np.ndarray, goals: np.ndarray, key: Any) -> np.ndarray:
        begun = time.perf_counter()
        actions = self.decide(states, goals, key)
        self.seconds += time.perf_counter() - begun
        self.decisions += len(states)
        return actions

    @property
    def seconds_per_decision(self) -> float:
        return self.seconds / max(self.decisions, 1)
