"""Adaptive planners in an agent: compiled rounds with a look at the clock in between, for one state or a batch."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from ggpi._jax.jit import fast_jit
from ggpi.agent.checks import checked_set
from ggpi.evaluation.queries import Estimate
from ggpi.evaluation.rewards import OnHost
from ggpi.ghm.base import GHMs
from ggpi.ghm.samplers import ModelSampler, TableSampler
from ggpi.planning import AbstractPlanner, Exhaustive, SequentialHalving
from ggpi.planning import Plan as Found
from ggpi.planning.chains import Problem, problem_of
from ggpi.planning.planning import solve
from ggpi.planning.plans import plans_of
from ggpi.planning.posing import posed_shooting
from ggpi.planning.search import Round, Search
from ggpi.planning.sequences import choices_of
from ggpi.planning.shooting import AbstractShooter
from ggpi.rewards import Each, Reward
from ggpi.switching import GSP, GSPs, compositions
from ggpi.types import Key

FEW = 256
"""Sets of up to so many plans are searched exhaustively unless a planner is given."""
SAVED = 3
"""Larger ones get this share of the draws that exhaustive search takes."""


class Progress(NamedTuple):
    """What a trace is called with after each round: one entry for each state."""

    round: int
    draws: np.ndarray
    alive: Bool[np.ndarray, "B N"]
    """Plans that are still candidates, in the order of the search's rows."""
    value: np.ndarray
    """The mean of the leader."""
    gap: np.ndarray


Trace = Callable[[Progress], object]


