"""GHM samples per second of `evaluate_pairs_sampled` on four-rooms, with and without counting shared prefixes.

Perfect models, γ = .95, α = .1, all of Π_m of the four constant policies at all pairs. Compilation is not
timed. "Drawn" are samples that were made; "used" are those that the estimates of all GSPs rest on, each GSP
counted on its own as Algorithm 1 does.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import jax

import ggpi
from ggpi.evaluation import evaluate_pairs_sampled, ghm_draws

GAMMA, ALPHA, NUM_SAMPLES, ROUNDS = 0.95, 0.1, 300, 5


def measure(mdp, ghms, depth: int) -> dict:
    gsps = ggpi.compositions(mdp.num_actions, depth, ALPHA)
    reward = mdp.indicator((1, 11))
    seconds = []
    for round in range(ROUNDS + 1):
        start = time.perf_counter()
        evaluate_pairs_sampled(gsps, ghms, reward, num_samples=NUM_SAMPLES, key=jax.random.key(round))
        seconds.append(time.perf_counter() - start)
    pairs = mdp.kernel.shape[0] * NUM_SAMPLES
    drawn, used = ghm_draws(gsps) * pairs, sum(map(len, gsps)) * pairs
    best = min(seconds[1:])
    return {
        "gsps": len(gsps),
        "seconds": best,
        "first_call_seconds": seconds[0],
        "drawn_per_second": drawn / best,
        "used_per_second": used / best,
        "sharing": used / drawn,
    }


def main() -> None:
    mdp = ggpi.envs.four_rooms()
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(mdp.num_actions)]
    ghms = ggpi.exact_ghms(mdp, policies, gamma=GAMMA, alpha=ALPHA)
    results = {}
    for depth in (1, 2, 3):
        results[f"depth {depth}"] = found = measure(mdp, ghms, depth)
        print(
            f"Π_{depth}, {found['gsps']} GSPs: {found['drawn_per_second'] / 1e6:.1f} million GHM samples drawn and "
            f"{found['used_per_second'] / 1e6:.1f} million used per second ({found['sharing']:.2f}× by sharing)"
        )
    path = Path(__file__).parent / "results" / "sampled.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
