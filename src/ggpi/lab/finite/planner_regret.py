"""Planners in finite MDPs: how good is the chosen plan, against the draws that it took?

The value of every plan is known exactly, so that the regret of a choice is: V of the best plan minus V of the chosen
one, as a share of the range of V over the set. A choice within 5% of the range is ε-best. Four policies, Π_m of m
segments, one state, and a budget of draws (jumps, counted over distinct prefixes):

    uniform            every plan gets the same number of samples, drawn as a tree
    halving            `SequentialHalving`
    branch and bound   `BranchAndBound`, which may stop before its budget is spent
    KL-OLOP            optimistic planning, episode by episode; fewer runs, because it is plain Python

Worlds of 104 states: a random MDP and a chain with graded rewards, whose values are spread; four-rooms with a sparse
reward and with a graded one; and a lock, where one plan reaches the reward, in one of 25 attempts, and no other does.

*Certificates*: δ = 5% of the stops of branch and bound may be wrong; how many are, in 10⁴ runs, is counted on the
random world and on the lock at depth 2.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ggpi import envs, rewards
from ggpi._jax.jit import jit
from ggpi.ghm import GHMs, exact_ghms
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.finite.kl_olop import kl_olop
from ggpi.mdp.tabular import TabularMDP
from ggpi.planning import BranchAndBound, Plan, SequentialHalving, all_plans
from ggpi.planning.chains import Problem, problem_of
from ggpi.planning.exhaustive import best_first
from ggpi.planning.planning import solve
from ggpi.planning.search import AbstractPlanner, moments

STATES = 104
WORLDS = ("random", "chain", "rooms-sparse", "rooms-graded", "lock")
PLANNERS = ("uniform", "halving", "branch-and-bound", "kl-olop")
NEAR = 0.05
"""A plan within this share of the range of values is ε-best."""
HIT = 0.04
"""How often the lock's plan reaches the reward."""


@dataclass(frozen=True)
class Config:
    gamma: float = 0.9
    """Discount γ."""
    alpha: float = 1 / 9
    """Probability α of a switch after each step."""
    depths: tuple[int, ...] = (2, 5, 6, 8, 10)
    """Segments m of a plan: 4ᵐ plans."""
    samples: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    """Samples of every plan that the budgets are enough for, if spread evenly."""
    num_runs: int = 1_000
    """Decisions of each planner with each budget."""
    slow_runs: int = 50
    """Those of KL-OLOP."""
    most_draws: int = 4_000_000
    """Larger budgets are left out, and KL-OLOP stops at a tenth of it."""
    certified_runs: int = 10_000
    """Runs whose certificates are checked."""
    seed: int = 0
    """Seed of worlds and decisions."""


PRESETS = {
    "tiny": Config(depths=(2,), samples=(16, 64), num_runs=40, slow_runs=4, certified_runs=60),
    "cpu": Config(
        depths=(2, 5),
        samples=(4, 16, 64),
        num_runs=200,
        slow_runs=20,
        most_draws=200_000,
        certified_runs=2_000,
    ),
    "paper": Config(),
}


