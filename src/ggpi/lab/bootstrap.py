"""Means over seeds, with bootstrapped confidence intervals; shares of episodes, with exact ones."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv


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


def share_interval(successes: ArrayLike, *, level: float = 0.95) -> dict[str, float]:
    """The share of episodes that succeeded, and its exact binomial (Clopper–Pearson) interval.

    Of 2 successes in 2 episodes a bootstrap knows nothing but successes: its interval is [1, 1], this one [.16, 1] at
    the level .95. Each end leaves at most (1 − level) / 2 to shares beyond it. All episodes count as independent.
    """
    found = np.asarray(successes, bool).ravel()
    if not found.size:
        raise ValueError("a share is of at least one episode, got none")
    reached, missed, tail = int(found.sum()), int((~found).sum()), (1 - level) / 2
    low = float(betaincinv(reached, missed + 1, tail)) if reached else 0.0
    high = float(betaincinv(reached + 1, missed, 1 - tail)) if missed else 1.0
    return {"mean": float(found.mean()), "low": low, "high": high}


def paired_difference(
    ours: ArrayLike, theirs: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> dict[str, float | None]:
    """The mean of ours − theirs [seeds, starts], its interval, and the `ratio` of their means, theirs to ours.

    Both were measured at the same starts. Seeds and starts are resampled independently of each other, because all
    starts of a seed share its model; the pairs stay together. The ratio is None where the mean of ours is not above 0,
    which an unbiased estimate of a small error may be.
    """
    one, two = np.asarray(ours, float), np.asarray(theirs, float)
    if one.ndim != 2 or one.shape != two.shape or not one.size:
        raise ValueError(f"expected two arrays [seeds, starts] of one shape, got {one.shape} and {two.shape}")
    rng, apart = np.random.default_rng(seed), one - two
    rows, columns = (rng.integers(n, size=(resamples, n)) for n in apart.shape)
    drawn = apart[rows[:, :, None], columns[:, None, :]].mean(axis=(1, 2))
    tail = 50 * (1 - level)
    low, high = np.percentile(drawn, [tail, 100 - tail])
    ratio = float(two.mean() / one.mean()) if one.mean() > 0 else None
    return {"mean": float(apart.mean()), "low": float(low), "high": float(high), "ratio": ratio}


def points_apart(ours: ArrayLike, theirs: ArrayLike) -> dict[str, float]:
    """Episodes that succeeded [seeds, episodes] less those of one other agent [episodes], in points, with an interval.

    Both had the same episodes, which are resampled in pairs, and so are seeds.
    """
    one, other = 100.0 * np.asarray(ours, bool), 100.0 * np.asarray(theirs, bool)
    found = paired_difference(one, np.broadcast_to(other, one.shape))
    return {name: float(found[name] or 0.0) for name in ("mean", "low", "high")}
