"""Quick keys give the numbers of the keys that they were made of."""

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from chance import FAILURE
from ggpi._jax.alias import uniform
from ggpi._jax.random import quick, threefry


def test_threefry_is_that_of_jax():
    key, words = jax.random.key_data(jax.random.key(7)), jnp.arange(10, dtype=jnp.uint32) * 12345
    expected = jax.extend.random.threefry_2x32(tuple(key), words)
    np.testing.assert_array_equal(jnp.concatenate(threefry(key, words[:5], words[5:])), expected)


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_uniform_numbers(kind):
    u = np.asarray(uniform(jax.random.key(0, impl=kind), (101, 99)))
    assert u.shape == (101, 99) and u.min() >= 0 and u.max() < 1
    counts, _ = np.histogram(u, bins=20, range=(0, 1))
    chi_square = ((counts - u.size / 20) ** 2).sum() / (u.size / 20)
    assert chi_square < stats.chi2.isf(FAILURE / 2, 19)
    assert abs(np.corrcoef(u.ravel()[:-1], u.ravel()[1:])[0, 1]) < stats.norm.isf(FAILURE / 8) / np.sqrt(
        u.size
    )
    assert len(np.unique(u)) > 0.99 * u.size


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: jax.random.normal(key, (7, 5)),
        lambda key: jax.random.uniform(key, ()),
        lambda key: jax.random.bits(key, (9,), "uint8"),
        lambda key: jax.random.randint(key, (3,), 0, 100),
        lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
        lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 - 1)),
        lambda key: jax.vmap(lambda one: jax.random.normal(one, (4,)))(jax.random.split(key, 6)),
    ],
)
def test_a_quick_key_draws_the_same_numbers(draw):
    key = jax.random.key(11)
    np.testing.assert_array_equal(draw(key), draw(quick(key)))


def test_keys_of_other_kinds_and_quick_ones_stay_as_they_are():
    for key in (jax.random.key(0, impl="rbg"), quick(jax.random.key(0))):
        assert jax.random.key_impl(quick(key)) == jax.random.key_impl(key)
