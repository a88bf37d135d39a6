"""Planning with learned models of the ant: against real time, against the simulator, and what sharing prefixes saves.

Depth-2 plans are 16 GSPs × 100 samples: 20 segments × 100 draws, for prefixes are shared. The simulator draws as
many future states by stepping the ant. "Whole rows" is the same compiled program without sharing, each of the 4ᵐ
rows of policies drawn by itself as m segments; "apart" gives each GSP its own segments, but repeats of the last
policy, which change nothing, are dropped.
"""

from __future__ import annotations

import gc
import itertools
import json
import resource
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import ggpi
from ggpi.envs.ant import CONTROL_STEP, AntDynamics, SparseAntVector
from ggpi.evaluation.queries import Jump, estimate
from ggpi.evaluation.rewards import sampled_reward
from ggpi.evaluation.tree import build_tree
from ggpi.lab.ant import mpc as ant_mpc
from ggpi.lab.walks import over_walks
from ggpi.rollout.futures import simulate_futures
from ggpi.switching import segments

SAMPLES, EPISODES, RADIUS = 100, 100, 0.3
MODEL = 2.0 * (37 * 88 + 3 * 88**2 + 88 * 4 * 88 + 8 * 88 + 88 * 35)
POLICY = 2.0 * (29 * 128 + 128**2 + 128 * 16)
"""Floating-point operations in the matrix products of one sample of a model, and of one look of a policy."""
FLOPS = 20 * SAMPLES * MODEL + (4 + 16 * SAMPLES) * POLICY
"""Those of a depth-2 plan: 20 segments; policies look at the state itself once, then at every end of a segment."""


def seconds(work, rounds: int) -> float:
    work()
    best = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        best.append(time.perf_counter() - begun)
    return min(best)


def gemm_rate(size: int = 1024) -> float:
    a, product = jnp.ones((size, size)), jax.jit(lambda a: a @ a)
    return 2 * size**3 / seconds(lambda: product(a).block_until_ready(), 10)


def simulator_seconds(ghms, states) -> float:
    """Time for as many future states as a depth-2 plan draws."""
    dynamics, policy = AntDynamics(), ghms.policies[0]
    begun = time.perf_counter()
    for horizon, count in ((0.8, 4 * SAMPLES), (ghms.gamma, 16 * SAMPLES)):
        x = np.repeat(states[:1], count, axis=0)
        a = np.zeros((count, 8), np.float32)
        simulate_futures(dynamics, policy, x, a, horizon)
    return time.perf_counter() - begun


def apart(chains):
    """The same chains, whose segments are all different: nothing is shared. Weights change by nothing to speak of."""
    return [
        tuple(segment._replace(start=segment.start + i * 1e-12) for segment in chain)
        for i, chain in enumerate(chains)
    ]


def sharing(ghms, states, goals, depth: int) -> dict[str, float]:
    """Times of the same program with shared prefixes, without, and for whole rows."""
    reward = ggpi.rewards.targets(goals, RADIUS)
    gsps = ggpi.compositions(4, depth, ghms.alphas[0])
    chains = [gsp.segments(ghms.gamma) for gsp in gsps]
    rows = [
        segments(row, ghms.alphas * (depth - 1), ghms.gamma)
        for row in itertools.product(range(4), repeat=depth)
    ]
    sampler = ghms.sampler()
    trees = {
        "shared": build_tree(chains, ghms.gamma, "arrival")[0],
        "apart": build_tree(apart(chains), ghms.gamma, "arrival")[0],
        "whole rows": build_tree(apart(rows), ghms.gamma, "arrival")[0],
    }
    best = dict.fromkeys(trees, np.inf)
    for _ in range(3):
        for name, tree in trees.items():
            query = Jump(sampler, sampled_reward(reward, sampler), jnp.asarray(states), None, tree)
            work = partial(estimate, query, SAMPLES, largest=2**40, key=jax.random.key(0))
            best[name] = min(best[name], seconds(work, 2))
    return {name: value / best["shared"] for name, value in best.items() if name != "shared"}


def mpc_seconds(ghms, states, goals) -> float:
    """Time of a decision of model-predictive control; a GHM stands for the one-step model of the same sizes."""
    model = ghms.segment(0, None)
    decide = over_walks(model, ghms.policies, ant_mpc.walks(RADIUS))
    return seconds(lambda: decide(states, goals, jax.random.key(1)), 5) / len(states)


def growth(agent, state, decisions: int = 10_000) -> float:
    """Megabytes that the process gains over many decisions, after the first thousand."""
    for i in range(1000):
        agent.act(state, key=jax.random.key(i))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(decisions):
        agent.act(state, key=jax.random.key(i))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    ghms = ggpi.pretrained("ant-ghms")
    states, info = SparseAntVector(EPISODES).reset(seed=0)
    goals = info["target"]
    one = ggpi.GGPIAgent(ghms, ggpi.rewards.target(goals[0], RADIUS), depth=2, num_samples=SAMPLES)
    many = ggpi.GGPIAgent(ghms, ggpi.rewards.targets(goals, RADIUS), depth=2, num_samples=SAMPLES)
    single = seconds(lambda: one.act(states[0], key=jax.random.key(1)), 30)
    batched = seconds(lambda: many.act(states, key=jax.random.key(1)), 5)
    simulator_seconds(ghms, states)
    result = {
        "seconds_per_plan": single,
        "faster_than_real_time": CONTROL_STEP / single,
        "cheaper_than_the_simulator": simulator_seconds(ghms, states) / single,
        "seconds_per_plan_batched": batched / EPISODES,
        "share_of_gemm_batched": EPISODES * FLOPS / batched / gemm_rate(),
        "mpc_over_ggpi": mpc_seconds(ghms, states, goals) / (batched / EPISODES),
        "sharing": {f"depth {d}": sharing(ghms, states[:8], goals[:8], d) for d in (2, 3)},
        "megabytes_gained_in_10000_decisions": growth(
            ggpi.GGPIAgent(ghms, ggpi.rewards.target(goals[0], RADIUS), depth=1, num_samples=5), states[0]
        ),
    }
    print(json.dumps(result, indent=1))
    path = Path(__file__).parent / "results" / "planning.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
