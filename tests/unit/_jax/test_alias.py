"""Alias tables stand for exactly the distributions that they were built from."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggpi._jax.alias import alias_table


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([0.05, 1.0, 50.0]))
def test_the_table_stands_for_its_rows(seed, size, concentration):
    rows = np.random.default_rng(seed).dirichlet(np.full(size, concentration), 4)
    table = alias_table(rows)
    keep, alias = np.asarray(table.keep, float), np.asarray(table.alias)
    implied = keep / size
    for i in range(4):
        np.add.at(implied[i], alias[i], (1 - keep[i]) / size)
    np.testing.assert_allclose(implied, rows, atol=1e-6)
    assert (implied[rows == 0] < 1e-7).all()


def test_draws_of_any_shape():
    table = alias_table(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]))
    drawn = table.sample(jnp.array([[0, 1], [1, 0]]), key=jax.random.key(0))
    assert drawn.shape == (2, 2) and drawn[0, 0] == drawn[1, 1] == 1
    assert 1 not in np.asarray(table.sample(jnp.ones(1000, int), key=jax.random.key(1)))
