"""The jumpy graph: seconds to build it, to solve a reward and to decide, and its memory, against its size.

An empty square of 20 × 20, directions as policies, jumps of 16 steps on average (γ = .998, α = .06). Models are exact
and cheap, so that building is mostly the search for neighbours; `student` builds the same graph with the network of a
one-pass student (untrained, of the default size), as learned models do. `trained` builds one with the shipped students
of the maze, whose four policies are taken twice: weights are multiplied alike whatever they are. `numpy` solves one
reward by plain value iteration in NumPy, on the same graph, in turns. Each reward is a new target. Times are the best
of some rounds, by the wall and by the CPU: the latter counts all threads, and hardly depends on what else runs.
Memory is the size of the graph, and the peak of the process so far.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import ggpi
from ggpi._jax.batching import stack
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs, joined_ghms
from ggpi.ghm.conditioned import conditioned
from ggpi.ghm.coordinates import Frame, fit_frame
from ggpi.ghm.one_pass import student_of
from ggpi.planning.graph_values import PRECISION
from ggpi.policies.linear import linear_policy
from ggpi.switching import beta_of

GAMMA, ALPHA, SIDE, SPEED = 0.998, 0.06, 20.0, 0.2
BETA = beta_of(GAMMA, ALPHA)


class Straight(AbstractGHM):
    """A geometric number of steps in the direction of the action, until a wall stops them."""

    frame: Frame

    @property
    def noise_size(self):
        return 3

    @property
    def loss_noise_size(self):
        return 0

    def push(self, state, action, noise):
        steps = 1 + jnp.floor(jnp.log(jax.scipy.special.ndtr(noise[0])) / np.log(BETA))
        return jnp.clip(state + SPEED * (steps * action + jnp.sqrt(steps) * 0.3 * noise[1:]), 0, SIDE)

    def loss(self, state, action, target, noise):
        return jnp.zeros(len(state))


def straight(num_policies: int, data: np.ndarray) -> GHMs:
    angles = 2 * np.pi * np.arange(num_policies) / num_policies
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    policies = tuple(linear_policy(np.zeros((2, 2)), way, 0.1, f"{i}") for i, way in enumerate(ways))
    spec = ggpi.StateSpec(("x", "y"), relative=(0, 1))
    frame = fit_frame(data[:1000], data[:1000], data[1000:2000], spec, None)
    return GHMs(policies, GAMMA, (ALPHA,), (stack([Straight(frame)] * num_policies),) * 2)


def student(ghms: GHMs) -> GHMs:
    """The same policies with an untrained network in one pass."""
    frame = jax.tree.map(lambda leaf: leaf[0], ghms.models[0].frame)
    model = ggpi.FlowMatchingConfig().build(frame, key=jax.random.key(0))
    codes = jnp.eye(len(ghms.policies))
    network = conditioned(model, codes, GAMMA, len(codes), key=jax.random.key(1))
    network = replace(network, model=student_of(network.model))
    return replace(ghms, models=tuple(network.at_horizon(horizon) for horizon in (GAMMA, BETA)))


def shipped() -> GHMs:
    """The trained students of the maze, twice: eight policies."""
    ghms = ggpi.pretrained("maze-ghms").with_alpha(ALPHA)
    return joined_ghms([ghms, ghms])


def in_numpy(graph: ggpi.JumpyGraph, f: np.ndarray) -> np.ndarray:
    """V by sweeps V ← max_k (f_k + c W_k V), until a sweep changes no value by more than the solver's precision."""
    v, jumps = f.max(axis=0), graph.jumps
    while True:
        after = (jumps.weight * v[jumps.neighbour]).sum(axis=(2, 3))
        new = (f + graph.discount * after).max(axis=0)
        if np.abs(new - v).max() <= PRECISION * (1 - graph.discount) * np.abs(new).max():
            return new
        v = new


def against_numpy(num_landmarks: int, num_jumps: int, num_policies: int, rounds: int = 2) -> dict:
    """Seconds of `graph.solve` and of NumPy for the same rewards, in turns, and how far apart their values are."""
    rng = np.random.default_rng(0)
    data = rng.uniform(0, SIDE, (max(10 * num_landmarks, 2000), 2)).astype(np.float32)
    ghms = straight(num_policies, data)
    sizes = {"num_landmarks": num_landmarks, "num_jumps": num_jumps, "num_neighbours": 4}
    graph = ggpi.jumpy_graph(ghms, data, **sizes, key=jax.random.key(0))
    graph.solve(ggpi.rewards.target(data[0], 1.0))
    found, apart = [], 0.0
    for place in rng.uniform(0, SIDE, (rounds, 2)):
        reward, clock = ggpi.rewards.target(place, 1.0), [time.process_time()]
        ours = graph.solve(reward)
        clock.append(time.process_time())
        theirs = in_numpy(graph, graph._rewards(reward.form, reward.values))
        clock.append(time.process_time())
        found.append(np.diff(clock))
        apart = max(apart, float(np.abs(ours - theirs).max() / np.abs(theirs).max()))
    ours, theirs = np.median(found, axis=0)
    ratio = float(np.median([b / a for a, b in found]))
    return {
        "landmarks": num_landmarks,
        "jumps": num_jumps,
        "policies": num_policies,
        "solve_cpu_seconds": float(ours),
        "numpy_cpu_seconds": float(theirs),
        "times_as_fast": ratio,
        "difference": apart,
    }


