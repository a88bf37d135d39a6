"""Certified stops of branch and bound: how often it stops, after how many draws, and how often it is wrong.

A run *stops* when it has spent less than its budget because one plan is left, or because none can be better than the
chosen one by more than ε/(1−γ). It is *wrong* when one is: the probability of that is at most δ. The shares of wrong
runs have Clopper–Pearson intervals, which hold for any number of runs.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax
import numpy as np
from scipy import stats

from ggpi._jax.jit import jit
from ggpi.lab.cells import Metrics
from ggpi.lab.finite.planner_worlds import World, posed
from ggpi.planning import BranchAndBound, Plan
from ggpi.planning.chains import Problem
from ggpi.planning.planning import solve

SIDE_BY_SIDE = 100
ROUNDING = 1e-5
"""Values are computed in single precision."""


@dataclass(frozen=True)
class Setting:
    """What a certificate promises, and the budget that it may take."""

    depth: int
    delta: float
    epsilon: float
    samples: int
    """Samples of every plan that the budget is enough for, if spread evenly."""


def certificates(world: World, setting: Setting, runs: int, seed: int) -> Metrics:
    """Runs of branch and bound in one world: shares that stopped and that were wrong, and draws."""
    problem, values, _ = posed(world, setting.depth)
    budget = setting.samples * sum(problem.plans.sizes)
    planner = _planner(setting, budget)
    keys = jax.random.split(jax.random.key(seed), runs)
    found = _side_by_side(planner, problem, keys)
    gap, draws = np.asarray(found.gap), np.asarray(found.draws)
    missed = values.max() - values[np.asarray(found.best)]
    enough = setting.epsilon / (1 - world.gamma)
    stopped = gap <= enough
    wrong = int((missed > gap + ROUNDING).sum())
    return {
        "world": world.name,
        "plans": len(values),
        "delta": setting.delta,
        "epsilon": setting.epsilon,
        "runs": runs,
        "budget": budget,
        "stopped": float(stopped.mean()),
        "draws": float(draws.mean()),
        "draws_of_stopped": float(draws[stopped].mean()) if stopped.any() else None,
        "gap": float(gap.mean()),
        "best": float((missed <= ROUNDING).mean()),
        "good_enough": float((values.max() - values <= enough).mean()),
        "wrong": wrong / runs,
        "wrong_interval": clopper_pearson(wrong, runs),
    }


def clopper_pearson(hits: int, runs: int, level: float = 0.95) -> tuple[float, float]:
    """An interval for a share, from the exact tails of the binomial distribution."""
    tail = (1 - level) / 2
    low = float(stats.beta.ppf(tail, hits, runs - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - tail, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


@lru_cache
def _planner(setting: Setting, budget: int) -> BranchAndBound:
    """One object for each setting, so that worlds share compiled programs."""
    return BranchAndBound(
        budget, setting.delta, setting.epsilon, bounds=(0.0, 1.0), batch=16, value_samples=1
    )


@jit
def _side_by_side(planner: BranchAndBound, problem: Problem, keys: jax.Array) -> Plan:
    return jax.lax.map(lambda key: solve(planner, problem, key=key), keys, batch_size=SIDE_BY_SIDE)
