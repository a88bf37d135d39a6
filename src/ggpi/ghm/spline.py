"""Monotone rational-quadratic splines: elastic maps of an interval onto itself, the identity outside of it.

In a bin from (x₀, y₀), w wide and h high, with slopes d₀ and d₁ at its ends, s = h/w and ξ = (x − x₀)/w:

    y     = y₀ + h ξ (s ξ + d₀(1−ξ)) / D          D = s + (d₀ + d₁ − 2s) ξ(1−ξ)
    dy/dx = s² (d₁ ξ² + 2s ξ(1−ξ) + d₀(1−ξ)²) / D²

The inverse solves a quadratic equation (Durkan et al., 2019). The ends have slope 1, so the map is smooth.
Written for a vector, each coordinate with a spline of its own; bins are the first axis. A bin is picked by
masked sums over unnormalised shares, and slopes are computed after the pick: with its gradient this is faster
than gathering from finished knots, as flowjax does, and quicker to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

SMALLEST = 1e-3
"""Smallest width and height of a bin, and smallest slope at a knot."""
Vector = Float[Array, "n"]
Rows = Float[Array, "_ n"]


def num_raw(knots: int) -> int:
    """How many unconstrained numbers make a spline of so many inner knots."""
    return 3 * knots + 2


def bend(raw: Float[Array, "r n"], x: Vector, interval: float) -> tuple[Vector, Vector]:
    """y and log dy/dx of x on [−interval, interval]; raw numbers of zero give the identity."""
    widths, heights, slopes = _parts(raw)
    at, inside = _bin(widths, heights, slopes, x, interval)
    xi = jnp.clip((jnp.clip(x, -interval, interval) - at.x) / at.width, 0.0, 1.0)
    s = at.height / at.width
    y = at.y + at.height * xi * (s * xi + at.left * (1 - xi)) / _denominator(at, s, xi)
    return jnp.where(inside, y, x), jnp.where(inside, _log_slope(at, s, xi), 0.0)


def unbend(raw: Float[Array, "r n"], y: Vector, interval: float) -> Vector:
    """The x of a y."""
    widths, heights, slopes = _parts(raw)
    swapped, inside = _bin(heights, widths, slopes, y, interval)
    at = swapped._replace(x=swapped.y, width=swapped.height, y=swapped.x, height=swapped.width)
    rise = jnp.clip(jnp.clip(y, -interval, interval) - at.y, 0.0, at.height)
    s = at.height / at.width
    curved = rise * (at.left + at.right - 2 * s)
    a, b, c = at.height * (s - at.left) + curved, at.height * at.left - curved, -s * rise
    root = jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 1e-30))  # negative by rounding only
    xi = -2 * c / (b + root)
    return jnp.where(inside, at.x + xi * at.width, y)


class _Bin(NamedTuple):
    """Lower left corner, size, and the slopes at both ends."""

    x: Vector
    width: Vector
    y: Vector
    height: Vector
    left: Vector
    right: Vector


def _parts(raw: Rows) -> tuple[Rows, Rows, Rows]:
    """The raw numbers of widths, heights and slopes."""
    knots = (len(raw) - 2) // 3
    return raw[: knots + 1], raw[knots + 1 : 2 * knots + 2], raw[2 * knots + 2 :]


def _bin(
    widths: Rows, heights: Rows, slopes: Rows, x: Vector, interval: float
) -> tuple[_Bin, Bool[Array, "n"]]:
    """The bin that x falls in, and whether it is in any."""
    (widths, width_unit), (heights, height_unit) = _shares(widths, interval), _shares(heights, interval)
    passed = x >= jax.lax.stop_gradient(_inner_knots(widths, width_unit, interval))
    none = jnp.zeros_like(passed[:1])
    below = jnp.concatenate([passed, none])
    here = jnp.concatenate([~none, passed]) & ~below
    start = passed.sum(axis=0) * SMALLEST - interval
    picked = _Bin(
        start + width_unit * _sum(below, widths),
        SMALLEST + width_unit * _sum(here, widths),
        start + height_unit * _sum(below, heights),
        SMALLEST + height_unit * _sum(here, heights),
        _slope(_sum(here[1:], slopes)),
        _slope(_sum(here[:-1], slopes)),
    )
    return picked, (x >= -interval) & (x <= interval)


def _shares(raw: Rows, interval: float) -> tuple[Rows, Vector]:
    """Positive numbers ∝ the softmax, and their unit: a bin's size is SMALLEST + unit · share."""
    shares = jnp.exp(raw - jax.lax.stop_gradient(raw.max(axis=0)))
    return shares, (2 * interval - len(raw) * SMALLEST) / shares.sum(axis=0)


def _inner_knots(shares: Rows, unit: Vector, interval: float) -> Rows:
    past = jnp.arange(1, len(shares), dtype=shares.dtype)[:, None]
    return past * SMALLEST + unit * jnp.cumsum(shares[:-1], axis=0) - interval


def _sum(mask: Bool[Array, "_ n"], values: Rows) -> Vector:
    return jnp.where(mask, values, 0.0).sum(axis=0)


def _slope(raw: Vector) -> Vector:
    """1 at 0, which is what a bin at the end of the interval sums up to."""
    return SMALLEST + jax.nn.softplus(raw + math.log(math.expm1(1 - SMALLEST)))


def _denominator(at: _Bin, s: Vector, xi: Vector) -> Vector:
    return s + (at.left + at.right - 2 * s) * xi * (1 - xi)


def _log_slope(at: _Bin, s: Vector, xi: Vector) -> Vector:
    rising = at.right * xi**2 + 2 * s * xi * (1 - xi) + at.left * (1 - xi) ** 2
    return jnp.log(s**2 * rising / _denominator(at, s, xi) ** 2)
