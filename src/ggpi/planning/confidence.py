"""How far the mean of a bounded difference can be from its average over n samples: two proven bounds, intersected.

D₁ … Dₙ are independent, with mean μ and values in [−w, w]. A *confidence level* L gives failures of at most e^{−L}.

*Parts.* D⁺ = max(D, 0) and D⁻ = D⁺ − D have values in [0, w], and μ = E D⁺ − E D⁻. For values in [0, 1] with mean q
the average p satisfies P(p < q, n kl(p, q) ≥ L) ≤ e^{−L}, and the same on the other side (Chernoff 1952, Hoeffding
1963), where kl(p, q) is the divergence of two Bernoulli variables. So each part is bounded by the farthest q with
n kl(p, q) ≤ L. That is sharp where rewards are rare: n samples without any difference leave |μ| ≤ wL/n.

*Bets.* Sharp where the variance is small. ξ = (D − μ)/(2w) has mean 0 and ξ ≥ −1. For x ≥ −1 and 0 < λ < 1

    log(1 + λx) ≥ λx − ψ(λ)x²,   ψ(λ) = −log(1 − λ) − λ,

because (λx − log(1 + λx))/x² falls with x and is ψ(λ) at x = −1 (Fan, Grama and Liu 2015). Hence
E exp(λξ − ψ(λ)ξ²) ≤ E(1 + λξ) = 1, and by Markov's inequality, for d = D̄ − μ and the empirical variance V,

    P( λ d/2w − ψ(λ)(V + d²)/4w² ≥ L/n ) ≤ e^{−L}.

So with u = d/2w ≤ 1, either u is at most the smaller root of ψu² − λu + ψV/4w² + L/n, or at least the larger one. That
is above λ/2ψ ≥ 1 for λ ≤ 1/2, so it is the former. The same holds for −D. The best of the bets λ = 1/2, 1/4, … is
about √(2VL/n) + (4/3)wL/n; empirical Bernstein bounds (Maurer and Pontil 2009) have (14/3)wL/n.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

BETS = tuple(2.0**-k for k in range(1, 9))
EVENTS = 4 + 2 * len(BETS)
"""What may fail in one interval, each with probability e^{−L}: both ends of both parts, and each bet on both sides."""
HALVINGS = 30


class Interval(NamedTuple):
    """Where the mean of a difference lies."""

    lower: Float[Array, "n"]
    upper: Float[Array, "n"]


def interval(
    total: Float[Array, "n"],
    positive: Float[Array, "n"],
    square: Float[Array, "n"],
    samples: Array,
    widest: Float[Array, "n"],
    level: Array,
) -> Interval:
    """Holds the mean of a difference D with a probability of at least 1 − EVENTS · e^{−level}.

    Args:
        total: Σ D over the samples.
        positive: Σ max(D, 0).
        square: Σ D².
        samples: n, which must not depend on them.
        widest: w, for values in [−w, w].
        level: L.
    """
    w, rate = jnp.maximum(widest, 1e-30), level / samples
    mean, parts = total / samples, (positive / (samples * w), (positive - total) / (samples * w))
    above = w * (kl_upper(parts[0], rate) - kl_lower(parts[1], rate))
    below = w * (kl_lower(parts[0], rate) - kl_upper(parts[1], rate))
    variance = jnp.maximum(square / samples - mean**2, 0.0)
    width = 2 * w * bet_width(variance / (4 * w**2), rate)
    return Interval(jnp.maximum(below, mean - width), jnp.minimum(above, mean + width))


def bet_width(variance: Float[Array, "n"], rate: Array) -> Float[Array, "n"]:
    """The best bet's bound on d/2w, for V/4w² and L/n; 1 where none says anything."""
    found = []
    for bet in BETS:
        psi = -np.log1p(-bet) - bet
        inside = bet**2 - 4 * psi * (psi * variance + rate)
        root = 2 * (psi * variance + rate) / (bet + jnp.sqrt(jnp.maximum(inside, 0.0)))
        found.append(jnp.where(inside >= 0, root, 1.0))
    return jnp.minimum(jnp.stack(found).min(axis=0), 1.0)


def kl_upper(p: Float[Array, "n"], rate: Array) -> Float[Array, "n"]:
    """The largest q ≥ p with kl(p, q) ≤ L/n."""
    return _farthest(p, jnp.ones_like(p), rate)


def kl_lower(p: Float[Array, "n"], rate: Array) -> Float[Array, "n"]:
    """The least q ≤ p with kl(p, q) ≤ L/n."""
    return _farthest(p, jnp.zeros_like(p), rate)


def _farthest(p: Float[Array, "n"], end: Float[Array, "n"], rate: Array) -> Float[Array, "n"]:
    """Bisection between p and an end; what is returned is on the safe side."""
    p = jnp.clip(p, 0.0, 1.0)

    def halve(_: Array | int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        near, far = ends
        middle = (near + far) / 2
        is_far = kl(p, middle) > rate
        return jnp.where(is_far, near, middle), jnp.where(is_far, middle, far)

    return jax.lax.fori_loop(0, HALVINGS, halve, (p, end))[1]


def kl(p: Float[Array, "n"], q: Float[Array, "n"]) -> Float[Array, "n"]:
    """p log(p/q) + (1−p) log((1−p)/(1−q)), precise where p and q are close."""
    return _part(p, q - p) + _part(1 - p, p - q)


def _part(p: Float[Array, "n"], apart: Float[Array, "n"]) -> Float[Array, "n"]:
    """p log(p/(p + apart))."""
    safe = jnp.where(p > 0, p, 1.0)
    return jnp.where(p > 0, -safe * jnp.log1p(jnp.maximum(apart / safe, -1.0)), 0.0)
