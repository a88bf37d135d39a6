"""How near a model is to the truth: likelihood, distances of clouds, displacements, values.

Distances are in units of the true displacement's standard deviation, coordinate by coordinate. With many futures
per pair, clouds are compared pair by pair and the numbers averaged; with one future per pair, one cloud of
(x, X_T) is compared. Each number has its `_floor`: the same number for a second set of true futures.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ggpi._jax.jit import jit
from ggpi.diagnosis.distances import energy_distance, wasserstein
from ggpi.diagnosis.truth import Truth
from ggpi.ghm.base import AbstractDensityGHM
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.types import Key

NUM_REWARDS = 8
MATCHED = 512
"""Points of a cloud that are matched for the Wasserstein distance, at a cost of O(n³)."""


def measure(model: Any, truth: Truth, drawn: np.ndarray, *, key: Key) -> dict[str, Any]:
    """All numbers of one model, and of its samples `drawn` [P, N, D], against the truth."""
    return likelihood(model, truth, key=key) | compare(truth, drawn)


def compare(truth: Truth, drawn: np.ndarray) -> dict[str, Any]:
    """The numbers of samples [P, N, D] against the truth, and their floors."""
    moved = displacement(truth, drawn)
    floors = distances(truth, truth.again) | summary(displacement(truth, truth.again), truth)
    facts = distances(truth, drawn) | summary(moved, truth)
    facts |= {"dimensions": drawn.shape[2], "futures_per_pair": drawn.shape[1]}
    return facts | {f"{name}_floor": value for name, value in floors.items()} | moved


@jit
def _sample(model: Any, states: Any, actions: Any, keys: Any) -> Any:
    return jax.vmap(lambda x, a, k: model.sample(x, a, key=k))(states, actions, keys)


def draw(model: Any, states: Any, actions: Any, n: int, *, key: Key) -> np.ndarray:
    """n samples [P, n, D] of a model at each of P pairs."""
    states, actions = (np.repeat(np.asarray(values), n, axis=0) for values in (states, actions))
    keys = jax.random.split(key, len(states))
    samples = np.asarray(_sample(model, np.asarray(states, np.float32), _exact_or_single(actions), keys))
    return samples.reshape(-1, n, samples.shape[-1])


def _exact_or_single(actions: np.ndarray) -> np.ndarray:
    return actions.astype(np.int32 if actions.dtype.kind in "iu" else np.float32)


def likelihood(model: Any, truth: Truth, *, key: Key) -> dict[str, float]:
    """Per dimension: −log μ of a density model; of a VAE −ELBO at `kl_weight` 1 and a tighter bound."""
    count = truth.future.shape[1]
    x = np.repeat(truth.state, count, axis=0).astype(np.float32)
    a = _exact_or_single(np.repeat(truth.action, count, axis=0))
    target = truth.future.reshape(len(x), -1).astype(np.float32)
    keys = jax.random.split(key, len(x))
    scores = {}
    if isinstance(model, AbstractDensityGHM):
        scores["nll"] = -_log_prob(model, target, x, a)
    if hasattr(model, "elbo"):
        scores["negative_elbo"] = -_elbo(model, x, a, target, keys)
    if hasattr(model, "log_prob_bound"):
        scores["nll"] = -_log_prob_bound(model, target, x, a, keys)
    found = {name: float(np.mean(values) / target.shape[1]) for name, values in scores.items()}
    return found | ({"nll_blank": blank_score(truth)} if found else {})


def blank_score(truth: Truth) -> float:
    """−log density per dimension for one who knows only mean and spread of all displacements together."""
    _, spread = scales(truth)
    return float(np.mean(np.log(spread)) + 0.5 * np.log(2 * np.pi * np.e))


@jit
def _log_prob(model, targets, states, actions):
    return jax.vmap(model.log_prob)(targets, states, actions)


@jit
def _elbo(model, states, actions, targets, keys):
    noise = jax.vmap(lambda k: jax.random.normal(k, (model.loss_noise_size,)))(keys)
    return jax.vmap(model.elbo)(states, actions, targets, noise)


@jit
def _log_prob_bound(model, targets, states, actions, keys):
    return jax.vmap(lambda t, x, a, k: model.log_prob_bound(t, x, a, key=k))(targets, states, actions, keys)


def scales(truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of states and of true displacements."""
    moved = truth.future - truth.state[:, None]
    deviations = (truth.state.std(axis=0), moved.reshape(-1, moved.shape[-1]).std(axis=0))
    return np.maximum(deviations[0], SMALLEST_SCALE), np.maximum(deviations[1], SMALLEST_SCALE)


