"""How close a stack of learned models is to simulated futures, one number per model.

−ELBO, NLL    of true futures X_T ∼ μ^π_β(·|x, a), as in `ggpi.diagnosis.likelihood`
energy        energy distance of clouds at single pairs (x, a), in units of the truth's spread, mean over pairs
"""

from typing import NamedTuple

import jax
import numpy as np

from ggpi.diagnosis.distances import mean_energy
from ggpi.diagnosis.likelihood import likelihood_each
from ggpi.diagnosis.samples import draw_each
from ggpi.diagnosis.truth import Truth, scales, simulate_pairs
from ggpi.ghm.abstract import AbstractGHM
from ggpi.lab.models.benchmarks import Benchmark, pairs

NUM_CLOUDS, CLOUD = 16, 256
NUM_LATENTS = 32
"""Latents of which the NLL of a VAE is a bound."""


class Simulated(NamedTuple):
    """True futures of many pairs, one each; and clouds of them at the first few pairs."""

    pairs: Truth
    clouds: Truth


def simulated_truth(world: Benchmark, beta: float, count: int, seed: int) -> Simulated:
    """`count` fresh pairs of π, and their futures."""
    state, action = pairs(world, count, seed)
    some = state[:NUM_CLOUDS], action[:NUM_CLOUDS]
    single = simulate_pairs(world.dynamics, world.policy, state, action, beta, 1, seed=seed + 1)
    clouds = simulate_pairs(world.dynamics, world.policy, *some, beta, CLOUD, seed=seed + 2)
    return Simulated(Truth(state, action, single), Truth(*some, clouds))


def likelihoods(models: AbstractGHM, truth: Simulated) -> dict[str, np.ndarray]:
    """`nll` of each model, for VAEs also `negative_elbo` and `kl`."""
    return likelihood_each(models, truth.pairs, num_samples=NUM_LATENTS, key=jax.random.key(0))


def energies(models: AbstractGHM, truth: Simulated) -> np.ndarray:
    """The mean energy distance of each model's clouds to the true ones."""
    _, scale = scales(truth.pairs)
    drawn = draw(models, truth.clouds.state, truth.clouds.action, CLOUD)
    finite = np.nan_to_num(drawn, nan=1e6, posinf=1e6, neginf=-1e6)
    return np.array([mean_energy(of_model, truth.clouds.future, scale) for of_model in finite])


def draw(
    models: AbstractGHM, states: np.ndarray, actions: np.ndarray, count: int, seed: int = 0
) -> np.ndarray:
    """`count` samples of each model at each pair [models, pairs, count, D]."""
    return draw_each(models, states, actions, count, key=jax.random.key(seed))
