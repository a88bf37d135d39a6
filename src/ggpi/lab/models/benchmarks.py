"""Environments on which learned models are compared with simulated futures, and the data from them.

A benchmark has an environment, policies, one of which is evaluated, and dynamics that step any state, so that true
futures X_T ∼ μ^π_β(·|x, a) can be simulated from any pair. A new one is a new entry of `WORLDS`.

Seeds are trained together, as one stack of models. Each has its own trajectories of the evaluated policy (CEMC
learns from nothing else), its own weights and its own minibatches; transitions of random switching among all
policies are shared by all. `behaviour` is therefore the seed, and −1 for the shared part.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.data import StateSpec, Transitions
from ggpi.envs import GymVectorEnv, Pendulum, PointMass
from ggpi.envs.maze import PointMaze
from ggpi.ghm.coordinates import Predict
from ggpi.policies import PolicyBank
from ggpi.policies.linear import direction_policies, maze_policies, pendulum_policies
from ggpi.rollout.acting import act_at
from ggpi.rollout.collection import collect
from ggpi.rollout.episodes import Simulation, follow
from ggpi.rollout.futures import simulate_futures
from ggpi.types import Policy

EPISODE = 60
"""Steps of an episode."""
SWITCH_EVERY = 40
"""Longest turn of a policy in the shared transitions."""
FIRST_STEPS = 20
"""Models are compared with the truth at pairs from this early part of π's trajectories."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """An environment whose futures can be simulated from any state."""

    env: Callable[[int, int], Any]
    """n copies of the environment, as `collect` takes it, and the length of episodes; the ant's have their own."""
    dynamics: Any
    """`step(states, actions, rng)` from any states [n, D]."""
    policies: tuple[Policy, ...]
    spec: StateSpec
    evaluated: int
    """The policy whose models are learned."""
    shown: tuple[int, int]
    """The two coordinates of the state that figures show."""
    predict: Predict = "change"
    """What models predict where an experiment does not say: the change of state, or the state itself."""
    longest: int | None = None
    """The most steps that an episode can have, where that is not for the caller of `env` to say."""

    @property
    def policy(self) -> Policy:
        return self.policies[self.evaluated]

    def futures(self, states: np.ndarray, actions: np.ndarray, beta: float, seed: int) -> np.ndarray:
        """X_T ∼ μ^π_β(·|x, a) for each row."""
        return simulate_futures(self.dynamics, self.policy, states, actions, beta, seed=seed)

    def paths(self, states: np.ndarray, actions: np.ndarray, num_steps: int, seed: int) -> np.ndarray:
        """X_1 … X_n for each row [rows, num_steps, D]."""
        key, bank = jax.random.key(seed), PolicyBank([self.policy])
        copies = Simulation(self.dynamics, states, np.random.default_rng(seed))

        def choose(t: int, now: np.ndarray) -> ArrayLike:
            return act_at(bank, np.int32(0), np.float32(now), key, np.uint32(t)) if t else actions

        return np.stack([step.next_state for step in follow(copies, choose, num_steps)], axis=1)


def point_mass(evaluated: int = 0) -> Benchmark:
    """The point mass, pushed to the right so gently that few futures are at the wall, where there is no density."""
    world = PointMass(force=0.005)
    return Benchmark(
        partial(GymVectorEnv, world),
        world,
        tuple(direction_policies()),
        world.spec,
        evaluated,
        (0, 1),
    )


def pendulum(evaluated: int = 0) -> Benchmark:
    """Gymnasium's Pendulum; swung up by pushes along its motion."""
    world = Pendulum()
    return Benchmark(
        partial(GymVectorEnv, world),
        world,
        tuple(pendulum_policies()),
        world.spec,
        evaluated,
        (1, 2),
    )


def ant(evaluated: int = 0) -> Benchmark:
    """The sparse-reward ant without a target, and its shipped policies."""
    from ggpi.envs.ant import SPEC, AntDynamics, SparseAntVector
    from ggpi.envs.ant.task import STEPS_WITHOUT
    from ggpi.storage.pretrained import pretrained

    return Benchmark(
        lambda n, _: SparseAntVector(n, target=None),
        AntDynamics(),
        tuple(pretrained("ant-policies")),
        SPEC,
        evaluated,
        (0, 1),
        longest=STEPS_WITHOUT[1],
    )


def umaze(evaluated: int = 0) -> Benchmark:
    """The maze and the policies of `maze-transfer`: four directions, each until a wall stops it."""
    from ggpi.lab.maze.tasks import policies

    world = PointMaze("UMaze")
    return _maze(world, tuple(policies()), evaluated)


def medium_maze(evaluated: int = 0) -> Benchmark:
    """A ball that walks the loop of the maze Medium, or runs in one of four directions."""
    from ggpi.lab.maze.patrol import MEDIUM_LOOP, patrol

    world = PointMaze("Medium")
    return _maze(world, (patrol(world, MEDIUM_LOOP), *maze_policies()), evaluated)


def _maze(world: PointMaze, policies: tuple[Policy, ...], evaluated: int) -> Benchmark:
    """Walls make places differ, so models predict the state itself."""
    return Benchmark(partial(GymVectorEnv, world), world, policies, world.spec, evaluated, (0, 1), "state")


WORLDS: dict[str, Callable[[], Benchmark]] = {
    "point-mass": point_mass,
    "pendulum": pendulum,
    "ant": ant,
    "umaze": umaze,
    "medium-maze": medium_maze,
}


def check_worlds(names: tuple[str, ...]) -> None:
    """Raises for names that are not in `WORLDS`."""
    unknown = [name for name in names if name not in WORLDS]
    if unknown or not names:
        raise ValueError(f"no environment is called {unknown}; there are {', '.join(WORLDS)}")


def gather(
    world: Benchmark, num_shared: int, num_own: int, num_seeds: int, seed: int, length: int = EPISODE
) -> Transitions:
    """Transitions of all policies, shared by all seeds, and trajectories of π, of this length, for each seed."""
    shared = collect(world.env(32, EPISODE), world.policies, num_shared, switch_every=SWITCH_EVERY, seed=seed)
    own = collect(world.env(32, length), [world.policy], num_own * num_seeds, seed=seed + 1)
    episodes = own.episode.max() + 1
    belongs = own.episode * num_seeds // episodes
    return joined([relabelled(shared, np.full(len(shared), -1)), relabelled(own, belongs)])


def relabelled(data: Transitions, behaviour: np.ndarray) -> Transitions:
    """The same transitions with other behaviour policies."""
    columns = {field.name: getattr(data, field.name) for field in fields(data)}
    return Transitions(**columns | {"behaviour": behaviour})


def joined(parts: list[Transitions]) -> Transitions:
    """Transitions one after the other, each part with episodes of its own."""
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(parts[0])
    }
    firsts = np.cumsum([0, *(part.episode.max() + 1 for part in parts[:-1])])
    columns["episode"] = np.concatenate([p.episode + first for p, first in zip(parts, firsts, strict=True)])
    return Transitions(**columns)


def pairs(world: Benchmark, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States and actions of the first steps of fresh trajectories of π, before walls and limits are reached."""
    data = collect(world.env(32, EPISODE), [world.policy], max(8 * count, 6400), seed=seed)
    rows = np.random.default_rng(seed).choice(np.flatnonzero(data.step < FIRST_STEPS), count, replace=False)
    return data.state[rows], data.action[rows]
