"""Episodes in OGBench's own environments: their reset, step, time limit and success.

An agent decides every `hold` steps and repeats its action in between. Starts and goals depend on the seed, the task and
the number of the episode alone, so all agents have the same ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

import gymnasium
import jax
import numpy as np
from scipy.stats import binomtest

from ggpi.envs.ogbench_maze import OGBenchMaze, make_ogbench, seeded
from ggpi.lab.agents import Decide
from ggpi.lab.cells import Metrics
from ggpi.progress import progress

CHOSEN, REPORTED = 2_000_000, 3_000_000
"""Seeds of the episodes that settings were chosen on, and of those that are reported."""


class Episode(NamedTuple):
    """What happened."""

    goal: np.ndarray
    steps: int
    """Steps to the goal; 0 where it was not reached."""
    path: np.ndarray
    """Observations [T + 1, 2]."""


def play(
    world: OGBenchMaze, decide: Decide, tasks: Sequence[int], episodes: int, seed: int, **limits: int
) -> list[Episode]:
    """So many episodes of each task, task by task within each round; `limits` are those of `episode`."""
    env = make_ogbench(world.maze)
    found = []
    with progress(episodes * len(tasks), "episodes") as advance:
        for number in range(episodes):
            for task in tasks:
                own = np.random.SeedSequence([seed, task, number]).generate_state(1)[0]
                found.append(episode(env, decide, task, int(own), **limits))
                advance(len(found), f"{sum(one.steps > 0 for one in found)} reached")
    env.close()
    return found


def episode(
    env: gymnasium.Env, decide: Decide, task: int, seed: int, *, hold: int = 1, max_steps: int = 1_000
) -> Episode:
    """One episode of a task."""
    key = jax.random.key(seed)
    with seeded(seed):
        state, info = env.reset(seed=seed, options={"task_id": task})
        goal, path, action = np.asarray(info["goal"], float), [state], np.zeros(2)
        for t in range(max_steps):
            if t % hold == 0:
                action = decide(state[None], goal[None], jax.random.fold_in(key, t))[0]
            state, _, terminated, truncated, info = env.step(action)
            path.append(state)
            if terminated or truncated:
                break
    return Episode(goal, len(path) - 1 if info.get("success") else 0, np.array(path))


def success(steps: np.ndarray) -> Metrics:
    """The share of episodes that reached their goal, with an exact 95% interval, and the mean steps of these."""
    reached = np.asarray(steps) > 0
    interval = binomtest(int(reached.sum()), reached.size).proportion_ci()
    return {
        "mean": float(reached.mean()),
        "low": float(interval.low),
        "high": float(interval.high),
        "steps": float(np.asarray(steps)[reached].mean()) if reached.any() else None,
    }