def clouds(truth: Truth, futures: np.ndarray) -> np.ndarray:
    """Clouds [G, n, ·] to compare: displacements of each pair, or one cloud of (x, displacement)."""
    state_scale, moved_scale = scales(truth)
    moved = (futures - truth.state[:, None]) / moved_scale
    if futures.shape[1] > 1:
        return moved
    return np.concatenate([truth.state / state_scale, moved[:, 0]], axis=1)[None]


def distances(truth: Truth, futures: np.ndarray) -> dict[str, float]:
    """Wasserstein and energy distance to the truth, and the error of the values of random rewards.

    `value_error` is the root mean square of (1−β)(V̂ − V) over pairs and rewards r(x) = √2 cos(w·x + b).
    """
    pairs = list(zip(clouds(truth, truth.future), clouds(truth, futures), strict=True))
    true, ours = (_expected_rewards(truth, each) for each in (truth.future, futures))
    return {
        "wasserstein": float(np.mean([wasserstein(x[:MATCHED], y[:MATCHED]) for x, y in pairs])),
        "energy": float(np.mean([energy_distance(x, y) for x, y in pairs])),
        "value_error": float(np.sqrt(np.mean((ours - true) ** 2))),
    }


def _expected_rewards(truth: Truth, futures: np.ndarray) -> np.ndarray:
    """Means of random rewards of about unit variance: one per pair, or one over all pairs."""
    rng = np.random.default_rng(0)
    size = futures.shape[-1]
    w = rng.normal(size=(size, NUM_REWARDS)) / np.sqrt(size)
    points = truth.future.reshape(-1, size)
    spread = np.maximum(points.std(axis=0), SMALLEST_SCALE)
    angles = ((futures - points.mean(axis=0)) / spread) @ w + rng.uniform(0, 2 * np.pi, NUM_REWARDS)
    rewards = np.sqrt(2) * np.cos(angles)
    return rewards.mean(axis=1 if futures.shape[1] > 1 else (0, 1))


def displacement(truth: Truth, futures: np.ndarray) -> dict[str, list[float]]:
    """Mean and spread of X − x, per coordinate, of these futures and in truth."""
    facts = {}
    for name, values in (("model", futures), ("true", truth.future)):
        moved = values - truth.state[:, None]
        within = (
            moved - moved.mean(axis=1, keepdims=True) if moved.shape[1] > 1 else moved - moved.mean(axis=0)
        )
        facts[f"mean_{name}"] = moved.mean(axis=(0, 1)).tolist()
        facts[f"spread_{name}"] = np.sqrt((within**2).mean(axis=(0, 1))).tolist()
    return facts


def summary(facts: dict[str, list[float]], truth: Truth) -> dict[str, float]:
    """The error of the mean in units of the truth's spread, and the ratio of spreads, over all coordinates."""
    _, moved_scale = scales(truth)
    error = np.subtract(facts["mean_model"], facts["mean_true"]) / moved_scale
    ratio = np.maximum(facts["spread_model"], 1e-9) / np.maximum(facts["spread_true"], SMALLEST_SCALE)
    return {
        "mean_error": float(np.sqrt((error**2).mean())),
        "spread_ratio": float(np.exp(np.log(ratio).mean())),
    }
