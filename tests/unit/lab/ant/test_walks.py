"""Walks for one network, and the ant's models that are made from it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("mujoco")

from ggpi.envs.ant import AntDynamics
from ggpi.ghm.symmetric import DirectedGHM
from ggpi.ghm.timed import TimedConfig
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import TOWARDS_X, WalkConfig, fit_models, without_noise
from ggpi.lab.ant.walks import LENGTH, walks
from ggpi.learning.targets import needed_steps
from ggpi.storage.pretrained import pretrained


def test_walks_start_towards_x_and_are_long_enough():
    data = walks(24, 0)
    assert len(data) == 24 * LENGTH and needed_steps([ant.GAMMA]) <= LENGTH
    starts = data.state[data.episode_starts]
    assert len(starts) == 24 and (data.behaviour == 0).all() and not data.terminated.any()
    forward, up = starts[:, 3:6], starts[:, 6:9]
    assert (forward[:, 0] >= np.abs(np.cross(up, forward)[:, 0]) - 1e-6).all(), "the body faces +x"
    assert len(np.unique(starts[:, 2:].round(4), axis=0)) == 24
    np.testing.assert_array_equal(data.state[1:LENGTH], data.next_state[: LENGTH - 1])
    moved = AntDynamics().step(data.state[:LENGTH], data.action[:LENGTH])
    np.testing.assert_allclose(moved, data.next_state[:LENGTH], atol=1e-4)
    same, other = walks(24, 0), walks(24, 1)
    np.testing.assert_array_equal(same.state, data.state)
    assert not np.array_equal(other.state, data.state)


@pytest.mark.slow
def test_one_training_makes_four_models_at_both_horizons(tmp_path):
    recipe = replace(WalkConfig().recipe, model=TimedConfig(width=8, depth=1, longest=LENGTH))
    config = WalkConfig(num_walks=64, recipe=replace(recipe, steps=4, batch_size=16))
    ghms = fit_models(config, tmp_path)
    assert ghms.horizons == pytest.approx((0.9, 0.8)) and ghms.names == ["right", "up", "left", "down"]
    for models in ghms.models:
        assert isinstance(models, DirectedGHM) and models.direction.tolist() == [0, 1, 2, 3]
    longer, shorter = (models.base for models in ghms.models)
    assert longer.network.first is shorter.network.first and longer.beta[0] > shorter.beta[0]
    assert (tmp_path / TOWARDS_X / "metrics.jsonl").exists()
    again = fit_models(config, tmp_path)
    for one, other in zip(jax.tree.leaves(again.models), jax.tree.leaves(ghms.models), strict=True):
        np.testing.assert_array_equal(one, other)
    quiet = without_noise(ghms).segment(1, None)
    state, action = jnp.asarray(walks(8, 0).state[0]), jnp.zeros(8)
    noise = np.random.default_rng(0).normal(size=(2, quiet.noise_size)).astype(np.float32)
    noise[:, 0] = 0.3
    np.testing.assert_array_equal(*(quiet.push(state, action, jnp.asarray(part)) for part in noise))
    with pytest.raises(TypeError, match="no decoder noise"):
        without_noise(pretrained("maze-ghms"))
    assert len(pretrained("ant-policies")) == 4
