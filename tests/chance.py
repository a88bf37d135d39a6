"""How far apart an estimate and the truth may lie: a right program fails with a probability below 1e-6.

Every statistical test takes its bounds from here, so that they hold for any seed, and hence whatever the rounding of
a CPU makes of one seed. A test that makes several comparisons splits `FAILURE` among them.
"""

from typing import Any

import numpy as np
from scipy import stats

FAILURE = 1e-6
ROUNDING = 1e-6
"""Probabilities in single precision are off by less."""


def error_of_mean(deviation: Any, n: int, width: Any = 0.0, comparisons: int = 1) -> Any:
    """What the error of a mean of n independent draws exceeds with a probability of at most FAILURE / comparisons.

    `deviation` is the draws' exact standard deviation and `width` the length of an interval that holds them: this is
    Bernstein's inequality. Normal draws have width 0. Products of two normal numbers of standard deviations s and t
    satisfy Bernstein's condition with width 3st, exponential and geometric times with 3/2 of their mean.
    """
    log = np.log(2 * comparisons / FAILURE)
    linear = np.asarray(width) * log / (3 * n)
    return linear + np.sqrt(linear**2 + 2 * np.square(deviation) * log / n)


def are_frequencies(counts: Any, probabilities: Any, comparisons: int) -> bool:
    """Whether counts (over the last axis, of independent draws) are those of these probabilities, by exact
    binomial tails; `comparisons` is the number of counts that the test looks at in all its calls.
    """
    counts, p = np.asarray(counts), np.asarray(probabilities)
    n, least = counts.sum(axis=-1, keepdims=True), FAILURE / (2 * comparisons)
    enough = stats.binom.cdf(counts, n, np.maximum(p - ROUNDING, 0)) >= least
    return bool((enough & (stats.binom.sf(counts - 1, n, np.minimum(p + ROUNDING, 1)) >= least)).all())


def is_share(hits: Any, probability: float, comparisons: int) -> bool:
    """Whether independent events happened as often as this probability says."""
    count = int(np.sum(hits))
    return are_frequencies([count, np.size(hits) - count], [probability, 1 - probability], comparisons)


def error_of_estimate(stderr: Any, n: int, width: float, comparisons: int) -> Any:
    """`error_of_mean` where only an estimate of the standard error is known: the empirical Bernstein bound of
    Maurer and Pontil (2009) for draws that lie in an interval of this width.
    """
    log = np.log(4 * comparisons / FAILURE)
    return np.sqrt(2 * log) * np.asarray(stderr) + 7 * width * log / (3 * (n - 1))