def timed(function, rounds: int) -> tuple[float, float]:
    """Seconds by the wall and by the CPU, the best of some rounds."""
    found = []
    for i in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        function(i)
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return tuple(np.min(found, axis=0).tolist())


def measure(
    num_landmarks: int, num_jumps: int, num_policies: int, rounds: int = 5, models: str = "exact"
) -> dict:
    rng = np.random.default_rng(0)
    data = rng.uniform(0, SIDE, (max(10 * num_landmarks, 2000), 2)).astype(np.float32)
    graphs: list[ggpi.JumpyGraph] = []
    if models == "trained":
        data = np.concatenate([rng.uniform(-4, 4, data.shape), rng.normal(0, 2, data.shape)], 1).astype(
            np.float32
        )
        ghms = shipped()
    else:
        ghms = straight(num_policies, data)
        ghms = student(ghms) if models == "student" else ghms
    sizes = {"num_landmarks": num_landmarks, "num_jumps": num_jumps, "num_neighbours": 4, "alpha": ALPHA}
    builds = 1 if num_landmarks > 20_000 or models != "exact" else 2  # the first one compiles
    build = timed(
        lambda i: graphs.append(ggpi.jumpy_graph(ghms, data, **sizes, key=jax.random.key(i))), builds
    )
    graph = graphs[-1]
    del graphs[:]
    targets = [ggpi.rewards.target(place, 1.0) for place in rng.uniform(0, SIDE, (rounds + 1, 2))]
    graph.solve(targets[-1])
    solve = timed(lambda i: graph.solve(targets[i]), rounds)
    agent = ggpi.GGPIAgent(ghms, targets[0], depth="inf", graph=graph, num_samples=32)
    agent.act(data[0], key=jax.random.key(0))
    decide = timed(lambda i: agent.act(data[i], key=jax.random.key(i)), rounds)
    size = sum(part.nbytes for part in vars(graph.jumps).values())
    times = {"build": build, "solve": solve, "decision": decide}
    return {
        "landmarks": num_landmarks,
        "jumps": num_jumps,
        "policies": num_policies,
        **{f"{name}_seconds": wall for name, (wall, _) in times.items()},
        **{f"{name}_cpu_seconds": cpu for name, (_, cpu) in times.items()},
        "graph_gb": size / 1e9,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def growth(rows: list[dict], size: str) -> dict[str, float]:
    """How many times the cost of one landmark, jump or policy grows from the first row to the last: 1 is linear."""
    times = rows[-1][size] / rows[0][size]
    return {
        name: rows[-1][name] / rows[0][name] / times for name in ("build_cpu_seconds", "solve_cpu_seconds")
    }


def main() -> None:
    is_tiny = "--tiny" in sys.argv
    base, most = (100, 1_000) if is_tiny else (4_000, 100_000)
    rows = {
        "base": [lambda: measure(base, 16, 8)],
        "student": [lambda: measure(base, 16, 8, models="student")],
        "trained": [lambda: measure(base, 16, 8, models="trained")],
        "numpy": [lambda: against_numpy(base, 16, 8)],
        "jumps": [lambda n=n: measure(base, n, 4) for n in (4, 16)],
        "policies": [lambda k=k: measure(base, 8, k) for k in (2, 8)],
        "landmarks": [
            lambda count=count: measure(count, 8, 4, rounds=3) for count in (most // 100, most // 10, most)
        ],
    }
    path = Path(__file__).parent / "results" / "jumpy_graph.json"
    named = [name for name in sys.argv[1:] if name in rows]  # the others stay as they were
    results = json.loads(path.read_text()) if named else {}
    for name in named or rows:
        measured = rows[name]
        results[name] = [one() for one in measured]
        print(json.dumps({name: results[name]}, indent=1), flush=True)
    results["growth"] = {size: growth(results[size], size) for size in ("jumps", "policies", "landmarks")}
    print(json.dumps({"growth": results["growth"]}, indent=1))
    if not is_tiny:
        path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