def default_planner(gsps: GSPs, num_samples: int) -> AbstractPlanner:
    """Exhaustive search of small sets and small budgets; halving with a third of the draws of large ones."""
    if len(gsps) <= FEW:
        return Exhaustive(gsps, num_samples)
    planner = SequentialHalving(num_samples * sum(plans_of(gsps).sizes) // SAVED, gsps)
    return planner if planner.least(plans_of(gsps)) <= planner.budget else Exhaustive(gsps, num_samples)


def checked_planner(
    planner: AbstractPlanner | None, gsps: GSPs, num_samples: int, first_actions: object
) -> AbstractPlanner | None:
    """The planner with the agent's set; None where the agent evaluates the whole set itself."""
    if planner is None:
        chosen = default_planner(gsps, num_samples) if first_actions == "head" else None
        return None if isinstance(chosen, Exhaustive) else chosen
    if not isinstance(planner, AbstractPlanner):
        raise TypeError(f"planner is one of ggpi.planning, such as SequentialHalving(2000); got {planner!r}")
    if first_actions != "head":
        own = " (give it to the planner)" if isinstance(planner, AbstractShooter) else ""
        raise ValueError(
            f"a planner chooses among heads: first_actions is 'head', got {first_actions!r}{own}"
        )
    if isinstance(planner, AbstractShooter):
        return planner
    return dataclasses.replace(planner, gsps=gsps)  # pyright: ignore[reportArgumentType]


def searched_set(
    planner: AbstractPlanner | None, ghms: GHMs, depth: int | None, gsps: GSPs | Iterable[GSP] | None
) -> GSPs:
    """The set of an agent; of one that draws its plans, the policies alone."""
    if not isinstance(planner, AbstractShooter):
        return checked_set(ghms, depth, gsps)
    if depth is not None or gsps is not None:
        raise ValueError(
            f"{type(planner).__name__} draws its plans: give the depth to the planner, and no set to the agent"
        )
    return compositions(len(ghms.policies), 1, 1.0)


def posed_in(
    planner: AbstractPlanner | None,
    gsps: GSPs,
    ghms: GHMs,
    sampler: ModelSampler | TableSampler,
    reward: Reward,
    state: Array,
) -> Problem:
    """What an agent's planner solves, in some state."""
    if isinstance(planner, AbstractShooter):
        return posed_shooting(planner, ghms, reward, state, sampler.terminal)
    return problem_of(plans_of(gsps), sampler, reward, state)


def check_searchable(problem: Problem) -> None:
    """Raises for rewards that a compiled search cannot use."""
    if isinstance(problem.reward.values, OnHost):
        raise ValueError(
            "a planner needs a reward that JAX can trace: write it with jax.numpy, or leave planner= out"
        )


def search(
    planner: AbstractPlanner,
    problem: Problem,
    states: Array,
    warm: Found | None,
    *,
    seconds: float | None = None,
    trace: Trace | None = None,
    key: Key,
) -> Found:
    """The planner's choice in each of the states [B, …], by the rounds that fit into a time."""
    check_searchable(problem)
    starts = _Starts.of(problem, states)
    if seconds is None and trace is None:
        return _at_once(planner, problem, starts, warm, jax.random.split(key, len(states)))
    begun, is_warm = time.monotonic(), warm is not None
    search_key, report_key = jax.random.split(key)
    found = _begin(planner, problem, starts, warm)
    count, alike = planner.num_rounds(problem.plans, is_warm), planner.num_alike(problem.plans)
    for i in range(count):
        if seconds is not None and i and time.monotonic() - begun > seconds:
            break
        turn = i if i < count - alike else jnp.asarray(i)
        keys = jax.random.split(jax.random.fold_in(search_key, i), len(states))
        found = _advance(planner, problem, starts, found, turn, is_warm, keys)
        jax.block_until_ready(found.best)
        if trace is not None:
            trace(_progress(i, found))
    return _finish(planner, problem, starts, found, jax.random.split(report_key, len(states)))


def estimates(problem: Problem, gsps: GSPs, found: Found) -> tuple[GSPs, Estimate, np.ndarray]:
    """The set, values [N, B, 1] as an agent's plan has them, and the places of the chosen plans.

    Values are the search's means, and the fresh value of the chosen plan.
    """
    if found.plans is not None:
        return _chosen(problem, found)
    mean, rows, best = np.array(found.mean, float), np.arange(len(found.best)), np.asarray(found.best)
    stderr = np.full(mean.shape, np.inf)
    mean[rows, best], stderr[rows, best] = found.value, found.stderr
    return gsps, Estimate(mean.T[:, :, None], stderr.T[:, :, None]), best


def _chosen(problem: Problem, found: Found) -> tuple[GSPs, Estimate, np.ndarray]:
    """The plans that a search by shooting chose in B states, their values [N, B, 1], and the place of each state's.

    A plan is known in the state that chose it only. Policy m of the plan that state b chose is numbered bM + m where
    policies are codes.
    """
    choices, rows = choices_of(problem), np.arange(len(found.best))
    plans = jax.tree.map(lambda leaf: np.asarray(leaf)[rows, np.asarray(found.best)], found.plans)
    numbers = plans.policies if choices.bounds is None else np.arange(len(rows) * choices.depth)
    listed = np.array(choices.alphas)
    chosen = []
    for policies, alphas in zip(numbers.reshape(len(rows), -1), plans.alphas, strict=True):
        exact = listed[np.abs(listed - alphas[:, None]).argmin(axis=1)] if len(listed) else alphas
        chosen.append(GSP(tuple(policies.tolist()), tuple(exact.tolist())))
    gsps = GSPs(tuple(chosen))
    best = np.array([gsps.gsps.index(gsp) for gsp in chosen])
    mean, stderr = np.full((2, len(gsps), len(rows), 1), np.nan)
    mean[best, rows, 0], stderr[best, rows, 0] = found.value, found.stderr
    return gsps, Estimate(mean, stderr), best


def _progress(i: int, found: Search) -> Progress:
    rows = np.arange(len(found.best))
    value = np.asarray(found.mean)[rows, np.asarray(found.best)]
    return Progress(i, np.asarray(found.draws), np.asarray(found.alive), value, np.asarray(found.gap))


class _Starts(eqx.Module):
    """States [B, …], and the reward of each if they differ."""

    states: Array
    rewards: Any

    @classmethod
    def of(cls, problem: Problem, states: Array) -> _Starts:
        values = problem.reward.values
        return cls(states, values.values if isinstance(values, Each) else None)

    def posed(self, problem: Problem) -> Problem:
        """The problem of one of them, under `vmap`."""
        there = eqx.tree_at(lambda p: p.state, problem, self.states)
        return there if self.rewards is None else eqx.tree_at(lambda p: p.reward.values, there, self.rewards)


@fast_jit
def _at_once(
    planner: AbstractPlanner, problem: Problem, starts: _Starts, warm: Found | None, keys: Array
) -> Found:
    def one(start: _Starts, last: Found | None, key: Key) -> Found:
        return solve(planner, start.posed(problem), last, key=key)

    return jax.vmap(one)(starts, warm, keys)


@fast_jit
def _begin(planner: AbstractPlanner, problem: Problem, starts: _Starts, warm: Found | None) -> Search:
    return jax.vmap(lambda start, last: planner.begin(start.posed(problem), last))(starts, warm)


@fast_jit
def _advance(
    planner: AbstractPlanner,
    problem: Problem,
    starts: _Starts,
    found: Search,
    i: Round,
    is_warm: bool,
    keys: Array,
) -> Search:
    def one(start: _Starts, search: Search, key: Key) -> Search:
        return planner.advance(start.posed(problem), search, i, is_warm, key=key)

    return jax.vmap(one)(starts, found, keys)


@fast_jit
def _finish(planner: AbstractPlanner, problem: Problem, starts: _Starts, found: Search, keys: Array) -> Found:
    def one(start: _Starts, search: Search, key: Key) -> Found:
        return planner.finish(start.posed(problem), search, key=key)

    return jax.vmap(one)(starts, found, keys)
