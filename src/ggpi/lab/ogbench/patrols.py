"""Patrols of `ogbench-errands`: rooms are visited in turn, round after round, begun in any of them.

An agent remembers which room is next, one bit of memory for two rooms; `errand_rewards.patrol_weights` derives its
rewards. Beside it: the same rooms, all the time alike and without memory (`no memory`), and a guide who knows the maze.
"""

from collections.abc import Callable

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.maze.tasks import guide, route
from ggpi.lab.ogbench.errand_rewards import patrol_weights, rooms
from ggpi.planning import JumpyGraph
from ggpi.policies import ogbench_policies
from ggpi.types import Key

PATROLS = ("in turn", "no memory", "guide")
Choose = Callable[[np.ndarray, np.ndarray, Key], np.ndarray]
"""(state [2], which rooms count now [n], key) ↦ action [2]."""


def patroller(
    name: str, first: GGPIAgent, graph: JumpyGraph, world: OGBenchMaze, places: np.ndarray
) -> Choose:
    """An agent that visits rooms in turn.

    Args:
        name: of the agent.
        first: an agent whose reward is still to be given.
        graph: its graph.
        world: the maze.
        places: the middles of the rooms [n, 2].
    """
    if name == "guide":
        return guided(world, places)
    if name == "no memory":
        mine = first.with_reward(rooms(places, np.ones(len(places)), world.radius))
        return lambda state, wanted, key: mine.act(state.astype(np.float32), key=key)
    weights = patrol_weights(graph.landmarks, graph.solve, places, world.radius)
    agents: dict[bytes, GGPIAgent] = {}

    def choose(state: np.ndarray, wanted: np.ndarray, key: Key) -> np.ndarray:
        if wanted.tobytes() not in agents:
            agents[wanted.tobytes()] = first.with_reward(rooms(places, weights * wanted, world.radius))
        return agents[wanted.tobytes()].act(state.astype(np.float32), key=key)

    return choose


def guided(world: OGBenchMaze, places: np.ndarray) -> Choose:
    """Knows the maze: towards the nearest of the rooms that count now."""
    decide = guide(world, ogbench_policies(), world.safe)

    def choose(state: np.ndarray, wanted: np.ndarray, key: Key) -> np.ndarray:
        ways = [len(route(world.safe, world.cell(state), world.cell(place))) for place in places[wanted]]
        return decide(state[None], places[wanted][np.argmin(ways)][None], key)[0]

    return choose


def patrol(
    world: OGBenchMaze, choose: Choose, start: np.ndarray, places: np.ndarray, seed: int, **limits: int
) -> tuple[int, np.ndarray]:
    """How many rooms were visited in turn, and the path [T + 1, 2].

    Args:
        world: the maze.
        choose: the agent.
        start: where it begins.
        places: the middles of the rooms [n, 2].
        seed: of the episode.
        limits: `max_steps`, and `hold` steps between decisions.
    """
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    wanted, visits, path, action = np.ones(len(places), bool), 0, [start], np.zeros(2)
    for t in range(limits["max_steps"]):
        if t % limits["hold"] == 0:
            action = choose(path[-1], wanted, jax.random.fold_in(key, t))
        path.append(world.step(path[-1][None], action[None], rng)[0])
        wanted, count = visited(wanted, np.linalg.norm(path[-1] - places, axis=1) <= world.radius)
        visits += count
    return visits, np.array(path)


def visited(wanted: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, int]:
    """Which rooms count next, and how many visits that was: after room i only the next one counts."""
    entered = np.flatnonzero(wanted & inside)
    if not len(entered):
        return wanted, 0
    return np.arange(len(wanted)) == (entered[0] + 1) % len(wanted), 1
