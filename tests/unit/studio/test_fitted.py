"""Directories of `ggpi fit`: any environment of Gymnasium is shown, from where it resets."""

import contextlib
import io
import json
import os

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box

import ggpi
from ggpi._jax.batching import stack
from ggpi.data import Transitions
from ggpi.data.files import read_npz, write_npz
from ggpi.ghm import GHMs
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.policies.linear import linear_policy
from ggpi.studio.catalogue import directory

from .conftest import connected, running

STEPS = 6


class Line(gymnasium.Env):
    """A point on a line that goes where it is pushed, for six steps."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time = np.zeros(2, np.float32), 0
        return self.state.copy(), {}

    def step(self, action):
        self.time += 1
        self.state = np.array([self.state[0] + 0.5 * action[0], action[0]], np.float32)
        return self.state.copy(), 0.0, False, self.time >= STEPS, {}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Fresh models of two policies, and what they would have learned from."""
    gymnasium.register("test/StudioLine-v0", entry_point=Line)
    folder, rng = tmp_path_factory.mktemp("line"), np.random.default_rng(0)
    states, actions = rng.normal(size=(200, 2)), rng.uniform(-1, 1, (200, 1))
    frame = fit_frame(states, actions, states, ggpi.StateSpec(("place", "speed")), None)
    keys = jax.random.split(jax.random.key(0), 2)
    models = stack([VAEConfig(width=8, depth=1).build(frame, key=key) for key in keys])
    ways = (("on", 1), ("back", -1))
    policies = tuple(linear_policy(np.zeros((1, 2)), push, 0.0, name) for name, push in ways)
    ggpi.save(folder / "models", GHMs(policies, 0.8, (0.5,), (models, models)))
    flags, numbers = np.zeros(200, bool), np.arange(200)
    write_npz(
        folder / "data.npz",
        Transitions(states, actions, states, flags, ~flags, 0 * numbers, numbers, 0 * numbers),
    )
    world = {"env": "test/StudioLine-v0", "names": ["place", "speed"], "relative": [], "keys": []}
    about = {"format": "ggpi world 1", "options": {}, "actions": "1 numbers", **world}
    (folder / "world.json").write_text(json.dumps(about))
    yield folder
    del gymnasium.registry["test/StudioLine-v0"]


@pytest.fixture
def client(place):
    with running(worlds={"mine": directory(place, "mine")}) as port, connected(port) as client:
        yield client


@pytest.mark.slow
def test_an_episode_is_played_to_its_end(client):
    about, moment = client.open("mine")
    assert about["axes"] == ["place", "speed"] and about["policies"] == ["on", "back"]
    assert not about["put"] and not about["simulator"] and not about["free"] and about["closed_loop"]
    assert about["bounds"][0] < -2 and about["bounds"][2] > 2, "the map shows the data"
    assert moment["place"] == [0, 0] and moment["count"] == 4
    client.send("change", speed=0, depth=1, samples=5)
    client.send("play")
    ended = client.until("moment", lambda frame: frame["ended"])
    assert ended["t"] == STEPS and len(ended["way"]) == STEPS
    assert client.until("tally")["tally"][0]["episodes"] == 1
    client.send("reset")
    assert not client.until("moment", lambda frame: frame["t"] == 0)["ended"]


def test_the_map_shows_states_of_the_data(client, place):
    """An agent cannot be put anywhere, so there is no grid of states at rest."""
    states = read_npz(place / "data.npz").state
    client.open("mine")
    client.send("change", formula="place - speed")
    found = client.until("rewards", lambda frame: frame["formula"] == "place - speed")
    np.testing.assert_allclose(found["places_array"], states, rtol=1e-6)
    np.testing.assert_allclose(found["values_array"], states[:, 0] - states[:, 1], atol=1e-5)


def test_what_needs_simulation_is_explained(client):
    client.open("mine")
    client.send("put", x=0.0, y=0.0)
    assert "cannot be put there" in client.until("error")["text"]
    client.send("diagnose")
    assert "ggpi diagnose" in client.until("error")["text"]
    client.send("explain", agent=0, t=0)
    found = client.until("explained")
    assert found["truth"] == "none" and len(found["plans"]) == 4 and "true" not in found["plans"][0]


def test_its_code_runs(client, place):
    client.open("mine")
    client.send("change", depth=1, samples=5)
    settings = client.until("settings", lambda frame: frame["depth"] == 1)
    assert f"ggpi play {os.fspath(place)} " in settings["command"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(settings["python"], {})
    assert printed.getvalue().strip() in ("on", "back")
