"""Parts of `td-flows`: data and true futures, each made once for all methods, and the scores of stacked models.

emd          exact EMD to as many true futures, in spreads of the displacement
value_mse    (V̂ − V)², the mean over random rewards, unbiased
impossible   the share of samples inside walls, where the environment can tell
nll          −log μ of true futures per dimension; a bound for VAEs
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import jax
import numpy as np
from jaxtyping import Float

from ggpi.data import Transitions
from ggpi.diagnosis.distances import emds
from ggpi.diagnosis.likelihood import likelihood_each
from ggpi.diagnosis.measures import clouds, value_errors
from ggpi.diagnosis.samples import draw_each
from ggpi.diagnosis.truth import Truth, possible_in, simulate_pairs
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Metrics
from ggpi.lab.models.benchmarks import WORLDS, Benchmark, gather, pairs
from ggpi.learning.targets import TAIL, needed_steps

SCORED = 32
"""Futures of each start on which the NLL is taken."""
SHOWN = 200
"""Samples that the figure shows."""
FAR = 1e3
"""Where a sample that is not finite is put."""

Scores = dict[str, Float[np.ndarray, "K P"]]
"""By name, of K models at P starts."""


@cache
def benchmark(name: str) -> Benchmark:
    """The environment; one object for all cells, so that they share compiled programs."""
    return WORLDS[name]()


def check_recorded(problems: Sequence[tuple[str, float]]) -> None:
    """Raises if MC-CFM is to learn from episodes that are too short for a horizon."""
    for world, gamma in problems:
        longest, needed = benchmark(world).longest, needed_steps([gamma])
        if longest is not None and longest < needed:
            raise ValueError(
                f"mc-cfm needs trajectories of {needed} steps at γ = {gamma:g}, but episodes of {world} end after at "
                f"most {longest}; leave it out of losses"
            )


@cache
def transitions(
    world: str, gamma: float, num_shared: int, num_own: int, num_seeds: int, seed: int
) -> Transitions:
    """The data of all methods; trajectories of π are half as long again as MC-CFM needs at least."""
    length = math.ceil(1.5 * math.log(TAIL) / math.log(gamma))
    return gather(benchmark(world), num_shared, num_own, num_seeds, seed, length)


@cache
def true_clouds(world: str, gamma: float, num_starts: int, num_samples: int, seed: int) -> Truth:
    """Two sets of true futures of fresh pairs of π."""
    found = benchmark(world)
    state, action = pairs(found, num_starts, seed)
    future, again = (
        simulate_pairs(found.dynamics, found.policy, state, action, gamma, num_samples, seed=seed + i)
        for i in (1, 2)
    )
    return Truth(state, action, future, again, possible=possible_in(found.dynamics))


def floors(world: str, gamma: float, truth: Truth) -> Metrics:
    """What the second set of true futures scores, and some of the first."""
    assert truth.again is not None
    shown = benchmark(world).shown
    found = scores(truth, truth.again[None], gamma)
    return {name: float(values.mean()) for name, values in found.items()} | {
        "coordinates": [benchmark(world).spec.names[i] for i in shown],
        "start": truth.state[0, list(shown)],
        "shown": points(world, truth.future[0]),
    }


def scores_of(models: AbstractGHM, truth: Truth, gamma: float) -> Scores:
    """The scores of samples of stacked models."""
    count = truth.future.shape[1]
    return scores(truth, draw_each(models, truth.state, truth.action, count, key=jax.random.key(0)), gamma)


def scores(truth: Truth, drawn: Float[np.ndarray, "K P n D"], gamma: float) -> Scores:
    """EMD, MSE(V) and the share of impossible samples."""
    true, drawn = clouds(truth, truth.future), finite(drawn)
    found = {
        "emd": np.stack([emds(true, clouds(truth, futures)) for futures in drawn]),
        "value_mse": np.stack([value_errors(truth, futures, gamma) for futures in drawn]),
    }
    if truth.possible is not None:
        found["impossible"] = 1 - truth.possible(drawn).mean(axis=-1)
    return found


def finished(
    models: AbstractGHM, truth: Truth, gamma: float, found: Scores, solver_steps: Sequence[int]
) -> Metrics:
    """The scores at the end, with intervals over seeds; and those with other numbers of solver steps."""
    seeds = {name: values.mean(axis=1) for name, values in found.items()}
    few = replace(truth, future=truth.future[:, :SCORED])
    likelihoods = likelihood_each(models, few, key=jax.random.key(0))
    if "nll" in likelihoods:
        seeds["nll"] = likelihoods["nll"] / truth.state.shape[1]
    solver = {}
    for steps in solver_steps if isinstance(models, AbstractPathGHM) else ():
        again = scores_of(replace(models, num_steps=steps), truth, gamma)
        solver[steps] = {name: mean_interval(again[name].mean(axis=1)) for name in ("emd", "value_mse")}
    return {
        "final": {name: mean_interval(finite(values)) for name, values in seeds.items()},
        "solver": solver,
    }


def finite(values: np.ndarray) -> np.ndarray:
    """Values with a large number in place of NaN and infinity."""
    return np.nan_to_num(np.asarray(values, float), nan=FAR, posinf=FAR, neginf=-FAR)


def points(world: str, states: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "m 2"]:
    """Some of the states, in the two coordinates that figures show."""
    return np.round(finite(states[:SHOWN, list(benchmark(world).shown)]), 3)


class Stopwatch:
    """Seconds on the clock and of the cores, while it runs."""

    def __init__(self):
        self.wall = self.cores = 0.0

    def start(self) -> None:
        self._begun = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._begun[0]
        self.cores += time.process_time() - self._begun[1]
