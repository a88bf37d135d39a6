"""Why this policy, in the closed loop? One jump of every policy, then V: there are no plans to compare.

What the agent compares is U_k, "policy k until the next switch, then the best policy of the state that is reached".
Values are those of its own decision. Differences come from further jumps, which share their random numbers over the
policies. A true jump is simulated, and V is that of the graph where it ends: what differs is the model of the jump.
Exact models of a finite MDP are compared with the exact closed loop.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.jit import fast_jit
from ggpi.agent.agent import GGPIAgent
from ggpi.envs.environment import Dynamics
from ggpi.evaluation.queries import estimate
from ggpi.evaluation.rewards import sampled_reward
from ggpi.evaluation.tree import Block, Tree
from ggpi.ghm.samplers import TableSampler
from ggpi.lab.agents import SimulatorSampler
from ggpi.planning.closed_loop import evaluate_closed_loop
from ggpi.planning.landing import Landing, landing
from ggpi.rewards import as_reward
from ggpi.studio.decisions import Decider
from ggpi.studio.episodes import Past
from ggpi.studio.explaining import PAIRED, SIMULATED, standard_error
from ggpi.studio.worlds import World
from ggpi.types import Key


def explain_loop(world: World, decider: Decider, past: Past) -> dict[str, Any]:
    """U_k of every policy in a state, U(followed) − U_k from common random numbers, and what simulation says.

    Args:
        world: the world.
        decider: the agent in the closed loop.
        past: the decision, which is repeated with the same key.
    """
    agent = decider.agent
    paired_key, simulation_key = jax.random.split(jax.random.fold_in(past.key, 1))
    plan = agent.plan(past.state, key=past.key)
    jumps = paired_jumps(agent, past.state, paired_key)
    true = _true(world, agent, past.state, simulation_key)
    own = past.followed[0]
    order = [own, *(k for k in np.argsort(-plan.value, kind="stable").tolist() if k != own)]
    rows = []
    for k in order:
        apart = jumps[own] - jumps[k]
        row = {"policies": [k], "chosen": k == own}
        row |= {"value": float(plan.value[k]), "value_stderr": float(plan.stderr[k])}
        row |= {"difference": float(apart.mean()), "stderr": standard_error(apart)}
        if true is not None:
            row |= {"true": float(true[0][k]), "true_stderr": float(true[1][k])}
        rows.append(row)
    is_exact = isinstance(agent.ghms.sampler(), TableSampler)
    truth = "none" if true is None else "exact" if is_exact else "simulated"
    return {"loop": True, "plans": rows, "samples": PAIRED, "truth": truth, "futures": SIMULATED}


def paired_jumps(agent: GGPIAgent, state: np.ndarray, key: Key) -> Float[np.ndarray, "K n"]:
    """The return of each jump of each policy; jump i has the same random numbers whatever the policy."""
    sampler = agent.ghms.sampler()
    query = _query(agent, sampler, state)
    (block,) = query.tree.levels[0]
    found = []
    for k in block.policies:
        alone = Block(block.parent[:1], block.start[:1], block.end[:1], block.horizon, (k,), is_leaf=True)
        one = eqx.tree_at(lambda q: q.tree, query, Tree(((alone,),), np.zeros(1, int)))
        found.append(np.asarray(_returns(one, PAIRED, key)))
    return np.stack(found)


def _query(agent: GGPIAgent, sampler: Any, state: np.ndarray) -> Landing:
    """What the agent estimates in a state, with a Sampler of jumps."""
    graph = agent.graph
    assert graph is not None
    reward = as_reward(agent.reward)
    scored = sampled_reward(reward, agent.ghms.sampler())
    return landing(graph, graph.solve(reward), sampler, scored, jnp.asarray(state)[None])


@fast_jit
def _returns(query: Landing, num_samples: int, key: Key) -> Array:
    return query.returns(query.draw(num_samples, key=key))[0, 0, 0]


def _true(
    world: World, agent: GGPIAgent, state: np.ndarray, key: Key
) -> tuple[np.ndarray, np.ndarray] | None:
    """True U_k and their standard errors; None where nothing can be simulated."""
    if world.dynamics is None:
        return None
    if isinstance(agent.ghms.sampler(), TableSampler):
        graph = agent.graph
        assert graph is not None
        q = evaluate_closed_loop(agent.ghms, as_reward(agent.reward), alpha=graph.alpha)
        return q.v[:, int(state)], np.zeros(len(q.v))
    return simulated_jumps(world.dynamics(), agent, state, key)


def simulated_jumps(
    dynamics: Dynamics, agent: GGPIAgent, state: np.ndarray, key: Key
) -> tuple[np.ndarray, np.ndarray]:
    """U_k from true jumps, with the agent's own V where they end, and their standard errors."""
    ghms = agent.ghms
    query = _query(agent, SimulatorSampler(dynamics, tuple(ghms.policies), ghms.gamma), state)
    found = estimate(query, SIMULATED, largest=SIMULATED * query.num_segments, key=key)
    return np.asarray(found.mean)[:, 0, 0], np.asarray(found.stderr)[:, 0, 0]
