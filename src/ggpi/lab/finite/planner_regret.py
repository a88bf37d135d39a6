"""Planners in finite MDPs: how good is the chosen plan, against the draws that it took?

The value of every plan is known exactly, so that the regret of a choice is: V of the best plan minus V of the chosen
one, as a share of the range of V over the set. A choice within 5% of the range is ε-best. Four policies, Π_m of m
segments, one state, and a budget of draws (jumps, counted over distinct prefixes):

    uniform            every plan gets the same number of samples, drawn as a tree
    halving            `SequentialHalving`
    branch and bound   `BranchAndBound`, which may stop before its budget is spent
    KL-OLOP            optimistic planning, episode by episode; fewer runs, because it is plain Python, and budgets of
                       its own, because it need not sample every prefix

Planners are compared at the regrets that uniform has with `compared` samples of every plan, fixed beforehand: how many
draws do the others take for them? *Certificates* of branch and bound are checked on small sets, see `certificates`.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.jit import jit
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, Tasks, compute
from ggpi.lab.finite.certificates import Setting, certificates
from ggpi.lab.finite.kl_olop import kl_olop
from ggpi.lab.finite.planner_worlds import WORLDS, Chains, World, posed
from ggpi.planning import BranchAndBound, Plan, SequentialHalving
from ggpi.planning.chains import Problem
from ggpi.planning.exhaustive import best_first
from ggpi.planning.planning import solve
from ggpi.planning.search import AbstractPlanner, moments

PLANNERS = ("uniform", "halving", "branch-and-bound", "kl-olop")
NEAR = 0.05
"""A plan within this share of the range of values is ε-best."""
LEAST_RUNS = 20


@dataclass(frozen=True)
class Config:
    gamma: float = 0.9
    """Discount γ."""
    alpha: float = 1 / 9
    """Probability α of a switch after each step."""
    depths: tuple[int, ...] = (2, 5, 6, 8, 10)
    """Segments m of a plan: 4ᵐ plans."""
    samples: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    """Samples of every plan that the budgets are enough for, if spread evenly."""
    compared: tuple[int, ...] = (16, 64)
    """Planners are compared at the regrets of uniform with so many samples of every plan."""
    num_runs: int = 1_000
    """Decisions of each planner with each budget."""
    most_draws: int = 25_000_000
    """Larger budgets are left out."""
    slow_runs: int = 50
    """Decisions of KL-OLOP."""
    slow_draws: tuple[int, ...] = (1_000, 8_000, 64_000, 256_000)
    """Its budgets, whatever the size of the set."""
    draws_in_all: int = 1_000_000_000
    """Draws of all runs with one budget: with larger budgets there are fewer runs, but at least 20."""
    certified_depths: tuple[int, ...] = (2, 3)
    """Segments of the plans whose certificates are checked."""
    certified_samples: int = 2_000
    """Their budget: samples of every plan, if spread evenly."""
    certified_runs: int = 10_000
    """Runs whose certificates are checked."""
    deltas: tuple[float, ...] = (0.05, 0.2)
    """Probabilities δ of a wrong certificate."""
    epsilons: tuple[float, ...] = (0.05, 0.01)
    """Gaps ε that are small enough, as shares of 1/(1−γ)."""
    seed: int = 0
    """Seed of worlds and decisions."""


PRESETS = {
    "tiny": Config(
        depths=(2,),
        samples=(16, 64),
        num_runs=40,
        slow_runs=4,
        slow_draws=(320, 1_280),
        certified_depths=(2,),
        certified_samples=1_000,
        certified_runs=60,
        deltas=(0.2,),
    ),
    "cpu": Config(
        depths=(2, 5),
        samples=(4, 16, 64),
        num_runs=200,
        most_draws=200_000,
        slow_runs=20,
        slow_draws=(1_000, 8_000),
        certified_depths=(2,),
        certified_runs=2_000,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Regrets of all planners in all worlds, and how often certificates are wrong."""
    certified = cells(_certified(config))
    curves = cells(
        {
            f"{world}/depth-{depth}/{planner}": partial(regrets, config, world, depth, planner)
            for depth, world, planner in product(config.depths, WORLDS, PLANNERS)
        }
    )
    return {
        "depths": config.depths,
        "num_runs": config.num_runs,
        "slow_runs": config.slow_runs,
        "near": NEAR,
        "compared": config.compared,
        "curves": list(curves.values()),
        "certificates": list(certified.values()),
    }


def _certified(config: Config) -> Tasks:
    settings = product(config.certified_depths, config.deltas, config.epsilons)
    return {
        f"certificates/{name}/depth-{depth}/delta-{delta}/epsilon-{epsilon}": partial(
            certificates,
            _world(config, name),
            Setting(depth, delta, epsilon, config.certified_samples),
            config.certified_runs,
            config.seed + 1,
        )
        for (depth, delta, epsilon), name in product(settings, WORLDS)
    }


def _world(config: Config, name: str) -> World:
    return World(name, config.gamma, config.alpha, config.seed)


def regrets(config: Config, world: str, depth: int, planner: str) -> Metrics:
    """Regret and share of ε-best choices of one planner for each budget."""
    problem, values, chains = posed(_world(config, world), depth)
    nodes, rows = sum(problem.plans.sizes), []
    for budget in config.slow_draws if planner == "kl-olop" else [n * nodes for n in config.samples]:
        chosen = None
        if budget <= config.most_draws:
            chosen = _choices(config, problem, chains, planner, budget)
        if chosen is not None:
            best, draws = chosen
            regret = (values.max() - values[best]) / np.ptp(values)
            rows.append(
                {
                    "samples": budget / nodes,
                    "budget": budget,
                    "runs": len(best),
                    "draws": float(np.mean(draws)),
                    "regret": mean_interval(regret),
                    "near_best": mean_interval((regret <= NEAR).astype(float)),
                }
            )
    return {"world": world, "depth": depth, "planner": planner, "plans": len(values), "rows": rows}


def _choices(
    config: Config, problem: Problem, chains: Chains, planner: str, budget: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The chosen plans and the draws of all runs; None where a planner needs a larger budget."""
    if planner == "kl-olop":
        rngs = [np.random.default_rng([config.seed, budget, i]) for i in range(config.slow_runs)]
        sequences = np.array([kl_olop(*chains, 0, budget, rng) for rng in rngs])
        best = sequences @ 4 ** np.arange(problem.plans.depth)[::-1]
        return best, np.full(config.slow_runs, budget)
    n = budget // sum(problem.plans.sizes)
    runs = min(config.num_runs, max(config.draws_in_all // budget, LEAST_RUNS))
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), n), runs)
    if planner == "uniform":
        return np.asarray(_uniform(problem, jnp.asarray(n), keys)), np.full(runs, budget)
    chosen = _planner(planner, budget)
    try:
        chosen.check(problem)
    except ValueError:
        return None
    found = _decisions(chosen, problem, keys)
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
