"""How well walkers of OGBench's ant walk: their speed in the open, and how many lie on their backs after a while."""

from collections.abc import Callable, Sequence

import jax
import numpy as np
from scipy.stats import binomtest

from ggpi.envs.ant.observation import observe
from ggpi.envs.ant.ogbench_ground import SUBSTEPS, ogbench_ground
from ggpi.envs.directions import EIGHT
from ggpi.envs.ogbench_bodies import Ant
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.agents import sample_bank
from ggpi.lab.cells import Metrics
from ggpi.lab.pretraining.trials import one_each, random_switches
from ggpi.policies.bank import PolicyBank
from ggpi.types import Policy

UP_Z = 8
"""Of `observe`."""
TRAINED = 13 * 60.0
"""Seconds, about, that the shipped walkers were trained on one core by `ggpi pretrain ogbench-ant`."""
TURN = 40
"""Longest turn while switching at random."""
STEADY = 50
"""Steps until the speed is measured, and for how many more."""


def measured(world: OGBenchMaze, policies: Sequence[Policy], num_ants: int, steps: int, seed: int) -> Metrics:
    """Units per step in the open; ants on their backs after so many steps of random switching, there and in a maze."""
    rng, bank = np.random.default_rng(seed), PolicyBank(policies)
    plane = Ant(ogbench_ground("RK4", 0).model, SUBSTEPS, 2)
    alone = one_each(len(policies), 2 * STEADY, max(1, num_ants // len(policies)))
    states = plane.standing(np.zeros((alone.shape[1], 2)), rng)
    before = walk(bank, plane.step, states, alone[:STEADY], seed)
    moved = walk(bank, plane.step, before, alone[STEADY:], seed + 1)[:, :2] - before[:, :2]
    speed = (moved * EIGHT[alone[0]]).sum(axis=1) / STEADY
    turns = random_switches(len(policies), TURN, steps, num_ants, seed)
    places = np.zeros((num_ants, 2))
    ends = {
        "in the open": walk(bank, plane.step, plane.standing(places, rng), turns, seed + 2),
        "in the maze": walk(bank, world.step, world.start(num_ants, rng), turns, seed + 2),
    }
    return {
        "speed": float(speed.mean()),
        "slowest": float(speed.min()),
        "ants": num_ants,
        "steps": steps,
        "down": {name: _share(on_backs(states)) for name, states in ends.items()},
    }


def walk(
    bank: PolicyBank,
    step: Callable[[np.ndarray, np.ndarray], np.ndarray],
    states: np.ndarray,
    turns: np.ndarray,
    seed: int,
) -> np.ndarray:
    """The last states of ants [n, 29] that follow policies `turns` [T, n]."""
    for index, key in zip(turns, jax.random.split(jax.random.key(seed), len(turns)), strict=True):
        states = step(states, np.asarray(sample_bank(bank, index, states.astype(np.float32), key)))
    return states


def on_backs(states: np.ndarray) -> np.ndarray:
    """Which of ants [n, 29] lie on their backs."""
    return observe(states[:, :15], states[:, 15:])[:, UP_Z] < 0


def _share(down: np.ndarray) -> Metrics:
    interval = binomtest(int(down.sum()), len(down)).proportion_ci()
    return {"mean": float(down.mean()), "low": float(interval.low), "high": float(interval.high)}
