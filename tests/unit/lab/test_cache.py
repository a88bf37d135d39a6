"""Trained models are kept by config, and belong to the policies that they were trained for."""

from dataclasses import dataclass

import jax
import pytest

import ggpi
from ggpi._jax.batching import stack
from ggpi.envs import PointMass
from ggpi.ghm import GHMs
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.cache import SECONDS, finished, kept, seconds_of
from ggpi.policies.linear import direction_policies
from ggpi.storage.arrays import write_json


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    steps: int = 10


def test_each_config_has_its_place(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    places = {kept(settings, "toys") for settings in (Settings(), Settings(1), Settings(0, 20), Settings())}
    assert len(places) == 3 and {place.parent for place in places} == {tmp_path / "ggpi" / "toys"}


def test_the_seconds_of_a_training_are_noted_beside_it(tmp_path):
    assert seconds_of(tmp_path) is None
    write_json(tmp_path / SECONDS, {"training": 2.5})
    assert seconds_of(tmp_path) == 2.5


def test_models_of_other_policies_are_refused(tmp_path):
    right, up, *_ = direction_policies()
    assert finished(tmp_path, [right]) is None, "nothing is there yet"
    data = ggpi.collect("ggpi/PointMass-v0", [right], 400)
    frame = fit_frame(data.state, data.action, data.next_state, PointMass.spec, None)
    vaes = stack([VAEConfig(width=8, depth=1).build(frame, key=jax.random.key(0))])
    ggpi.save(tmp_path / "models", GHMs((right,), 0.8, (), (vaes,)))
    found = finished(tmp_path, [right])
    assert found is not None and found.names == ["right"]
    with pytest.raises(ValueError, match=r"holds models of other policies.* remove it"):
        finished(tmp_path, [up])
