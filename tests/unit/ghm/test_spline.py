"""Splines by hand against flowjax's, and against their own inverse and derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.bijections import RationalQuadraticSpline
from paramax import unwrap

from ggpi.ghm import spline
from ggpi.ghm.spline import SMALLEST, num_raw

KNOTS, INTERVAL = 8, 5.0
bend = jax.jit(spline.bend, static_argnums=2)
unbend = jax.jit(spline.unbend, static_argnums=2)


def flowjax_spline(raw):
    """The same spline from the same unconstrained numbers; ours have slope 1 at the ends."""
    end = jnp.log(jnp.expm1(1 - SMALLEST))
    theirs = RationalQuadraticSpline(
        knots=KNOTS, interval=INTERVAL, min_derivative=SMALLEST, min_width=SMALLEST
    )
    leaves, structure = jax.tree.flatten(theirs)
    widths, heights, slopes = jnp.split(raw, [KNOTS + 1, 2 * KNOTS + 2])
    parts = iter([widths, heights, end + jnp.pad(slopes, 1)])
    filled = [next(parts) if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
    return unwrap(jax.tree.unflatten(structure, filled))


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_same_as_flowjax(spread):
    with jax.enable_x64(True):
        raw = spread * jax.random.normal(jax.random.key(0), (num_raw(KNOTS), 200))
        x = jnp.linspace(-6, 6, 200)
        y, log_slope = bend(raw, x, INTERVAL)
        expected = jax.jit(jax.vmap(lambda r, x: flowjax_spline(r).transform_and_log_det(x)))(raw.T, x)
        np.testing.assert_allclose(y, expected[0], atol=1e-9)
        np.testing.assert_allclose(log_slope, expected[1], atol=1e-8)
        back = jax.jit(jax.vmap(lambda r, y: flowjax_spline(r).inverse_and_log_det(y)[0]))(raw.T, x)
        np.testing.assert_allclose(unbend(raw, x, INTERVAL), back, atol=1e-7)


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0])
def test_inverse_and_derivative(spread):
    with jax.enable_x64(True):
        raw = spread * jax.random.normal(jax.random.key(1), (num_raw(KNOTS), 300))
        x = jnp.linspace(-6, 6, 300)
        y, log_slope = bend(raw, x, INTERVAL)
        # slopes of 1e-3 amplify rounding: at most 4e-6 over 400 seeds, 1.3e-6 in the median
        np.testing.assert_allclose(unbend(raw, y, INTERVAL), x, atol=1e-4)
        slope = jax.grad(lambda x: bend(raw, x, INTERVAL)[0].sum())(x)
        np.testing.assert_allclose(log_slope, np.log(slope), atol=1e-8)


def test_zeros_are_the_identity():
    x = jnp.linspace(-7, 7, 101)
    y, log_slope = bend(jnp.zeros((num_raw(KNOTS), 101)), x, INTERVAL)
    np.testing.assert_allclose(y, x, atol=1e-5)
    np.testing.assert_allclose(log_slope, 0, atol=1e-5)


def test_single_precision_stays_monotone_and_finite():
    """Also where slopes are extreme, at the ends and far outside."""
    raw = 20 * jax.random.normal(jax.random.key(2), (num_raw(KNOTS), 1)) * jnp.ones(2001)
    x = jnp.concatenate([jnp.linspace(-5, 5, 1999), jnp.array([5.0, 1e6])])
    (y, log_slope), x_back = bend(raw, x, INTERVAL), unbend(raw, x, INTERVAL)
    assert jnp.isfinite(log_slope).all() and jnp.isfinite(x_back).all()
    assert (jnp.diff(y) >= -1e-5).all() and (jnp.diff(x_back) >= -1e-3).all()
    gradient = jax.grad(lambda raw: sum(part.sum() for part in bend(raw, x, INTERVAL)))(raw)
    assert jnp.isfinite(gradient).all()


def test_many_extreme_splines_are_finite():
    """Rounding would make the root of the inverse that of a negative number in 3% of them."""
    x = jnp.linspace(-5, 5, 1999)

    def ends(key):
        raw = 20 * jax.random.normal(key, (num_raw(KNOTS), 1)) * jnp.ones(len(x))
        return (*bend(raw, x, INTERVAL), unbend(raw, x, INTERVAL))

    for part in jax.lax.map(ends, jax.random.split(jax.random.key(3), 300)):
        assert jnp.isfinite(part).all()
