"""What planners cost: draws and time against the number of policies k, the depth m and the number of states S.

The mathematics: one sample of all plans of Π_m draws k + k² + … + kᵐ jumps, one for each distinct prefix; halving needs
at least the sum of that over its rounds, about three times as many; and a jump in a table takes the same time whatever
S is. So draws are compared with these formulas, and the time of a draw with that of the curve's cheapest row: the same
against S, and falling with k and m, because a decision has a fixed cost that more draws share. Times are the least of interleaved rounds, in one process.

The ant: one decision of halving with memory on 1,000 draws against exhaustive search with 2,000, which reach as many
targets (`ggpi run ant-transfer`), alone and in a batch of 64.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import ggpi
from ggpi import planning, rewards
from ggpi.envs.ant import SparseAntVector
from ggpi.planning import AbstractPlanner, BranchAndBound, Exhaustive, SequentialHalving, all_plans

GAMMA, ALPHA, SAMPLES, ROUNDS = 0.9, 1 / 9, 16, 7
POLICIES, DEPTHS, STATES = (2, 4, 8), (1, 2, 3, 4), (50, 200, 800)
RADIUS, BATCH = 0.3, 64
DRAWS, MEMORY, FACTOR = 1_000, 0.8, 4


def interleaved(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The least seconds of each piece of work."""
    for work in works.values():
        work()
    best = dict.fromkeys(works, np.inf)
    for _ in range(rounds):
        for name, work in works.items():
            begun = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - begun)
    return best


def models(num_policies: int, num_states: int) -> ggpi.GHMs:
    """Exact models of random policies in a random MDP."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(num_states, 0.1), (num_states, 2))
    policies = list(rng.dirichlet(np.ones(2), (num_policies, num_states)))
    return ggpi.exact_ghms(ggpi.TabularMDP(P), policies, GAMMA, ALPHA)


def prefixes(num_policies: int, depth: int) -> int:
    """k + k² + … + kᵐ."""
    return sum(num_policies**m for m in range(1, depth + 1))


def planners(num_policies: int, depth: int) -> dict[str, AbstractPlanner]:
    """Each with as many draws as exhaustive search takes."""
    plans = all_plans(num_policies, depth, ALPHA)
    budget = SAMPLES * prefixes(num_policies, depth)
    return {
        "exhaustive": Exhaustive(plans, SAMPLES, value_samples=1),
        "halving": SequentialHalving(budget + depth, plans, value_samples=1),
        "branch and bound": BranchAndBound(budget + depth, gsps=plans, batch=4, value_samples=1),
    }


def decision(planner: AbstractPlanner, ghms: ggpi.GHMs, reward: rewards.Reward) -> Callable[[], Any]:
    """One compiled decision."""
    decide = jax.jit(lambda key: planning.plan(planner, ghms, reward, 0, key=key))
    return lambda: jax.block_until_ready(decide(jax.random.key(0)))


def measure(num_policies: int, depth: int, num_states: int, rounds: int) -> dict[str, Any]:
    """Draws and times of one decision of each planner, and the draws that the mathematics gives."""
    ghms = models(num_policies, num_states)
    reward = rewards.arrival(np.random.default_rng(1).random(num_states))
    chosen = planners(num_policies, depth)
    works = {name: decision(planner, ghms, reward) for name, planner in chosen.items()}
    seconds = interleaved(works, rounds)
    draws = {name: int(work().draws) - depth for name, work in works.items()}
    nodes = prefixes(num_policies, depth)
    return {
        "policies": num_policies,
        "depth": depth,
        "states": num_states,
        "plans": num_policies**depth,
        "prefixes": nodes,
        "draws": draws,
        "draws_per_prefix": {name: count / nodes for name, count in draws.items()},
        "expected_draws_of_exhaustive": SAMPLES * nodes,
        "least_draws_per_prefix_of_halving": _least(chosen["halving"], num_policies, depth) / nodes,
        "nanoseconds_per_draw": {name: 1e9 * seconds[name] / draws[name] for name in works},
        "time_over_exhaustive": {name: seconds[name] / seconds["exhaustive"] for name in works},
    }


def _least(planner: Any, num_policies: int, depth: int) -> int:
    return planner.least(all_plans(num_policies, depth, ALPHA)) - depth


def curves(rounds: int = ROUNDS) -> dict[str, list[dict[str, Any]]]:
    """One axis at a time."""
    return {
        "policies": [measure(k, 3, 200, rounds) for k in POLICIES],
        "depth": [measure(4, m, 200, rounds) for m in DEPTHS],
        "states": [measure(4, 3, s, rounds) for s in STATES],
    }


def ant(rounds: int = 10) -> dict[str, float]:
    """How many times faster an adaptive decision is than an exhaustive one."""
    ghms = ggpi.pretrained("ant-ghms")
    states, info = SparseAntVector(BATCH).reset(seed=0)
    goals, found = info["target"], {}
    for name, rows in (("alone", slice(0, 1)), (f"of {BATCH}", slice(None))):
        reward = rewards.targets(goals[rows], RADIUS)
        halving = SequentialHalving(DRAWS, value_samples=1, factor=FACTOR, memory=MEMORY)
        every = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=100)
        some = ggpi.GGPIAgent(ghms, reward, depth=2, planner=halving)
        last = some.plan(states[rows], key=jax.random.key(0))
        works = {
            "exhaustive": lambda agent=every, x=states[rows]: agent.act(x, key=jax.random.key(1)),
            "halving": lambda agent=some, x=states[rows], last=last: agent.plan(
                x, warm=last, key=jax.random.key(1)
            ),
        }
        seconds = interleaved(works, rounds)
        found[f"exhaustive_over_halving_{name}"] = seconds["exhaustive"] / seconds["halving"]
        found |= {f"ms_{planner}_{name}": 1e3 * s / len(goals[rows]) for planner, s in seconds.items()}
    return found


def shown(found: dict[str, list[dict[str, Any]]]) -> str:
    """Rows as text, with what the mathematics gives beside what was measured."""
    lines = []
    for axis, rows in found.items():
        for name in rows[0]["draws"]:
            cheapest = min(row["nanoseconds_per_draw"][name] for row in rows)
            lines.append(f"{name} against {axis}")
            for row in rows:
                expected = f"{row['expected_draws_of_exhaustive']:,}"
                sign = "=" if name == "exhaustive" else "≤"
                lines.append(
                    f"  {row[axis]:>6,}: {row['draws'][name]:>9,} draws ({sign} {expected}), "
                    f"{row['nanoseconds_per_draw'][name]:7.0f} ns each, "
                    f"{row['nanoseconds_per_draw'][name] / cheapest:5.1f} times the cheapest"
                )
    return "\n".join(lines)


def main() -> None:
    result = {"ant": ant(), "curves": curves()}
    print(json.dumps(result["ant"], indent=1))
    print(shown(result["curves"]))
    path = Path(__file__).parent / "results" / "planners.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
