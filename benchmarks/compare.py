"""Two checkouts side by side: the same work through public names, in turns, on one machine.

    python benchmarks/compare.py OLD [NEW]

Each checkout runs in processes of its own, old and new in turns, and of each piece of work the shortest time counts.
Prints seconds and their ratio new / old: below 1 the new one is faster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

TURNS, ROUNDS = 3, 5


def timed(work, rounds: int = ROUNDS) -> float:
    """The shortest of some rounds, after one that compiles."""
    work()
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def exact() -> dict[str, float]:
    """Models, values and improvement in four-rooms, and policy iteration."""
    import ggpi

    mdp = ggpi.envs.four_rooms()
    reward = ggpi.rewards.state(mdp.indicator((1, 11)))
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(4)]
    gsps = ggpi.compositions(4, 4, 1 / 9)
    ghms = ggpi.exact_ghms(mdp, policies, gamma=0.9, alpha=1 / 9)
    q = ggpi.evaluate(gsps, ghms, reward)
    return {
        "exact_ghms": timed(lambda: ggpi.exact_ghms(mdp, policies, gamma=0.9, alpha=1 / 9)),
        "evaluate, depth 4": timed(lambda: ggpi.evaluate(gsps, ghms, reward)),
        "improve": timed(lambda: ggpi.improve(q)),
    }


def iterating() -> dict[str, float]:
    """Sampled policy iteration: every iteration has a larger set."""
    import jax

    import ggpi
    from ggpi import improvement

    mdp = ggpi.envs.four_rooms()
    reward = mdp.indicator((1, 11))
    run = getattr(improvement, "policy_iteration_sampled", None) or ggpi.policy_iteration

    def work(depth: int) -> None:
        options = {"num_samples": 100, "depth": depth, "newest_last": True, "max_iterations": 8}
        run(mdp, reward, 0.9, 1 / 9, **options, key=jax.random.key(0))

    return {f"8 iterations, depth {depth}": timed(lambda depth=depth: work(depth)) for depth in (2, 3)}


def planning() -> dict[str, float]:
    """Plans with the ant's shipped models, for one state and for a batch."""
    import jax
    import numpy as np

    import ggpi

    def near(state):
        return (state[0] - 2.0) ** 2 + state[1] ** 2 < 1.0

    agent = ggpi.GGPIAgent(ggpi.pretrained("ant-ghms"), ggpi.rewards.arrival(near), depth=2, num_samples=100)
    states = np.random.default_rng(0).normal(size=(16, 35)).astype(np.float32)
    key = jax.random.key(0)
    return {
        "plan, one state": timed(lambda: agent.act(states[0], key=key), 30),
        "plan, 16 states": timed(lambda: agent.act(states, key=key), 10),
    }


def training() -> dict[str, float]:
    """A thousand steps of two models, less those that compile."""
    import gymnasium
    import jax
    import numpy as np

    import ggpi

    rng = np.random.default_rng(0)
    states = rng.normal(size=(20_001, 4)).astype(np.float32)
    ends = np.arange(20_000) % 100 == 99
    data = ggpi.Transitions(
        state=states[:-1],
        action=rng.normal(size=(20_000, 2)).astype(np.float32),
        next_state=states[1:],
        terminated=np.zeros(20_000, bool),
        truncated=ends,
        behaviour=np.zeros(20_000, np.int32),
        episode=np.arange(20_000) // 100,
        step=np.arange(20_000) % 100,
    )
    space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    policy = ggpi.policy_from(lambda state: np.zeros(2, np.float32), space)
    call = {"gamma": 0.9, "alpha": 0.1, "key": jax.random.key(0)}
    short, long = (timed(lambda n=n: ggpi.fit([policy], data, steps=n, **call), 2) for n in (250, 1250))
    return {"fit, 1000 steps": long - short}


def starting() -> dict[str, float]:
    """A process that prints the help text."""
    command = [sys.executable, "-m", "ggpi", "--help"]
    return {"ggpi --help": timed(lambda: subprocess.run(command, check=True, capture_output=True))}


def measured(checkout: Path) -> dict[str, float]:
    """All times of a checkout, in a new process."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--measure"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(old: Path, new: Path) -> None:
    """Measures in turns, and prints."""
    times: dict[Path, list[dict[str, float]]] = {old: [], new: []}
    for _ in range(TURNS):
        for checkout in (old, new):
            times[checkout].append(measured(checkout))
    for name in times[old][0]:
        before, after = (min(turn[name] for turn in times[checkout]) for checkout in (old, new))
        print(f"{name:22} {before:10.4f} s {after:10.4f} s   {after / before:.2f}")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(exact() | iterating() | planning() | training() | starting()))
    else:
        given = [Path(argument).resolve() for argument in sys.argv[1:]]
        main(given[0], given[1] if len(given) > 1 else Path(__file__).parents[1])
