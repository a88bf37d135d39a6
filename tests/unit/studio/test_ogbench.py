"""OGBench's mazes: models of the cache, or how to make them."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("ogbench", reason="needs the extra ogbench")
from ggpi.lab.ogbench import mazes, models
from ggpi.studio import ogbench
from ggpi.studio.catalogue import WORLDS

from .conftest import connected, running

MAZE = "pointmaze-medium"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_missing_models_are_explained(cache):
    with (
        running(worlds={MAZE: WORLDS[MAZE]}) as port,
        connected(port) as client,
    ):
        client.send("open", world=MAZE)
        assert f"ggpi run ogbench-mazes --maze {MAZE}" in client.until("error")["text"]


@pytest.mark.slow
def test_a_maze_opens_in_the_closed_loop(cache, monkeypatch):
    """With models of a short training: the agent is planned for, moves, and is put anywhere but into walls."""
    tiny = replace(mazes.PRESETS["tiny"], maze=MAZE)
    monkeypatch.setitem(mazes.PRESETS, "cpu", tiny)
    monkeypatch.setattr(ogbench, "COLLECTED", 2_048)
    monkeypatch.setattr(ogbench, "LANDMARKS", 100)
    models.models(mazes.training_of(tiny, 0))
    world = ogbench.ogbench_world(MAZE)
    low, high = np.array(world.bounds[:2]), np.array(world.bounds[2:])
    assert world.ghms.network is not None and (high - low > 20).all() and len(world.walls) > 20
    with running(worlds={MAZE: lambda: world}) as port, connected(port) as client:
        about, moment = client.open(MAZE)
        assert about["closed_loop"] and about["free"] and moment["count"] == 8
        client.send("step")
        moved = client.until("moment", lambda frame: frame["t"] == 1)
        assert 0 < np.hypot(*np.subtract(moved["place"], moment["place"])) < 1
        client.send("put", x=float(world.walls[0][0]) + 1, y=float(world.walls[0][1]) + 1)
        assert "cannot be put" in client.until("error")["text"]
        client.send("change", depth=2, alpha=0.1)
        assert client.until("moment", lambda frame: frame["count"] == 64)
