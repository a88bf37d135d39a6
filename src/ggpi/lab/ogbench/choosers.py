"""Agents of ant mazes: they choose one of the policies, which then acts until the next decision.

Each is (states [b, D], goals [b, 2], key) ↦ indices of policies [b].
"""

from typing import Any

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.agent.choosing import Plan
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.ghm.base import GHMs
from ggpi.lab.agents import Decide
from ggpi.lab.maze.tasks import towards
from ggpi.planning import AbstractPlanner
from ggpi.rewards import target
from ggpi.types import Key


def planner(ghms: GHMs, radius: float, **options: Any) -> Decide:
    """GGPI: the head of the best plan. Options are those of `GGPIAgent`."""
    first, solved = GGPIAgent(ghms, target((0.0, 0.0), radius), **options), dict[bytes, GGPIAgent]()

    def choose(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        heads = []
        for state, goal in zip(states.astype(np.float32), goals, strict=True):
            if goal.tobytes() not in solved:
                solved.clear()  # one goal at a time
                solved[goal.tobytes()] = first.with_reward(target(goal, radius))
            plan = solved[goal.tobytes()].plan(state, key=key)
            heads.append(plan.gsps[int(plan.best)].head)
        return np.array(heads)

    return choose


def warm_planner(ghms: GHMs, depth: int | None, radius: float, search: AbstractPlanner) -> Decide:
    """GGPI with an adaptive planner that starts from the last decision of the episode; each has a goal of its own."""
    first = GGPIAgent(ghms, target((0.0, 0.0), radius), depth=depth, planner=search)
    episode: dict[bytes, tuple[GGPIAgent, Plan | None]] = {}

    def choose(states: np.ndarray, goals: np.ndarray, key: Key) -> np.ndarray:
        heads = []
        for state, goal in zip(states.astype(np.float32), goals, strict=True):
            name = goal.tobytes()
            if name not in episode:
                episode.clear()
                episode[name] = first.with_reward(target(goal, radius)), None
            agent, last = episode[name]
            plan = agent.plan(state, warm=last, key=key)
            episode[name] = agent, plan
            heads.append(plan.gsps[int(plan.best)].head)
        return np.array(heads)

    return choose


def alone(policy: int) -> Decide:
    """One policy all the time."""
    return lambda states, goals, key: np.full(len(states), policy)


def random_switching(num_policies: int) -> Decide:
    """A policy drawn at random at each decision, whatever the goal."""
    return lambda states, goals, key: np.asarray(jax.random.randint(key, (len(states),), 0, num_policies))


def guide(world: OGBenchMaze) -> Decide:
    """Knows the maze: towards the next cell's middle of the shortest route, along it."""
    return lambda states, goals, key: np.array(
        [towards(world, world.safe, *pair) for pair in zip(states[:, :2], goals, strict=True)]
    )
