"""Worlds in which the value of every plan is known exactly: four policies, 104 states, and all plans of m segments.

A random MDP and a chain with graded rewards, whose values are spread; four-rooms with a sparse reward and with a graded
one; and a lock, where one plan reaches the reward, in one of 25 attempts, and no other does. Rewards are for arrivals
and lie in [0, 1]; plans start in state 0.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ggpi import envs, rewards
from ggpi.ghm import GHMs, exact_ghms
from ggpi.mdp.tabular import TabularMDP
from ggpi.planning import all_plans
from ggpi.planning.chains import Problem, problem_of

STATES = 104
WORLDS = ("random", "chain", "rooms-sparse", "rooms-graded", "lock")
HIT = 0.04
"""How often the lock's plan reaches the reward."""


class World(NamedTuple):
    """A world, its horizons, and the seed that it is drawn with if it is random."""

    name: str
    gamma: float
    alpha: float
    seed: int


class Chains(NamedTuple):
    """What KL-OLOP needs of a problem: running sums of each level's distributions, ρ, and c_j."""

    cumulative: list[np.ndarray]
    reward: np.ndarray
    weights: np.ndarray


def posed(world: World, depth: int) -> tuple[Problem, np.ndarray, Chains]:
    """The problem, the exact value of every plan, and what KL-OLOP needs."""
    ghms, reward = models_of(world, depth)
    plans = all_plans(len(ghms.policies), depth, world.alpha)
    problem = problem_of(plans, ghms.sampler(), rewards.arrival(reward), np.int32(0))
    onward = [_onward(ghms, alpha) for alpha in (world.alpha, None)]
    levels = [onward[0]] * (depth - 1) + [onward[1]]
    weights = np.asarray(problem.weights(jnp.zeros(1, int)).end[0], float)
    chains = Chains([np.cumsum(level, axis=2) for level in levels], reward, weights)
    return problem, exact_values(levels, reward, weights), chains


def exact_values(levels: list[np.ndarray], reward: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ_j c_j E ρ(X^(j)) of every plan from state 0, in lexicographic order."""
    reached, value = np.eye(len(reward), dtype=np.float32)[:1], np.zeros(1)
    for level, weight in zip(levels, weights, strict=True):
        ended = np.einsum("kxy,y->xk", level, reward)
        value = (value[:, None] + weight * (reached @ ended)).ravel()
        if level is not levels[-1]:
            reached = np.einsum("nx,kxy->nky", reached, level.astype(np.float32)).reshape(-1, len(reward))
    return value


def _onward(ghms: GHMs, alpha: float | None) -> np.ndarray:
    """The distribution of a segment's end from every state, under each policy: [K, S, S]."""
    mus = [ghms.segment(k, alpha).dense() for k in range(len(ghms.policies))]
    return np.stack(
        [np.einsum("xa,xay->xy", np.asarray(pi), mu) for pi, mu in zip(ghms.policies, mus, strict=True)]
    )


def models_of(world: World, depth: int) -> tuple[GHMs, np.ndarray]:
    """Models and an arrival reward in [0, 1]; plans start in state 0."""
    name, rng = world.name, np.random.default_rng(world.seed)
    constant = [np.eye(4)[np.full(STATES, a)] for a in range(4)]
    if name == "random":
        P, reward = rng.dirichlet(np.full(STATES, 0.02), (STATES, 4)), rng.random(STATES)
    elif name == "chain":
        steps = np.clip(np.arange(STATES)[:, None] + [-1, 1, 3, 0], 0, STATES - 1)
        P, reward = (
            0.8 * np.eye(STATES)[steps] + 0.2 * np.eye(STATES)[steps[:, [3, 0, 1, 2]]],
            np.arange(STATES) / (STATES - 1),
        )
    elif name == "lock":
        P, reward = _lock(depth), np.eye(STATES)[depth]
    else:
        mdp = envs.four_rooms(1 / 3)
        order = np.argsort(
            [label != (11, 1) for label in mdp.labels], kind="stable"
        )  # starts at the lower left
        P = mdp.P[order][:, :, order]
        cells = np.array([mdp.labels[x] for x in order])
        apart = np.abs(cells - [1, 11]).sum(axis=1)
        reward = (apart == 0) * 1.0 if name == "rooms-sparse" else 1 - apart / apart.max()
    return exact_ghms(TabularMDP(P), constant, world.gamma, world.alpha), reward


def _lock(depth: int) -> np.ndarray:
    """Stage i is left for i + 1 by one action only, which then waits there; any other one ends in the last state.

    An attempt fails with a probability that leaves `HIT` for all of them together.
    """
    P = np.zeros((STATES, 4, STATES))
    P[..., -1] = 1
    success = HIT ** (1 / depth)
    for stage in range(depth + 1):
        if stage < depth:
            P[stage, stage % 4, -1], P[stage, stage % 4, stage + 1] = 1 - success, success
        if stage:
            P[stage, (stage - 1) % 4] = np.eye(STATES)[stage]
    return P
