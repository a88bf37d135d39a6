"""A geometric horizon model against a one-step model unrolled for a Geometric(1−β) number of steps.

For perfect models the two are the same distribution, μ^π_β. Learned ones err in different places: a GHM
bootstraps, so its errors accumulate in training; those of a one-step model accumulate when it is unrolled. Both are
VAEs of one architecture, trained side by side on the same transitions; the one-step model is the GHM of β = 0.

Each sample is compared with the nearest state of many simulated trajectories from the same (x, a):

    error     the distance to it, in units of the true displacement's standard deviation
    horizon   the time at which the trajectory was there: the same rule for both models, because a sample of a
              GHM has no time of its own
    lost      the share of samples that are farther than 20 such units from every simulated state

Errors are medians over samples: a few lost ones would dominate a mean.

Fresh simulated futures, treated in the same way, show the smallest measurable error. For the unrolled model the
errors are also sorted by the number of steps that were taken.

As in the paper, the one-step model is better at short horizons and its error grows steadily, while that of the GHM
stays level. Where they cross depends on the environment and the budget: late in small, smooth ones, early on the
ant, where unrolled samples diverge.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from ggpi.diagnosis.distances import mean_energy, nearest
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.one_step import after
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.models.benchmarks import WORLDS, Benchmark, check_worlds, gather, pairs
from ggpi.lab.models.scores import draw
from ggpi.learning.fitting import fit
from ggpi.learning.recipe import CPU, PAPER, Recipe
from ggpi.types import Key

EDGES = (1, 2, 3, 4, 6, 9, 13, 19, 28, 61)
"""Horizons are sorted into 1, 2, 3, 4–5, 6–8, 9–12, 13–18, 19–27 and 28–60 steps."""
LONGEST = EDGES[-1] - 1
KINDS = ("ghm", "one-step", "truth")
"""What is measured: both models, and fresh simulated futures."""
LOST = 20.0
"""Samples farther than this from every simulated state are lost."""

KINDS = {"ghm": "GHM", "one-step": "one-step", "truth": "simulated"}
"""What is compared → words for tables."""


@dataclass(frozen=True)
class Config:
    worlds: tuple[str, ...] = ("point-mass", "pendulum")
    """Where: point-mass, pendulum, ant."""
    beta: float = 0.9
    """Horizon β."""
    recipe: Recipe = PAPER
    """How both models are trained."""
    num_shared: int = 1_000_000
    """Transitions of random switching among all policies."""
    num_own: int = 100_000
    """Transitions of the evaluated policy, for each seed."""
    num_pairs: int = 16
    """Pairs (x, a) that samples start from."""
    num_samples: int = 256
    """Samples of each model at each pair."""
    num_paths: int = 256
    """Simulated trajectories from each pair."""
    num_seeds: int = 100
    """Models of each kind."""
    together: int = 5
    """Seeds that are trained as one stack."""
    seed: int = 0
    """Random seed of data and of training."""

    def __post_init__(self):
        check_worlds(self.worlds)
        if self.num_seeds < 1 or self.num_seeds % self.together:
            raise ValueError(f"num_seeds is a multiple of together, got {self.num_seeds}, {self.together}")


PRESETS = {
    "tiny": Config(
        worlds=("point-mass",),
        recipe=Recipe(VAEConfig(width=32), steps=1_000, batch_size=128, learning_rate=3e-3),
        num_shared=6_400,
        num_own=6_400,
        num_pairs=8,
        num_samples=128,
        num_paths=64,
        num_seeds=1,
        together=1,
    ),
    "cpu": Config(
        recipe=replace(CPU, steps=3_000),
        num_shared=40_000,
        num_own=20_000,
        num_seeds=3,
        together=3,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Trains both models for every seed and measures their samples.

    Paper: Fig 17
    """
    groups = range(config.num_seeds // config.together)
    results = cells(
        {
            f"{world}/seeds-{group}": partial(compare, config, world, group)
            for world in config.worlds
            for group in groups
        }
    )
    return {
        "beta": config.beta,
        "steps": config.recipe.steps,
        "num_seeds": config.num_seeds,
        "edges": EDGES,
        "worlds": [
            {
                "world": world,
                "coordinates": [WORLDS[world]().spec.names[i] for i in WORLDS[world]().shown],
                "scatter": results[f"{world}/seeds-0"]["scatter"],
                **summarise([row for group in groups for row in results[f"{world}/seeds-{group}"]["seeds"]]),
            }
            for world in config.worlds
        ],
    }


def compare(config: Config, world_name: str, group: int) -> Metrics:
    """A stack of seeds in one world: errors by horizon, and samples to show."""
    world, seed = WORLDS[world_name](), config.seed + group
    data = gather(world, config.num_shared, config.num_own, config.together, seed)
    ghms = fit(
        [world.policy] * config.together,
        data,
        gamma=config.beta,
        alpha=1.0,
        recipe=config.recipe,
        key=jax.random.key(seed),
        spec=world.spec,
    )
    states, actions = pairs(world, config.num_pairs, seed + 1_000)
    times = np.random.default_rng(seed).geometric(1 - config.beta, (config.num_pairs, config.num_samples))
    times = np.minimum(times, LONGEST)
    samples = {
        "ghm": draw(ghms.models[0], states, actions, config.num_samples, seed),
        "one-step": unrolled(ghms.models[1], world, times, states, actions, seed),
    }
    return measure(config, world, states, actions, times, samples, seed)


def unrolled(
    models: AbstractGHM,
    world: Benchmark,
    times: np.ndarray,
    states: np.ndarray,
    actions: np.ndarray,
    seed: int,
) -> np.ndarray:
    """The state after `times` steps of each one-step model [models, pairs, samples, D]."""

    def one(model: AbstractGHM, x: Array, a: Array, steps: Array, key: Key) -> Array:
        return after(model, world.policy, steps, x, a, key=key)

    at_pair = jax.vmap(one, in_axes=(None, None, None, 0, 0))
    at_pairs = jax.vmap(at_pair, in_axes=(None, 0, 0, 0, 0))
    every = eqx.filter_jit(eqx.filter_vmap(at_pairs, in_axes=(eqx.if_array(0), None, None, None, None)))
    keys = jax.random.split(jax.random.key(seed), times.shape)
    return np.asarray(every(models, np.float32(states), np.float32(actions), times, keys))


def measure(
    config: Config,
    world: Benchmark,
    states: np.ndarray,
    actions: np.ndarray,
    times: np.ndarray,
    samples: dict[str, np.ndarray],
    seed: int,
) -> Metrics:
    """Distances of samples to simulated trajectories, sorted by horizon."""
    starts, first = (np.repeat(part, config.num_paths, axis=0) for part in (states, actions))
    paths = world.paths(starts, first, LONGEST, seed + 2_000)
    paths = paths.reshape(config.num_pairs, config.num_paths, LONGEST, -1)
    starts, first = (np.repeat(part, 2 * config.num_samples, axis=0) for part in (states, actions))
    futures = world.futures(starts, first, config.beta, seed + 3_000)
    true, again = np.split(futures.reshape(config.num_pairs, 2 * config.num_samples, -1), 2, axis=1)
    scale = np.maximum((true - states[:, None]).reshape(-1, true.shape[-1]).std(axis=0), 1e-3)
    rows = []
    for i in range(config.together):
        drawn = {**{kind: stack[i] for kind, stack in samples.items()}, "truth": again}
        row = {kind: _errors(cloud, true, paths, scale) for kind, cloud in drawn.items()}
        errors, _ = nearest(drawn["one-step"] / scale, paths / scale)
        row["one-step"]["by_steps"] = by_horizon(errors, times)
        rows.append(row)
    pair = most_spread(true / scale)
    shown = {**{kind: stack[0, pair] for kind, stack in samples.items()}, "truth": true[pair]}
    scatter = {kind: cloud[:, world.shown].round(4) for kind, cloud in shown.items()}
    return {"seeds": rows, "scatter": {**scatter, "start": states[pair, list(world.shown)]}}


def _errors(drawn: np.ndarray, true: np.ndarray, paths: np.ndarray, scale: np.ndarray) -> Metrics:
    """The errors of one model's samples, and how they depend on the horizon."""
    errors, horizons = nearest(drawn / scale, paths / scale)
    return {
        "by_horizon": by_horizon(errors, horizons),
        "error": np.median(errors),
        "lost": (errors > LOST).mean(),
        "energy": mean_energy(drawn, true, scale),
    }


def by_horizon(errors: np.ndarray, horizons: np.ndarray) -> list[float | None]:
    """The median error of the samples of each range of horizons; None where there are fewer than five."""
    bins = np.digitize(horizons.ravel(), EDGES)
    kept = [errors.ravel()[bins == place] for place in range(1, len(EDGES))]
    return [float(np.median(some)) if len(some) >= 5 else None for some in kept]


def most_spread(clouds: np.ndarray) -> int:
    """The pair whose futures are spread most: the one to show."""
    return int(clouds.std(axis=1).sum(axis=-1).argmax())


def summarise(seeds: list[Metrics]) -> Metrics:
    """Means over seeds, with intervals."""
    found: Metrics = {}
    for kind in KINDS:
        curves = ["by_horizon", *(["by_steps"] if kind == "one-step" else [])]
        found[kind] = {
            **{
                name: mean_interval([seed[kind][name] for seed in seeds])
                for name in ("error", "lost", "energy")
            },
            **{
                name: [_over_seeds(seed[kind][name][i] for seed in seeds) for i in range(len(EDGES) - 1)]
                for name in curves
            },
        }
    return found


def _over_seeds(values: Iterable[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    return mean_interval(known) if known else None
