"""Log-likelihoods of true futures under a model, exact or as bounds; in nats of the raw state, lower is better.

    nll              −log μ(X|x, a): exact for a density, an importance-weighted bound for a model with a latent
    negative_elbo    −ELBO, always with KL weight 1, whatever the model was trained with
    kl               the latent's share of it

Where futures lie on curves or surfaces, as those of deterministic environments do, a density can grow there without
bound: likelihoods rank models of one form, distances of samples compare all.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.jit import jit
from ggpi.diagnosis.samples import typed
from ggpi.diagnosis.truth import Truth, scales
from ggpi.ghm.abstract import AbstractDensity
from ggpi.types import GHM, Key

NUM_SAMPLES = 64
"""Latents of which the bound on log μ is a mean."""


@runtime_checkable
class LatentGHM(Protocol):
    """A model with a latent variable, such as a VAE: log μ has lower bounds."""

    @property
    def loss_noise_size(self) -> int: ...

    def elbo(self, state: Array, action: Array, target: Array, noise: Array) -> Array:
        """A sample of the evidence lower bound of log μ(target|x, a)."""
        ...

    def divergence(self, state: Array, action: Array, target: Array) -> Array:
        """The KL divergence of the posterior from the prior, a part of the bound."""
        ...

    def log_prob_bound(
        self, target: Array, state: Array, action: Array, *, num_samples: int = 64, key: Key
    ) -> Array:
        """A tighter lower bound of log μ(target|x, a), from `num_samples` latents."""
        ...


def row_scores(
    model: GHM, states: Array, actions: Array, targets: Array, key: Key, num_samples: int
) -> dict[str, Array]:
    """The scores that a model has, of each row [n]; none for models that can only be sampled."""
    if isinstance(model, AbstractDensity):
        return {"nll": -jax.vmap(model.log_prob)(targets, states, actions)}
    if not isinstance(model, LatentGHM):
        return {}
    keys = jax.random.split(key, len(states))

    def one(x: Array, a: Array, y: Array, k: Key) -> dict[str, Array]:
        return {
            "nll": -model.log_prob_bound(y, x, a, num_samples=num_samples, key=k),
            "negative_elbo": -model.elbo(x, a, y, jax.random.normal(k, (model.loss_noise_size,))),
            "kl": model.divergence(x, a, y),
        }

    return jax.vmap(one)(states, actions, targets, keys)


_row_scores = jit(row_scores)


@jit
def _mean_scores(
    models: GHM, states: Array, actions: Array, targets: Array, key: Key, num_samples: int
) -> dict[str, Array]:
    def of(model: GHM) -> dict[str, Array]:
        scores = row_scores(model, states, actions, targets, key, num_samples)
        return {name: values.mean() for name, values in scores.items()}

    return jax.vmap(of)(models)


def likelihood(model: GHM, truth: Truth, *, key: Key) -> dict[str, float]:
    """`nll`, and for a model with a latent `negative_elbo`, per dimension; `nll_blank` is `blank_score`."""
    futures = truth.future.reshape(-1, truth.future.shape[-1]).astype(np.float32)
    scores = _row_scores(model, *typed(*truth.rows), futures, key, NUM_SAMPLES)
    found = {
        name: float(np.mean(scores[name]) / futures.shape[1])
        for name in ("nll", "negative_elbo")
        if name in scores
    }
    return found | ({"nll_blank": blank_score(truth)} if found else {})


def likelihood_each(
    models: GHM, truth: Truth, *, num_samples: int = NUM_SAMPLES, key: Key
) -> dict[str, Float[np.ndarray, "K"]]:
    """The mean scores of K stacked models, in nats of the whole state."""
    futures = truth.future.reshape(-1, truth.future.shape[-1]).astype(np.float32)
    scores = _mean_scores(models, *typed(*truth.rows), futures, key, num_samples)
    return {name: np.asarray(values) for name, values in scores.items()}


def blank_score(truth: Truth) -> float:
    """−log density per dimension of a Gaussian with the mean and spread of all displacements together."""
    _, spread = scales(truth)
    return float(np.mean(np.log(spread)) + 0.5 * np.log(2 * np.pi * np.e))
