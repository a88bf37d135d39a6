"""Exact values of all of Π_3 and Π_4 of 4 policies: shared work against one chain of solves per GSP.

A random dense MDP with 1,000 states and 4 actions, γ = .9, α = 1/9. The other side solves, for each GSP
from its tail, (I − βP^π) V = r^π + γα P^π V′ by `np.linalg.solve`; its P^π are ready made. Our time has
everything in it: models, factorisations, values. Of Π_4 the other side does a random eighth, scaled up.
Rounds alternate, best of each, with a pause between the sides. Peak memory is read before the other side starts.
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import numpy as np

import ggpi

GAMMA, ALPHA, NUM_POLICIES = 0.9, 1 / 9, 4
PAUSE = 0.2
"""Seconds before each timing: idle BLAS threads of the side before wait on the cores for a while."""


def problem(num_states: int, num_actions: int = 4, seed: int = 0):
    """A random dense MDP, a reward r(x) and stochastic policies."""
    rng = np.random.default_rng(seed)
    P = rng.random((num_states, num_actions, num_states)) ** 4
    mdp = ggpi.TabularMDP(P / P.sum(axis=2, keepdims=True))
    pis = rng.dirichlet(np.ones(num_actions), (NUM_POLICIES, num_states))
    return mdp, rng.normal(size=num_states), [ggpi.TabularPolicy(pi) for pi in pis]


def shared(mdp, reward, policies, gsps) -> np.ndarray:
    """All values, by ggpi."""
    return np.asarray(ggpi.evaluate(gsps, ggpi.exact_ghms(mdp, policies, GAMMA, ALPHA), reward))


def chain(mdp, r, P_pis, r_pis, gsp) -> np.ndarray:
    """One GSP's values by one solve per segment, from the last to the first."""
    identity = np.eye(mdp.num_states)
    *heads, last = gsp.policies
    v = ahead = np.linalg.solve(identity - GAMMA * P_pis[last], r_pis[last])
    for policy in reversed(heads):
        target = r_pis[policy] + GAMMA * ALPHA * (P_pis[policy] @ v)
        solved = np.linalg.solve(identity - GAMMA * (1 - ALPHA) * P_pis[policy], target)
        v, ahead = solved, (1 - ALPHA) * solved + ALPHA * v
    return r + GAMMA * mdp.ahead(ahead)


def chains(mdp, reward, policies, gsps) -> tuple[float, np.ndarray]:
    """Seconds for some GSPs, each on its own, and their values."""
    r = mdp.r(reward)
    P_pis = [mdp.P_pi(policy) for policy in policies]
    r_pis = [(np.asarray(policy) * r).sum(axis=1) for policy in policies]
    start = time.perf_counter()
    values = np.stack([chain(mdp, r, P_pis, r_pis, gsp) for gsp in gsps])
    return time.perf_counter() - start, values


def compare(num_states: int, depth: int, subset: int | None = None, rounds: int = 3) -> dict:
    """Both sides on Π_depth; the slow one on a random `subset` of it."""
    world = problem(num_states)
    gsps = list(ggpi.compositions(NUM_POLICIES, depth, ALPHA))
    some = np.random.default_rng(1).choice(len(gsps), subset or len(gsps), replace=False)
    ours, theirs, peak = [], [], 0.0
    for _ in range(rounds):
        time.sleep(PAUSE)
        start = time.perf_counter()
        q = shared(*world, gsps)
        ours.append(time.perf_counter() - start)
        peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        time.sleep(PAUSE)
        seconds, expected = chains(*world, [gsps[i] for i in some])
        theirs.append(seconds * len(gsps) / len(some))
    return {
        "states": num_states,
        "gsps": len(gsps),
        "ggpi_seconds": min(ours),
        "chains_seconds": min(theirs),
        "chains_measured": len(some),
        "speed_up": min(theirs) / min(ours),
        "difference": float(np.abs(q[some] - expected).max()),
        "peak_gb": peak,
    }


def main() -> None:
    results = {}
    for depth, subset in ((3, None), (4, 32)):
        results[f"depth {depth}"] = found = compare(1_000, depth, subset)
        print(
            f"Π_{depth}, {found['gsps']} GSPs, {found['states']:,} states: ggpi {found['ggpi_seconds']:.2f} s, "
            f"chains of solves {found['chains_seconds']:.1f} s ({found['chains_measured']} measured): "
            f"{found['speed_up']:.0f}× as fast; peak {found['peak_gb']:.2f} GB; "
            f"largest difference {found['difference']:.0e}"
        )
    path = Path(__file__).parent / "results" / "exact_sets.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
