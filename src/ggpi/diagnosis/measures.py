"""How close samples of a model are to the truth: distances, displacements, values.

Distances are in units of the true displacement's standard deviation, coordinate by coordinate. With many futures
per pair, clouds are compared pair by pair and the numbers averaged; with one future per pair, one cloud of
(x, X_T) is compared. Each number has its `_floor`: the same number for a second set of true futures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from ggpi.diagnosis.distances import Clouds, emds, mean_energy
from ggpi.diagnosis.likelihood import likelihood
from ggpi.diagnosis.truth import Truth, scales
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.types import GHM, Key

NUM_REWARDS = 32
"""Random rewards whose values are compared."""
MATCHED = 512
"""Points of a cloud that are matched for the EMD, at a cost of O(n³)."""


def measure(model: GHM, truth: Truth, drawn: Clouds, *, key: Key) -> dict[str, Any]:
    """All numbers of one model, and of its samples `drawn` at the pairs of the truth."""
    return likelihood(model, truth, key=key) | compare(truth, drawn)


def compare(truth: Truth, drawn: Clouds) -> dict[str, Any]:
    """The numbers of samples, and their floors where the truth has a second set of futures."""
    moved, floors = displacement(truth, drawn), {}
    if truth.again is not None:
        floors = distances(truth, truth.again) | summary(displacement(truth, truth.again), truth)
    facts = distances(truth, drawn) | summary(moved, truth)
    facts |= {"dimensions": drawn.shape[2], "futures_per_pair": drawn.shape[1]}
    return facts | {f"{name}_floor": value for name, value in floors.items()} | moved


def clouds(truth: Truth, futures: Clouds) -> np.ndarray:
    """Clouds [G, n, ·] to compare: displacements of each pair, or one cloud of (x, displacement)."""
    state_scale, moved_scale = scales(truth)
    moved = (futures - truth.state[:, None]) / moved_scale
    if futures.shape[1] > 1:
        return moved
    return np.concatenate([truth.state / state_scale, moved[:, 0]], axis=1)[None]


def distances(truth: Truth, futures: Clouds) -> dict[str, float]:
    """EMD and energy distance to the truth, and the error of the values of random rewards.

    `value_error` is the root mean square of (1−β)(V̂ − V) over pairs and `random_rewards`.
    """
    x, y = clouds(truth, truth.future), clouds(truth, futures)
    true, ours = (random_rewards(truth, each) for each in (truth.future, futures))
    axis = 1 if futures.shape[1] > 1 else (0, 1)
    return {
        "emd": float(emds(x[:, :MATCHED], y[:, :MATCHED]).mean()),
        "energy": mean_energy(x, y),
        "value_error": float(np.sqrt(np.mean((ours.mean(axis=axis) - true.mean(axis=axis)) ** 2))),
    }


def value_mse(truth: Truth, drawn: Clouds, beta: float) -> dict[str, float]:
    """The mean of `value_errors`, and its floor where the truth has a second set of futures."""
    parts = {"value_mse": drawn, "value_mse_floor": truth.again}
    return {
        name: float(value_errors(truth, futures, beta).mean())
        for name, futures in parts.items()
        if futures is not None
    }


def value_errors(truth: Truth, futures: Clouds, beta: float) -> Float[np.ndarray, "G"]:
    """(V̂ − V)² of each pair, the mean over `random_rewards`; one number over all pairs if futures are single.

    V = E[r(X)]/(1−β), X ∼ μ_β, is estimated by the mean over samples. The variance that this adds is subtracted, so the
    error is unbiased: 0 in the mean for a perfect model, and at times a little below.
    """
    ours, true = random_rewards(truth, futures), random_rewards(truth, truth.future)
    if futures.shape[1] == 1:
        apart = (ours - true)[:, 0]
        squared = apart.mean(axis=0) ** 2 - apart.var(axis=0, ddof=1) / len(apart)
        return np.array([squared.mean() / (1 - beta) ** 2])
    squared = (ours.mean(axis=1) - true.mean(axis=1)) ** 2
    noise = sum(part.var(axis=1, ddof=1) / part.shape[1] for part in (ours, true))
    return (squared - noise).mean(axis=-1) / (1 - beta) ** 2


def random_rewards(truth: Truth, states: Float[np.ndarray, "P n D"]) -> Float[np.ndarray, "P n R"]:
    """r(x) = √2 cos(w·z + b) of states, for `NUM_REWARDS` pairs (w, b), always the same ones.

    z is the state normalised by mean and spread of the true futures, w ∼ N(0, I/D) and b ∼ U(0, 2π): random Fourier
    features, smooth rewards with a variance of about 1.
    """
    points = truth.future.reshape(-1, states.shape[-1])
    spread = np.maximum(points.std(axis=0), SMALLEST_SCALE)
    w, b = reward_features(states.shape[-1])
    return np.sqrt(2) * np.cos(((states - points.mean(axis=0)) / spread) @ w + b)


def reward_features(size: int) -> tuple[Float[np.ndarray, "D R"], Float[np.ndarray, "R"]]:
    """w and b of the random rewards, for states of this size."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(size, NUM_REWARDS)) / np.sqrt(size), rng.uniform(0, 2 * np.pi, NUM_REWARDS)


def displacement(truth: Truth, futures: Clouds) -> dict[str, list[float]]:
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


def moments(moved: Float[np.ndarray, "P N k"]) -> dict[str, Float[np.ndarray, "k"]]:
    """Of displacements, coordinate by coordinate: `mean` and `spread` over all of them, and the spread `within` pairs.

    `within` is the root of the mean variance at one pair.
    """
    flat = moved.reshape(-1, moved.shape[-1])
    within = np.sqrt(moved.var(axis=1).mean(axis=0))
    return {"mean": flat.mean(axis=0), "spread": flat.std(axis=0), "within": within}
