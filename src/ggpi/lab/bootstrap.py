"""Means over seeds, with bootstrapped confidence intervals."""

import numpy as np
from numpy.typing import ArrayLike


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> dict[str, float]:
    """The mean and its percentile bootstrap interval; a single value is its own interval.

    The same values and seed give the same interval.
    """
    sample = np.asarray(values, float)
    if sample.ndim != 1 or not sample.size:
        raise ValueError(f"expected a list of at least one number, got shape {sample.shape}")
    drawn = np.random.default_rng(seed).choice(sample, (resamples, sample.size))
    tail = 50 * (1 - level)
    low, high = np.percentile(drawn.mean(axis=1), [tail, 100 - tail])
    return {"mean": float(sample.mean()), "low": float(low), "high": float(high)}
