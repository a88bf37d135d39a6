"""Episodes in OGBench's own environments: their reset, step, time limit and success.

An agent decides every `hold` steps. In a point maze it gives an action, which is repeated in between; in an ant maze it
chooses one of the policies, which acts in every step. Starts and goals depend on the seed, the task and
the number of the episode alone, so all agents have the same ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

import gymnasium
import jax
import numpy as np
from scipy.stats import binomtest

from ggpi.envs.ogbench_maze import OGBenchMaze, make_ogbench, seeded
from ggpi.lab.agents import Decide, sample_bank
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Metrics
from ggpi.policies.bank import PolicyBank
from ggpi.progress import progress

CHOSEN, REPORTED = 2_000_000, 3_000_000
"""Seeds of the episodes that settings were chosen on, and of those that are reported."""


class Episode(NamedTuple):
    """What happened."""

    goal: np.ndarray
    steps: int
    """Steps to the goal; 0 where it was not reached."""
    path: np.ndarray
    """Places [T + 1, 2]."""
    states: np.ndarray
    """Observations [T + 1, D]."""


def play(
    world: OGBenchMaze,
    decide: Decide,
    tasks: Sequence[int],
    episodes: int,
    seed: int,
    bank: PolicyBank | None = None,
    **limits: int,
) -> list[Episode]:
    """So many episodes of each task, task by task within each round; `limits` and `bank` are those of `episode`."""
    env = make_ogbench(world.maze)
    found = []
    with progress(episodes * len(tasks), "episodes") as advance:
        for number in range(episodes):
            for task in tasks:
                own = np.random.SeedSequence([seed, task, number]).generate_state(1)[0]
                found.append(episode(env, decide, task, int(own), bank, **limits))
                advance(len(found), f"{sum(one.steps > 0 for one in found)} reached")
    env.close()
    return found


def episode(
    env: gymnasium.Env,
    decide: Decide,
    task: int,
    seed: int,
    bank: PolicyBank | None = None,
    *,
    hold: int = 1,
    max_steps: int = 1_000,
) -> Episode:
    """One episode of a task; with a bank of policies, `decide` gives indices of these."""
    key = jax.random.key(seed)
    with seeded(seed):
        state, info = env.reset(seed=seed, options={"task_id": task})
        goal, path, chosen = np.asarray(info["goal"], float)[:2], [state], np.zeros((1, 2))
        for t in range(max_steps):
            own = jax.random.fold_in(key, t)
            if t % hold == 0:
                chosen = decide(state[None], goal[None], own)
            action = (
                chosen if bank is None else sample_bank(bank, chosen, state[None].astype(np.float32), own)
            )
            state, _, terminated, truncated, info = env.step(np.asarray(action)[0])
            path.append(state)
            if terminated or truncated:
                break
    states = np.array(path)
    return Episode(goal, len(path) - 1 if info.get("success") else 0, states[:, :2], states)


def success(steps: np.ndarray) -> Metrics:
    """The share of episodes that reached their goal, with an exact 95% interval, and the mean steps of these.

    The interval of the steps is a bootstrap over these episodes; None where there are none.
    """
    steps = np.asarray(steps)
    reached = steps > 0
    interval = binomtest(int(reached.sum()), reached.size).proportion_ci()
    return {
        "mean": float(reached.mean()),
        "low": float(interval.low),
        "high": float(interval.high),
        "steps": mean_interval(steps[reached]) if reached.any() else None,
    }


def by_task(parts: list[Metrics], tasks: list[int]) -> Metrics:
    """Success in each task and in all of them."""
    steps = np.concatenate([np.reshape(part["steps"], (-1, len(tasks))) for part in parts])
    return {str(task): success(steps[:, i]) for i, task in enumerate(tasks)} | {"all": success(steps.ravel())}


def share_words(share: Metrics, digits: int = 1) -> str:
    """A share with its interval, in %."""
    mean, low, high = (f"{100 * share[part]:.{digits}f}" for part in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def steps_words(steps: Metrics | None) -> str:
    """Mean steps with their interval; where no goal was reached, a dash."""
    return "-" if steps is None else f"{steps['mean']:.0f} [{steps['low']:.0f}, {steps['high']:.0f}]"
