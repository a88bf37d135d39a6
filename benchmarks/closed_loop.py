"""The closed loop against optimal control on sparse grids of rooms, and its cost against k and S.

The grids of `optimal.py`, γ = .99, four policies that always move in one direction, α = .01. `q_star` starts from P and
the reward. The closed loop is timed with its models, as `exact_ghms` holds them once they were used, and from scratch.
Ratios are of times in one run; curves are of times alone. Memory is the peak of the process so far.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

import ggpi
from ggpi.envs import rooms
from ggpi.mdp.optimal import q_star

GAMMA, ALPHA = 0.99, 0.01
MILLION = 111
"""Rooms along a side of the grid of a million states."""


def timed(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(num_rooms: int, num_policies: int = 4, rounds: int = 3) -> dict:
    mdp = rooms(num_rooms, 9, 1 / 3)
    reward = mdp.indicator((1, num_rooms * 10 - 1))
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(num_policies)]
    found = {"q_star": [], "from_scratch": [], "known_models": []}
    for _ in range(rounds):
        ghms = ggpi.exact_ghms(mdp, policies, GAMMA, ALPHA)
        found["q_star"].append(timed(lambda: q_star(mdp, reward, GAMMA)))
        found["from_scratch"].append(timed(lambda ghms=ghms: ggpi.evaluate_closed_loop(ghms, reward)))
        found["known_models"].append(timed(lambda ghms=ghms: ggpi.evaluate_closed_loop(ghms, reward)))
    best = {f"{name}_seconds": float(np.min(times)) for name, times in found.items()}
    ratios = {
        f"{name}_ratio": best[f"{name}_seconds"] / best["q_star_seconds"]
        for name in ("from_scratch", "known_models")
    }
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"states": mdp.num_states, "policies": num_policies, **best, **ratios, "peak_gb": gigabytes}


def main() -> None:
    is_tiny = "--tiny" in sys.argv
    grids = (3, 4) if is_tiny else (5, 11, 20, 35)
    results = {
        "states": [*(measure(n) for n in grids), *([] if is_tiny else [measure(MILLION, rounds=1)])],
        "policies": [measure(grids[1], k) for k in (1, 2, 4)],
    }
    text = json.dumps(results, indent=1)
    print(text)
    if not is_tiny:
        (Path(__file__).parent / "results" / "closed_loop.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
