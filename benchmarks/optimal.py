"""Q* on sparse grids of rooms: ggpi against the best of QuantEcon's DiscreteDP at the same error.

4 noisy actions, γ = .99, one rewarded state; about 10,000 and 100,000 states. The peer's ε and k are
tuned first: of the settings whose measured sup-error is at most 1e-8 the fastest is kept, and its own
set-up and compilation are not timed, while ours is. Rounds alternate, best of each. Its policy iteration
may cycle on ties, so it gets a limit of 50 iterations. Then 10⁶ states, ours only: peak memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse

from ggpi.envs import rooms
from ggpi.mdp.optimal import q_star

GAMMA, ERROR, ROUNDS = 0.99, 1e-8, 7
GRIDS = {"10k": 11, "100k": 35}


def problem(num_rooms: int):
    mdp = rooms(num_rooms, 9, 1 / 3)
    return mdp, mdp.indicator((1, num_rooms * 10 - 1))


def peers(mdp, reward) -> dict:
    """Every method of the peer, as functions that return its values."""
    from quantecon.markov import DiscreteDP

    pairs = np.arange(mdp.num_states * mdp.num_actions)
    kernel = scipy.sparse.csr_matrix(mdp.kernel)
    kernel.indices, kernel.indptr = kernel.indices.astype(np.int32), kernel.indptr.astype(np.int32)
    states, actions = np.divmod(pairs, mdp.num_actions)
    ddp = DiscreteDP(mdp.r(reward).ravel(), kernel, GAMMA, states, actions)
    ddp.solve("mpi", max_iter=2)  # compiles

    def method(name, **settings):
        return lambda: ddp.solve(name, max_iter=50 if name == "pi" else 10_000, **settings).v

    sweeps = {
        f"modified policy iteration, k = {k}, ε = {epsilon:.0e}": method("mpi", k=k, epsilon=epsilon)
        for k in (20, 40, 60, 80, 120)
        for epsilon in (1e-6, 1e-7, 1e-8)
    }
    return sweeps | {
        "policy iteration": method("pi"),
        "value iteration, ε = 2e-8": method("vi", epsilon=2e-8),
    }


def reference(mdp, reward, sweeps: int = 80, tolerance: float = 1e-11) -> tuple[np.ndarray, float]:
    """Q* and a bound on its error, by plain modified policy iteration with a fixed number of sweeps."""
    r, v = mdp.r(reward), np.zeros(mdp.num_states)
    while True:
        q = r + GAMMA * mdp.ahead(v)
        residual = GAMMA / (1 - GAMMA) * (q.max(axis=1) - v)
        low, high = residual.min(), residual.max()
        if (bound := (high - low) / 2) <= tolerance:
            return q + (high + low) / 2, bound
        pi = np.eye(mdp.num_actions)[q.argmax(axis=1)]
        P_pi, r_pi, v = mdp.P_pi(pi), (pi * r).sum(axis=1), q.max(axis=1)
        for _ in range(sweeps - 1):
            v = r_pi + GAMMA * (P_pi @ v)


def timed(function) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def compare(name: str) -> dict:
    mdp, reward = problem(GRIDS[name])
    exact, error_bound = reference(mdp, reward)
    contenders = peers(mdp, reward)
    trials = {peer: timed(function) for peer, function in contenders.items()}
    good = {peer: t for peer, (t, v) in trials.items() if np.abs(v - exact.max(axis=1)).max() <= ERROR}
    finalists = {peer: contenders[peer] for peer in sorted(good, key=good.__getitem__)[:4]}
    ours, theirs = [], {peer: [] for peer in finalists}
    for _ in range(ROUNDS):
        seconds, q = timed(lambda: q_star(mdp, reward, GAMMA, tolerance=ERROR))
        ours.append(seconds)
        for peer, function in finalists.items():
            theirs[peer].append(timed(function)[0])
    best = min(theirs, key=lambda peer: min(theirs[peer]))
    return {
        "states": mdp.num_states,
        "ggpi_seconds": min(ours),
        "ggpi_error": float(np.abs(q - exact).max()),
        "quantecon_seconds": min(theirs[best]),
        "quantecon_method": best,
        "quantecon_error": float(np.abs(trials[best][1] - exact.max(axis=1)).max()),
        "reference_error_bound": error_bound,
        "speed_up": min(theirs[best]) / min(ours),
    }


def million() -> dict:
    """Q* and one exact policy evaluation with 10⁶ states, with the peak memory after each."""
    mdp, reward = problem(110)
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # noqa: E731
    result = {"states": mdp.num_states, "mdp_peak_gb": peak()}
    result["q_star_seconds"], q = timed(lambda: q_star(mdp, reward, GAMMA))
    result["q_star_peak_gb"] = peak()
    pi = np.eye(mdp.num_actions)[q.argmax(axis=1)]
    result["evaluation_seconds"], v = timed(lambda: mdp.v(pi, reward, GAMMA))
    result["evaluation_peak_gb"] = peak()
    return result | {"difference": float(np.abs(v - q.max(axis=1)).max())}


def main() -> None:
    if sys.argv[1:] == ["million"]:
        print(json.dumps(million()))
        return
    results = {}
    for name in GRIDS:
        results[name] = found = compare(name)
        print(
            f"{found['states']:>9,} states: ggpi {found['ggpi_seconds']:.3f} s, QuantEcon "
            f"{found['quantecon_seconds']:.3f} s ({found['quantecon_method']}): {found['speed_up']:.2f}× as fast"
        )
    child = subprocess.run([sys.executable, __file__, "million"], capture_output=True, text=True, check=True)
    results["1M"] = found = json.loads(child.stdout)
    print(
        f"{found['states']:>9,} states: Q* {found['q_star_seconds']:.1f} s, peak {found['q_star_peak_gb']:.1f} GB; "
        f"one evaluation {found['evaluation_seconds']:.1f} s, peak {found['evaluation_peak_gb']:.1f} GB"
    )
    path = Path(__file__).parent / "results" / "optimal.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
