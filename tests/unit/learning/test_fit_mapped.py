"""fit on data that are larger than memory, loose, or of unknown behaviour."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae
import ggpi.learning.losses
from ggpi.data import read_npy, within_memory, write_npy
from ggpi.envs import GymVectorEnv, PointMass
from ggpi.policies import direction_policies

POLICIES = direction_policies()[:2]
DATA = ggpi.collect(GymVectorEnv(PointMass(), 8, 20), POLICIES, 2000, switch_every=10, seed=0)
GIVEN = {
    "steps": 20,
    "batch_size": 32,
    "model": ggpi.ghm.vae.VAEConfig(width=16, depth=1),
    "key": jax.random.key(7),
}


def fit(data, **changes):
    return ggpi.fit(POLICIES, data, gamma=0.9, alpha=1 / 9, **GIVEN | changes)


def leaves(ghms):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(ghms.models) if hasattr(leaf, "shape")]


def assert_same(one, other):
    for first, second in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_mapped_data_that_fit_are_like_any_other(tmp_path):
    write_npy(tmp_path, DATA)
    assert_same(fit(read_npy(tmp_path)), fit(DATA))


@pytest.mark.slow
def test_mapped_data_that_do_not_fit_are_sampled_and_it_is_said(tmp_path, monkeypatch):
    write_npy(tmp_path, DATA)
    memory = 0.25 * DATA.nbytes / 1e9
    with pytest.warns(UserWarning, match=r"2000 transitions need .* \d+ of 104 episodes drawn at random"):
        monkeypatch.setattr("ggpi.learning.fitting.MEMORY", memory)
        sampled = fit(read_npy(tmp_path))
    with pytest.warns(UserWarning):
        part = within_memory(DATA, memory, seed=int(jax.random.key_data(jax.random.key(7))[-1]))
    assert_same(sampled, fit(part))
    whole = fit(within_memory(read_npy(tmp_path), 1.0))
    assert_same(whole, fit(DATA))


@pytest.mark.slow
def test_unknown_behaviour_and_loose_transitions_are_one_step_cetd():
    unknown = replace(DATA, behaviour=np.full(len(DATA), -1))
    with pytest.warns(UserWarning, match=r"n_step is 20, .* the behaviour policy is unknown"):
        told = fit(unknown)
    assert_same(told, fit(unknown, loss=ggpi.learning.losses.CETD(n_step=1)))
    loose = replace(DATA, episode=np.arange(len(DATA)), step=np.zeros(len(DATA), int))
    with pytest.warns(UserWarning, match="the transitions are loose"):
        fit(loose)
    with pytest.raises(ValueError, match=r"CEMC needs trajectories.*the transitions are loose"):
        fit(loose, loss="cemc")
