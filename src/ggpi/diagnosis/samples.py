"""Samples of models at pairs (x, a), in as few compiled calls as possible."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Float, Real

from ggpi._jax.jit import jit
from ggpi.diagnosis.truth import Truth, rows_of
from ggpi.types import GHM, Key

Pairs = Real[np.ndarray, "P ..."]


def draw(model: GHM, states: Pairs, actions: Pairs, n: int, *, key: Key) -> Float[np.ndarray, "P n D"]:
    """n samples of a model at each of P pairs."""
    return _in_pairs(_sample(model, *typed(*rows_of(states, actions, n)), key), n)


def draw_at(model: GHM, truth: Truth, *, key: Key) -> Float[np.ndarray, "P N D"]:
    """As many samples at each pair as there are true futures, after the same first actions."""
    return _in_pairs(_sample(model, *typed(*truth.rows), key), truth.future.shape[1])


def draw_each(
    models: GHM, states: Pairs, actions: Pairs, n: int, *, key: Key
) -> Float[np.ndarray, "K P n D"]:
    """n samples at each of P pairs of each of K stacked models, all with the same random numbers."""
    samples = np.asarray(_sample_each(models, *typed(*rows_of(states, actions, n)), key))
    return samples.reshape(len(samples), -1, n, samples.shape[-1])


def typed(states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States and actions as models take them: single precision, or integers of 32 bits."""
    kind = np.int32 if actions.dtype.kind in "iu" else np.float32
    return states.astype(np.float32), actions.astype(kind)


def _in_pairs(samples: Array, n: int) -> np.ndarray:
    return np.asarray(samples).reshape(-1, n, samples.shape[-1])


def _one_each(model: GHM, states: Array, actions: Array, key: Key) -> Array:
    keys = jax.random.split(key, len(states))
    return jax.vmap(lambda x, a, k: model.sample(x, a, key=k))(states, actions, keys)


_sample = jit(_one_each)


@jit
def _sample_each(models: GHM, states: Array, actions: Array, key: Key) -> Array:
    return jax.vmap(lambda model: _one_each(model, states, actions, key))(models)
