"""Batched functions against loops."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi._jax.batching import over_axes, over_models, over_states, over_vectors, stack


class Line(eqx.Module):
    slope: jnp.ndarray
    name: str = eqx.field(static=True, default="line")

    def at(self, x, y):
        return self.slope * x + y


LINES = [Line(jnp.array(2.0)), Line(jnp.array(3.0)), Line(jnp.array(-1.0))]


def test_stacked_modules_have_a_leading_axis():
    lines = stack(LINES)
    assert isinstance(lines, Line) and lines.name == "line"
    np.testing.assert_array_equal(lines.slope, [2, 3, -1])


def test_modules_of_other_structures_cannot_be_stacked():
    with pytest.raises(ValueError):
        stack([Line(jnp.array(2.0)), Line(jnp.array(2.0), "other")])


def test_models_have_batches_of_their_own():
    x, y = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    found = over_models(Line.at, stack(LINES), jnp.asarray(x), jnp.asarray(y))
    expected = [[float(line.slope) * x[k, i] + y[k, i] for i in range(4)] for k, line in enumerate(LINES)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (2, 1, 3)])
def test_functions_of_one_state(batch):
    def norm(state):
        assert state.shape == (4,)
        return jnp.sum(state**2)

    states = np.random.default_rng(0).normal(size=(*batch, 4))
    for over in (over_states, over_vectors):
        found = over(norm, states)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, (states**2).sum(-1), rtol=1e-5)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_integers_are_states_of_their_own(batch):
    def twice(state):
        assert state.shape == () and jnp.issubdtype(state.dtype, jnp.integer)
        return 2 * state

    states = np.arange(6)[: int(np.prod(batch))].reshape(batch)
    np.testing.assert_array_equal(over_states(twice, states), 2 * states)


def test_integer_vectors_are_read_as_floats():
    found = over_vectors(lambda state: state.sum(), np.arange(6).reshape(2, 3))
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, [3, 12])


def test_axes_are_of_all_arguments():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(2, 3, 2)
    found = over_axes(lambda a, b: a * b.sum(), 2)(x, y)
    np.testing.assert_allclose(found, x * y.sum(-1))
