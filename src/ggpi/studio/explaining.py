"""Why this policy? Plans compared by paired differences, and with simulation; and models compared with simulation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ggpi._jax.jit import fast_jit
from ggpi.agent.agent import GGPIAgent
from ggpi.diagnosis.measures import compare
from ggpi.diagnosis.samples import draw_at
from ggpi.diagnosis.truth import on_policy_truth
from ggpi.diagnosis.verdict import judge
from ggpi.envs.environment import Dynamics
from ggpi.evaluation import evaluate_states_sampled
from ggpi.evaluation.exact import evaluate
from ggpi.ghm.base import GHMs
from ggpi.ghm.samplers import TableSampler
from ggpi.lab.agents import SimulatorSampler
from ggpi.planning.chains import Problem, problem_of, returns
from ggpi.planning.plans import plans_of
from ggpi.rewards import as_reward
from ggpi.rollout.acting import act
from ggpi.rollout.futures import simulate_futures
from ggpi.studio.decisions import Decider
from ggpi.studio.episodes import Past
from ggpi.studio.worlds import World
from ggpi.switching import GSPs, compositions
from ggpi.types import Key

PAIRED, SIMULATED, SHOWN = 400, 64, 12
MOST = 20
"""Sets of at most so many plans are simulated as a whole, which compiles once."""
FUTURES = 160
"""Samples of each model, and true futures beside them."""


def explain(world: World, decider: Decider, past: Past) -> dict[str, Any]:
    """The best plans of a state, V(followed) − V(plan) from common random numbers, and what simulation says.

    Args:
        world: the world.
        decider: the agent, for its models and its reward.
        past: the decision. Where no plan of the set was followed, the best one is first, and none is `chosen`.
    """
    agent, ghms = decider.agent, decider.agent.ghms
    gsps = compositions(len(ghms.policies), past.settings.depth, past.settings.alpha or ghms.alphas[0])
    value_key, simulation_key = jax.random.split(past.key)
    samples = _returns(agent, gsps, past.state, value_key)
    mean = samples.mean(axis=1)
    named = {gsp.policies: i for i, gsp in enumerate(gsps)}
    own = named.get(past.followed, int(mean.argmax()))
    order = [own, *(i for i in np.argsort(-mean, kind="stable").tolist() if i != own)][:SHOWN]
    asked = list(range(len(gsps))) if len(gsps) <= MOST else sorted(order)
    true = simulated(world, agent, GSPs(tuple(gsps[i] for i in asked)), past.state, simulation_key)
    rows = []
    for i in order:
        row = {"policies": list(gsps[i].policies), "chosen": gsps[i].policies == past.followed}
        row |= {"value": float(mean[i]), "value_stderr": standard_error(samples[i])}
        apart = samples[own] - samples[i]
        row |= {"difference": float(apart.mean()), "stderr": standard_error(apart)}
        if true is not None:
            place = asked.index(i)
            row |= {"true": float(true[0][place]), "true_stderr": float(true[1][place])}
        rows.append(row)
    is_exact = isinstance(ghms.sampler(), TableSampler)
    truth = "none" if true is None else "exact" if is_exact else "simulated"
    return {"loop": False, "plans": rows, "samples": PAIRED, "truth": truth, "futures": SIMULATED}


def standard_error(samples: np.ndarray) -> float:
    """Of the mean of samples."""
    return float(samples.std() / np.sqrt(len(samples) - 1))


def _returns(agent: GGPIAgent, gsps: GSPs, state: np.ndarray, key: Key) -> np.ndarray:
    """The return of each sample of each plan [N, n], with common random numbers, in the order of the set."""
    plans = plans_of(gsps)
    sampler = agent.ghms.supporting(gsps.alphas).sampler()
    problem = problem_of(plans, sampler, as_reward(agent.reward), jnp.asarray(state))
    found = np.asarray(_sampled(problem, PAIRED, key))
    ordered = np.empty_like(found)
    ordered[np.asarray(plans.place)] = found
    return ordered


@fast_jit
def _sampled(problem: Problem, num_samples: int, key: Key) -> Array:
    plans = problem.plans
    return returns(problem, jnp.arange(len(plans)), plans.depth, num_samples, key=key)


def simulated(
    world: World, agent: GGPIAgent, gsps: GSPs, state: np.ndarray, key: Key
) -> tuple[np.ndarray, np.ndarray] | None:
    """True values of plans and their standard errors: exact in a finite MDP, by simulation elsewhere; None without."""
    ghms = agent.ghms
    if world.dynamics is None:
        return None
    if isinstance(ghms.sampler(), TableSampler):
        closed = compositions(len(ghms.policies), max(len(gsp) for gsp in gsps), ghms.alphas[0])
        q = evaluate(closed, ghms, as_reward(agent.reward))
        place = {gsp.policies: i for i, gsp in enumerate(closed)}
        heads = [np.asarray(ghms.policies[gsp.head])[int(state)] for gsp in gsps]
        table = np.asarray(q)
        rows = [table[place[gsp.policies], int(state)] @ pi for gsp, pi in zip(gsps, heads, strict=True)]
        return np.array(rows), np.zeros(len(rows))
    sampler = SimulatorSampler(world.dynamics(), tuple(ghms.policies), ghms.gamma)
    found = evaluate_states_sampled(
        gsps, sampler, as_reward(agent.reward), state[None], num_samples=SIMULATED, key=key
    )
    return np.asarray(found.mean)[:, 0], np.asarray(found.stderr)[:, 0]


def diagnose(world: World, ghms: GHMs, state: np.ndarray) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Each model beside true futures from one state: verdicts, and places [models, 2, n, 2] of samples and futures."""
    if world.dynamics is None:
        raise ValueError(
            "this environment cannot be simulated from the agent's state; "
            f"use the command line: ggpi diagnose {world.directory} --env ID"
        )
    compared = _exact if isinstance(ghms.sampler(), TableSampler) else _learned
    rows, places, dynamics = [], [], world.dynamics()
    for k in range(len(ghms.policies)):
        for alpha in (None, *ghms.alphas[:1]):
            row, clouds = compared(dynamics, ghms, k, alpha, state)
            rows.append({"policy": k, "horizon": ghms.horizon(alpha), **row})
            places.append([world.place(cloud) for cloud in clouds])
    return rows, np.array(places, np.float32)


