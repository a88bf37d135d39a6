"""Samples of many rows are those of each row, however many are drawn at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi._jax.batching import stack
from ggpi.data import StateSpec
from ggpi.ghm import samplers
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.timed import TimedConfig
from ggpi.policies import direction_policies
from ggpi.policies.bank import PolicyBank


@pytest.mark.parametrize("count", [3, 8, 9, 13, 40])
def test_rows_are_sampled_in_blocks(monkeypatch, count):
    """Blocks of 4 rows: the same values in the same places, also where the last block is not full."""
    monkeypatch.setattr(samplers, "BLOCK", 4)
    seen = []

    def function(x, a):
        seen.append(x.shape[1])
        return 10 * x + a[..., None]

    x, a = jnp.arange(2.0 * count * 3).reshape(2, count, 3), jnp.arange(2.0 * count).reshape(2, count)
    found = samplers._by_blocks(function, x, a)
    np.testing.assert_array_equal(found, 10 * x + a[..., None])
    assert seen == [count if count <= 8 else 4]


def test_jumps_do_not_depend_on_the_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    state, action = (
        rng.normal(size=(2, 50, 3)).astype(np.float32),
        rng.normal(size=(2, 50, 2)).astype(np.float32),
    )
    frame = fit_frame(state[0], action[0], state[1], StateSpec(("x", "y", "speed"), relative=(0, 1)), None)
    model = TimedConfig(width=8, depth=1, longest=60).build(frame, key=jax.random.key(0)).at_horizon(0.7)
    sampler = samplers.ModelSampler(
        (stack([model] * 2),), PolicyBank(direction_policies()[:2]), None, 0.7, (0.7,)
    )
    found = []
    for size in (512, 7):
        monkeypatch.setattr(samplers, "BLOCK", size)
        found.append(
            sampler.jump((0, 1), 0.7, jnp.asarray(state), jnp.asarray(action), key=jax.random.key(1))
        )
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)
