"""Exact policy iteration by GGPI at depth 1 and depth 2 (newest last) on sparse grids of rooms, side by side.

4 noisy actions, γ = .99, α = .1, one rewarded state, from the uniform policy. Depth 1 is Howard's policy
iteration. Depth 2 evaluates one GSP per policy seen so far, so that it takes fewer but dearer steps. No
S × S array is ever formed: systems are factorised sparsely or solved by Krylov iterations.
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import numpy as np

import ggpi
from ggpi.mdp import optimal

GAMMA, ALPHA = 0.99, 0.1
GRIDS = {"10k": 11, "100k": 35}


def run(mdp, reward, depth: int, best: np.ndarray) -> dict:
    start = time.perf_counter()
    found = ggpi.policy_iteration(mdp, reward, GAMMA, ALPHA, depth=depth, newest_last=True, optimal=best)
    seconds = time.perf_counter() - start
    return {"iterations": found.iterations, "seconds": seconds, "stopped": found.stopped}


def howard(mdp, reward) -> dict:
    uniform = np.full((mdp.num_states, mdp.num_actions), 1 / mdp.num_actions)
    start = time.perf_counter()
    found = optimal.howard(mdp, reward, GAMMA, policy=uniform)
    return {
        "iterations": found.iterations,
        "seconds": time.perf_counter() - start,
        "stopped": found.stopped,
        "error_bound": found.error_bound,
    }


def main() -> None:
    results = {}
    for name, num_rooms in GRIDS.items():
        mdp = ggpi.envs.rooms(num_rooms, 9, 1 / 3)
        reward = mdp.indicator((1, num_rooms * 10 - 1))
        best = optimal.optimal_actions(ggpi.q_star(mdp, reward, GAMMA, tolerance=1e-10), tolerance=1e-9)
        results[name] = found = {"states": mdp.num_states, "plain": howard(mdp, reward)}
        for depth in (1, 2):
            found[f"depth {depth}"] = run(mdp, reward, depth, best)
        found["ratio_iterations"] = found["depth 1"]["iterations"] / found["depth 2"]["iterations"]
        found["ratio_seconds"] = found["depth 1"]["seconds"] / found["depth 2"]["seconds"]
        found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        for kind in ("plain", "depth 1", "depth 2"):
            row = found[kind]
            print(
                f"{mdp.num_states:>8,} states, {kind:7}: {row['iterations']:3} iterations, "
                f"{row['seconds']:6.2f} s, {row['stopped']}"
            )
        print(
            f"{'':8} depth 1 over depth 2: {found['ratio_iterations']:.1f}× the iterations, "
            f"{found['ratio_seconds']:.2f}× the time; peak {found['peak_gb']:.1f} GB"
        )
    path = Path(__file__).parent / "results" / "policy_iteration.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