def _learned(
    dynamics: Dynamics, ghms: GHMs, k: int, alpha: float | None, state: np.ndarray
) -> tuple[dict[str, Any], tuple[np.ndarray, np.ndarray]]:
    """The verdict on a learned model, its samples and true futures."""
    key, seeds = jax.random.key(k), (2 * k, 2 * k + 1)
    policy, horizon = ghms.policies[k], ghms.horizon(alpha)
    truth = on_policy_truth(dynamics, policy, state[None], horizon, FUTURES, seeds=seeds, key=key)
    drawn = draw_at(ghms.segment(k, alpha), truth, key=key)
    found = compare(truth, drawn)
    measured = {name: found[name] for name in ("energy", "energy_floor", "emd", "emd_floor")}
    return judge(found) | measured, (drawn[0], truth.future[0])


def _exact(
    dynamics: Dynamics, ghms: GHMs, k: int, alpha: float | None, state: np.ndarray
) -> tuple[dict[str, Any], tuple[np.ndarray, np.ndarray]]:
    """An exact model needs no verdict."""
    states, key = np.full(FUTURES, int(state)), jax.random.key(k)
    sampler, horizon = ghms.sampler(), ghms.horizon(alpha)
    drawn = sampler.onward((k,), horizon, jnp.asarray(states, jnp.int32)[None], key=key)[0]
    action = np.asarray(act(sampler.bank, np.int32(k), jnp.asarray(states, jnp.int32), key))
    future = simulate_futures(dynamics, ghms.policies[k], states, action, horizon, seed=k)
    return {"verdict": "exact", "why": []}, (np.asarray(drawn), future)
