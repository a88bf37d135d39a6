"""Layers and their gradients are those of the plain formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi._jax.networks import affine, mlp, silu

RNG = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def test_silu_and_its_gradient():
    x = jnp.linspace(-30, 30, 2001)
    np.testing.assert_allclose(silu(x), jax.nn.silu(x), rtol=1e-5, atol=1e-5)
    ours, theirs = (jax.vmap(jax.grad(f))(x) for f in (silu, jax.nn.silu))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("outputs", [2, 20])
@pytest.mark.parametrize("stacked", [False, True])
def test_gradients_of_an_affine_map(outputs, stacked):
    """Narrow and wide layers, of one model and of stacked ones."""
    shapes = (7, 5), (5, outputs), (outputs,), (7, outputs)
    arrays = [normal(*((3, *shape) if stacked else shape)) for shape in shapes]

    def total(layer, x, weight, bias, scale):
        return (scale * jnp.sin(layer(x, weight, bias))).sum()

    def gradients(layer):
        found = jax.grad(lambda *args: total(layer, *args), argnums=(0, 1, 2))
        return (jax.vmap(found) if stacked else found)(*arrays)

    for one, other in zip(gradients(affine), gradients(lambda x, w, b: x @ w + b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_batch_is_its_entries():
    network = mlp((4, 8, 8, 3), key=jax.random.key(0))
    x = normal(6, 4)
    np.testing.assert_allclose(network(x), jax.vmap(network)(x), rtol=1e-5, atol=1e-6)
