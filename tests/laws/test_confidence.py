"""Confidence bounds of differences: their failures are summed up over all outcomes, without any random number."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from ggpi.planning import confidence
from ggpi.planning.confidence import BETS, EVENTS

interval, kl = jax.jit(confidence.interval), jax.jit(confidence.kl)
kl_lower, kl_upper = jax.jit(confidence.kl_lower), jax.jit(confidence.kl_upper)
bet_width = jax.jit(confidence.bet_width)
ROUNDING = 1 + 1e-3
"""Bounds are computed in single precision."""


def outcomes(n):
    """How often each of three values can occur in n samples [outcomes, 3]."""
    return np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])


def failures(values, probabilities, n, level):
    """The exact probabilities that an interval lies above the mean, and below it."""
    counts, values = outcomes(n), np.array(values)
    chance = stats.multinomial.pmf(counts, n, probabilities)
    sums = [counts @ part for part in (values, np.maximum(values, 0), values**2)]
    found = interval(*map(jnp.asarray, sums), jnp.asarray(n), jnp.ones(len(counts)), jnp.asarray(level))
    mean = np.dot(values, probabilities)
    return chance[np.asarray(found.lower) > mean].sum(), chance[np.asarray(found.upper) < mean].sum()


@pytest.mark.parametrize("n", [5, 60, 120])
@pytest.mark.parametrize(
    "values", [(-1.0, 0.0, 1.0), (-0.1, 0.0, 0.1), (-1.0, 0.2, 0.3), (0.1, 0.15, 1.0), (-0.4, -0.5, -0.3)]
)
def test_intervals_miss_the_mean_as_rarely_as_they_say(values, n):
    """Each side fails with a probability of at most half of EVENTS · e^{−L}: rare, frequent and one-sided values."""
    for probabilities in ((0.01, 0.98, 0.01), (0.02, 0.9, 0.08), (0.3, 0.4, 0.3), (0.05, 0.05, 0.9)):
        for level in (3.0, 5.0, 8.0):
            allowed = EVENTS / 2 * np.exp(-level) * ROUNDING
            assert max(failures(values, probabilities, n, level)) <= allowed


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_each_bound_fails_as_rarely_as_it_says(n):
    """Averages of n coin flips: kl bounds fail with at most e^{−L}, all bets of one side together with J · e^{−L}."""
    hits = np.arange(n + 1)
    p, failed = jnp.asarray(hits / n), {"kl_upper": 0.0, "kl_lower": 0.0, "bets": 0.0}
    for q, level in itertools.product((0.003, 0.05, 0.3, 0.5, 0.9), (0.5, 1.0, 2.0, 4.0)):
        chance, rate = stats.binom.pmf(hits, n, q), jnp.asarray(level / n)
        width = np.asarray(bet_width(p * (1 - p) / 4, rate))
        missed = {
            "kl_upper": (np.asarray(kl_upper(p, rate)) < q, 1),
            "kl_lower": (np.asarray(kl_lower(p, rate)) > q, 1),
            "bets": (hits / n - 2 * width > q, len(BETS)),
        }
        for name, (is_missed, count) in missed.items():
            probability = chance[is_missed].sum()
            assert probability <= count * np.exp(-level) * ROUNDING, (name, q, level)
            failed[name] = max(failed[name], probability)
    assert min(failed["kl_upper"], failed["kl_lower"]) > 0.1, "bounds that never fail are too wide"


def test_divergences_and_their_inverses():
    """Against double precision and a root finder of SciPy."""

    def exact(p, q):
        parts = [(p, q), (1 - p, 1 - q)]
        return sum(a * np.log(a / b) for a, b in parts if a > 0)

    for p, q in itertools.product((0.0, 1e-4, 0.2, 0.5, 0.999, 1.0), (1e-5, 0.01, 0.21, 0.5, 0.998)):
        assert float(kl(jnp.array([p]), jnp.array([q]))[0]) == pytest.approx(exact(p, q), rel=1e-3, abs=1e-7)
    for p, rate in itertools.product((1e-3, 0.2, 0.5, 0.97), (1e-4, 0.01, 0.5)):
        above = optimize.brentq(lambda q, p=p, rate=rate: exact(p, q) - rate, p, 1 - 1e-12)
        is_above = exact(p, 1e-12) > rate
        below = optimize.brentq(lambda q, p=p, rate=rate: exact(p, q) - rate, 1e-12, p) if is_above else 0.0
        assert float(kl_upper(jnp.asarray([p]), jnp.asarray(rate))[0]) == pytest.approx(above, rel=1e-3)
        assert float(kl_lower(jnp.asarray([p]), jnp.asarray(rate))[0]) == pytest.approx(
            below, rel=1e-2, abs=1e-6
        )


@pytest.mark.parametrize("bet", BETS)
def test_the_inequality_behind_the_bets(bet):
    x = np.linspace(-1, 3, 10_001)
    psi = -np.log1p(-bet) - bet
    assert (np.log1p(bet * x) >= bet * x - psi * x**2 - 1e-12).all()
    assert bet / (2 * psi) >= 1, "the larger root of the quadratic is out of range"


def test_bounds_are_sharp_where_differences_are_rare_or_small():
    """No difference at all in n samples; and a small variance, against the empirical Bernstein bound."""
    n, level, zero = 750, 9.0, jnp.zeros(1)
    none = interval(zero, zero, zero, jnp.asarray(n), jnp.ones(1), jnp.asarray(level))
    expected = 1 - np.exp(-level / n)
    np.testing.assert_allclose([none.lower[0], none.upper[0]], [-expected, expected], rtol=1e-3)
    variance = 0.04
    bernstein = np.sqrt(2 * variance * level / n) + 14 * level / (3 * (n - 1))
    width = 2 * bet_width(jnp.asarray([variance / 4]), jnp.asarray(level / n))[0]
    assert width < 0.7 * bernstein


def test_no_difference_is_possible_within_the_same_plan():
    zero = jnp.zeros(2)
    found = interval(zero, zero, zero, jnp.asarray(100), zero, jnp.asarray(5.0))
    np.testing.assert_allclose(found.upper, 0.0, atol=1e-12)