class Chains(NamedTuple):
    """What KL-OLOP needs of a problem: running sums of each level's distributions, ρ, and c_j."""

    cumulative: list[np.ndarray]
    reward: np.ndarray
    weights: np.ndarray


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Regrets of all planners in all worlds, and how often certificates are wrong."""
    tasks = {
        f"{world}/depth-{depth}/{planner}": partial(regrets, config, world, depth, planner)
        for depth, world, planner in product(config.depths, WORLDS, PLANNERS)
    }
    tasks |= {f"certificates/{world}": partial(certificates, config, world) for world in ("random", "lock")}
    found = cells(tasks)
    curves = [cell for name, cell in found.items() if not name.startswith("certificates")]
    return {
        "depths": config.depths,
        "num_runs": config.num_runs,
        "slow_runs": config.slow_runs,
        "near": NEAR,
        "curves": curves,
        "certificates": [cell for name, cell in found.items() if name.startswith("certificates")],
    }


def regrets(config: Config, world: str, depth: int, planner: str) -> Metrics:
    """Regret and share of ε-best choices of one planner for each budget."""
    problem, values, chains = _posed(config, world, depth)
    nodes, rows = sum(problem.plans.sizes), []
    for n in config.samples:
        budget = n * nodes
        chosen = None
        if budget <= config.most_draws:
            chosen = _choices(config, problem, chains, planner, budget, n)
        if chosen is not None:
            best, draws = chosen
            regret = (values.max() - values[best]) / np.ptp(values)
            rows.append(
                {
                    "budget": budget,
                    "draws": float(np.mean(draws)),
                    "regret": mean_interval(regret),
                    "near_best": mean_interval((regret <= NEAR).astype(float)),
                }
            )
    return {"world": world, "depth": depth, "planner": planner, "plans": len(values), "rows": rows}


def _choices(
    config: Config, problem: Problem, chains: Chains, planner: str, budget: int, n: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The chosen plans and the draws of all runs; None where a planner needs a larger budget."""
    key = jax.random.fold_in(jax.random.key(config.seed), n)
    if planner == "uniform":
        best = _uniform(problem, jnp.asarray(n), jax.random.split(key, config.num_runs))
        return np.asarray(best), np.full(config.num_runs, budget)
    if planner == "kl-olop":
        if budget > config.most_draws // 10:
            return None
        rngs = [np.random.default_rng([config.seed, n, i]) for i in range(config.slow_runs)]
        depth = problem.plans.depth
        sequences = np.array([kl_olop(*chains, 0, budget, rng) for rng in rngs])
        best = sequences @ 4 ** np.arange(depth)[::-1]
        return best, np.full(config.slow_runs, budget)
    chosen = _planner(planner, budget)
    try:
        chosen.check(problem)
    except ValueError:
        return None
    found = _decisions(chosen, problem, jax.random.split(key, config.num_runs))
    return np.asarray(found.best), np.asarray(found.draws)


@lru_cache
def _planner(name: str, budget: int) -> AbstractPlanner:
    """One object for each setting, so that worlds share compiled programs."""
    if name == "halving":
        return SequentialHalving(budget, value_samples=1)
    return BranchAndBound(budget, epsilon=NEAR / 2, batch=4, value_samples=1, bounds=(0.0, 1.0))


@jit
def _uniform(problem: Problem, n: jax.Array, keys: jax.Array) -> jax.Array:
    def one(key: jax.Array) -> jax.Array:
        plans = problem.plans
        rows = jnp.arange(len(plans), dtype=jnp.int32)
        found = moments(problem, rows, plans.depth, 1, windows=n, key=key)
        return best_first(found.total, jax.random.fold_in(key, 1))[0]

    return jax.lax.map(one, keys)


@jit
def _decisions(planner: AbstractPlanner, problem: Problem, keys: jax.Array) -> Plan:
    return jax.lax.map(lambda key: solve(planner, problem, key=key), keys)


def certificates(config: Config, world: str) -> Metrics:
    """How often the gap that branch and bound certifies is wrong, at depth 2 with a large budget."""
    problem, values, _ = _posed(config, world, 2)
    planner = BranchAndBound(40_000, epsilon=NEAR, value_samples=1, bounds=(0.0, 1.0))
    keys = jax.random.split(jax.random.key(config.seed + 1), config.certified_runs)
    found = _decisions(planner, problem, keys)
    gap = np.asarray(found.gap)
    wrong = values.max() - values[np.asarray(found.best)] > gap + 1e-5
    enough = planner.epsilon / (1 - config.gamma)
    return {
        "world": world,
        "delta": planner.delta,
        "runs": config.certified_runs,
        "wrong": float(wrong.mean()),
        "stopped": float((gap <= enough).mean()),
        "draws": float(np.asarray(found.draws).mean()),
        "budget": planner.budget,
    }


def _posed(config: Config, world: str, depth: int) -> tuple[Problem, np.ndarray, Chains]:
    """The problem, the exact value of every plan, and what KL-OLOP needs."""
    ghms, reward = _world(config, world, depth)
    plans = all_plans(len(ghms.policies), depth, config.alpha)
    problem = problem_of(plans, ghms.sampler(), rewards.arrival(reward), np.int32(0))
    onward = [_onward(ghms, alpha) for alpha in (config.alpha, None)]
    levels = [onward[0]] * (depth - 1) + [onward[1]]
    weights = np.asarray(problem.weights.end[0], float)
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


def _world(config: Config, name: str, depth: int) -> tuple[GHMs, np.ndarray]:
    """Models and an arrival reward in [0, 1]; plans start in state 0."""
    rng = np.random.default_rng(config.seed)
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
    return exact_ghms(TabularMDP(P), constant, config.gamma, config.alpha), reward


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
