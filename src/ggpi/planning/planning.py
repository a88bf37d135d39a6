"""`plan`: one decision of a planner, as a pure function."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from ggpi._jax.jit import jit
from ggpi._jax.random import checked_key
from ggpi.ghm.base import GHMs
from ggpi.planning.chains import Problem, problem_of
from ggpi.planning.plans import Plans, plans_of
from ggpi.planning.posing import posed_shooting
from ggpi.planning.search import AbstractPlanner, AbstractSetPlanner, Plan, Round, Search
from ggpi.planning.shooting import AbstractShooter
from ggpi.planning.unfamiliar import UnfamiliarCodeWarning, unfamiliar_codes
from ggpi.rewards import Reward, as_reward
from ggpi.switching import GSPs
from ggpi.types import Key, Sampler


def plan(
    planner: AbstractPlanner,
    sampler: GHMs | Sampler,
    reward: Reward | ArrayLike | Callable[..., object],
    state: ArrayLike,
    *,
    warm: Plan | None = None,
    key: Key,
) -> Plan:
    """The plan that a planner chooses in one state.

    A pure function of the state, the key and the arrays of the reward and the models: jit, vmap and scan it. By itself
    it is compiled once for each planner object, and warns of proposed codes that it moves far
    (`UnfamiliarCodeWarning`); while JAX traces it, it cannot.

    Args:
        planner: how to search, and which set.
        sampler: the models, or any Sampler that is an `equinox.Module`.
        reward: a reward that JAX can trace.
        state: one state.
        warm: the last decision with the same set: the search starts with what survived longest in it.
        key: the random key.
    """
    problem = posed(planner, sampler, as_reward(reward), state)
    if found := unfamiliar_codes(planner, problem, problem.state[None], checked_key(key)):
        warnings.warn(found, UnfamiliarCodeWarning, stacklevel=2)
    return _compiled(planner, problem, warm, key=checked_key(key))


def solve(planner: AbstractPlanner, problem: Problem, warm: Plan | None = None, *, key: Key) -> Plan:
    """The choice of a planner in a problem that it has checked."""
    plans, is_warm = problem.plans, warm is not None
    search_key, report_key = jax.random.split(checked_key(key))

    def advance(search: Search, i: Round) -> tuple[Search, None]:
        return planner.advance(problem, search, i, is_warm, key=jax.random.fold_in(search_key, i)), None

    search, count = planner.begin(problem, warm), planner.num_rounds(plans, is_warm)
    first = count - planner.num_alike(plans)
    for i in range(first):
        search, _ = advance(search, i)
    if first < count:
        search, _ = jax.lax.scan(advance, search, jnp.arange(first, count))
    return planner.finish(problem, search, key=report_key)


_compiled = jit(solve)


def posed(planner: AbstractPlanner, sampler: GHMs | Sampler, reward: Reward, state: ArrayLike) -> Problem:
    """What a planner is to solve, after its checks."""
    if isinstance(planner, AbstractShooter):
        return posed_shooting(planner, sampler, reward, state)
    if not isinstance(planner, AbstractSetPlanner) or planner.gsps is None:
        raise ValueError(f"{type(planner).__name__} has no set of switching policies: give it gsps=")
    plans = planner.gsps if isinstance(planner.gsps, Plans) else plans_of(planner.gsps)
    if isinstance(sampler, GHMs):
        sampler = sampler.supporting(alpha for level in plans.levels for alpha in level if alpha)
        if isinstance(planner.gsps, GSPs):
            sampler.check(planner.gsps)
        sampler = sampler.sampler()
    problem = problem_of(plans, sampler, reward, state)
    planner.check(problem)
    return problem
