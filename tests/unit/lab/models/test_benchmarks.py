"""Worlds of the experiments on learned models: data of many seeds, paths and futures that agree."""

import numpy as np
import pytest

from chance import error_of_mean
from ggpi.lab.models.benchmarks import FIRST_STEPS, WORLDS, check_worlds, gather, pairs


@pytest.fixture(params=WORLDS)
def world(request):
    if "maze" in request.param:
        pytest.importorskip("gymnasium_robotics")
    return WORLDS[request.param]()


def test_every_seed_has_its_own_trajectories(world):
    data = gather(world, 640, 960, 3, seed=0)
    assert len(data) == 640 + 3 * 960
    assert (data.behaviour[:640] == -1).all() and set(data.behaviour[640:]) == {0, 1, 2}
    assert (np.bincount(data.behaviour[640:]) > 700).all()
    for episode in data.episodes():
        assert (
            len(set(episode.behaviour)) == 1 and (np.diff(episode.step) == 1).all() and episode.step[0] == 0
        )
        np.testing.assert_array_equal(episode.state[1:], episode.next_state[:-1])
    assert (np.diff(data.episode) >= 0).all()


def test_recorded_steps_are_those_of_the_dynamics(world):
    data = gather(world, 320, 320, 1, seed=1)
    moved = world.dynamics.step(data.state, data.action, np.random.default_rng(0))
    np.testing.assert_allclose(moved, data.next_state, atol=1e-4)


@pytest.mark.slow
def test_futures_are_states_of_paths_at_a_geometric_time(world):
    beta, n, steps = 0.7, 1000, 40
    state, action = (np.repeat(part, n, axis=0) for part in pairs(world, 1, seed=2))
    paths, futures = world.paths(state, action, steps, seed=3), world.futures(state, action, beta, seed=4)
    times = np.minimum(np.random.default_rng(5).geometric(1 - beta, n), steps) - 1
    ended = paths[np.arange(n), times]
    deviation = np.hypot(futures.std(axis=0), ended.std(axis=0))
    # collisions are rare and large: the width of what is reached at any time bounds them
    error = error_of_mean(deviation, n, np.ptp(paths, axis=(0, 1)), comparisons=world.spec.size)
    assert (np.abs(futures.mean(axis=0) - ended.mean(axis=0)) < error + 1e-6).all()


def test_pairs_are_early(world):
    state, action = pairs(world, 50, seed=6)
    assert state.shape == (50, world.spec.size) and len(action) == 50
    assert FIRST_STEPS < 60


def test_unknown_worlds():
    with pytest.raises(ValueError, match=r"\['moon'\]; there are point-mass, pendulum"):
        check_worlds(("moon",))
