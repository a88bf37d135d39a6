"""How near a stack of learned models is to the truth, one number per model.

    −ELBO      negative evidence lower bound of a VAE, always with KL weight 1, of true futures X_T ∼ μ^π_β(·|x, a)
    NLL        −log μ(X_T|x, a): exact for a flow, an importance-weighted bound for a VAE
    energy     energy distance of clouds at single pairs (x, a), in units of the truth's spread, mean over pairs

The first two are in nats of the raw state. Worlds here are deterministic, so their futures lie on curves and
surfaces, and a density can grow there without end: likelihoods rank models that share a form, the energy distance
compares all.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ggpi._jax.jit import jit
from ggpi.diagnosis.distances import energy_distance
from ggpi.ghm.vae import VAE
from ggpi.lab.models.benchmarks import World, pairs

NUM_CLOUDS, CLOUD = 16, 256


@dataclass(frozen=True, eq=False)
class Truth:
    """Pairs (x, a) with one true future each; and some of the pairs with a cloud of them."""

    state: np.ndarray
    action: np.ndarray
    future: np.ndarray
    clouds: np.ndarray
    """Futures [P, n, D] of the first P pairs."""
    scale: np.ndarray
    """Standard deviations of true displacements [D]."""


def simulated_truth(world: World, beta: float, count: int, seed: int) -> Truth:
    """`count` fresh pairs of π, and their futures."""
    state, action = pairs(world, count, seed)
    future = world.futures(state, action, beta, seed + 1)
    x, a = (np.repeat(part[:NUM_CLOUDS], CLOUD, axis=0) for part in (state, action))
    clouds = world.futures(x, a, beta, seed + 2).reshape(-1, CLOUD, state.shape[1])
    return Truth(state, action, future, clouds, np.maximum((future - state).std(axis=0), 1e-3))


def likelihoods(models: Any, truth: Truth) -> dict[str, np.ndarray]:
    """`nll` of each model, for VAEs also `negative_elbo` and `kl`, the latent's share in it."""
    score = _vae if isinstance(models, VAE) else _density
    x, a, y = (np.float32(part) for part in (truth.state, truth.action, truth.future))
    found = score(models, x, a, y, jax.random.key(0))
    return {name: np.asarray(values) for name, values in found.items()}


@jit
def _density(models, states, actions, futures, key):
    def one(model):
        return -jax.vmap(model.log_prob)(futures, states, actions).mean()

    return {"nll": jax.vmap(one)(models)}


@jit
def _vae(models, states, actions, futures, key):
    keys = jax.random.split(key, len(states))

    def one(model):
        noise = jax.random.normal(key, (len(states), model.loss_noise_size))
        elbo = jax.vmap(model.elbo)(states, actions, futures, noise)
        kl = jax.vmap(lambda *args: model._bound(*args)[1])(states, actions, futures, noise)
        bound = jax.vmap(lambda x, a, y, k: model.log_prob_bound(y, x, a, num_samples=32, key=k))
        nll = -bound(states, actions, futures, keys)
        return {"nll": nll.mean(), "negative_elbo": -elbo.mean(), "kl": kl.mean()}

    return jax.vmap(one)(models)


def energies(models: Any, truth: Truth) -> np.ndarray:
    """The mean energy distance of each model's clouds to the true ones."""
    drawn = np.asarray(draw(models, truth.state[:NUM_CLOUDS], truth.action[:NUM_CLOUDS], CLOUD))
    scale = truth.scale
    return np.array(
        [
            np.mean(
                [energy_distance(*each) for each in zip(of_model / scale, truth.clouds / scale, strict=True)]
            )
            for of_model in np.nan_to_num(drawn, nan=1e6, posinf=1e6, neginf=-1e6)
        ]
    )


def draw(models: Any, states: Any, actions: Any, count: int, seed: int = 0) -> np.ndarray:
    """`count` samples of each model at each pair [models, pairs, count, D]."""
    return np.asarray(_draw(models, np.float32(states), np.float32(actions), count, jax.random.key(seed)))


@jit
def _draw(models, states, actions, count, key):
    keys = jax.random.split(key, (len(states), count))

    def one(model):
        at_pair = jax.vmap(lambda x, a, k: model.sample(x, a, key=k), in_axes=(None, None, 0))
        return jax.vmap(at_pair)(states, actions, keys)

    return jax.vmap(one)(models)
