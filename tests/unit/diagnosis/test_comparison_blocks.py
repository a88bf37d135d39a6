"""compare on executors: blocks of episodes are comparisons of their own, put together."""

from functools import partial

import jax
import numpy as np
import pytest

import cluster_tasks
import ggpi
from ggpi import cluster
from ggpi._jax.batching import stack
from ggpi.diagnosis.comparison import BLOCK
from ggpi.envs import PointMass
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.policies.linear import direction_policies

pytestmark = pytest.mark.slow

ENV, EPISODES = "ggpi/PointMass-v0", 13
COLUMNS = ("total", "discounted", "steps", "terminated")


@pytest.fixture(scope="module")
def compare():
    """Of untrained models: what counts here is which episodes are played."""
    policies = tuple(direction_policies())[:2]
    data = ggpi.collect(ENV, policies, 300)
    frame = fit_frame(data.state, data.action, data.next_state, PointMass.spec, None)
    keys = jax.random.split(jax.random.key(0), len(policies))
    models = stack([VAEConfig(width=4, depth=1).build(frame, key=key) for key in keys])
    ghms = ggpi.GHMs(policies, 0.8, (0.5,), (models, models))
    reward = ggpi.rewards.state(cluster_tasks.first_coordinate)  # which tells episodes apart
    agents = {"GPI": ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=4)}
    return partial(ggpi.compare, ENV, ghms, reward, agents=agents, max_steps=6)


def assert_same(found, expected):
    assert [(score.name, score.kind) for score in found] == [(score.name, score.kind) for score in expected]
    for one, other in zip(found, expected, strict=True):
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(one, column), getattr(other, column), err_msg=one.name)


def test_blocks_are_comparisons_of_their_own(compare):
    whole = compare(episodes=EPISODES, seed=5, executor=cluster.local())
    first = compare(episodes=BLOCK, seed=5)
    second = compare(episodes=EPISODES - BLOCK, seed=5 + BLOCK)
    assert len(whole.scores) == 4
    for score, one, other in zip(whole.scores, first.scores, second.scores, strict=True):
        assert score.name == one.name == other.name and score.kind == one.kind
        for column in COLUMNS:
            parts = getattr(one, column), getattr(other, column)
            np.testing.assert_array_equal(getattr(score, column), np.concatenate(parts))


def test_one_block_is_the_whole(compare):
    assert_same(compare(episodes=4, executor=cluster.local()).scores, compare(episodes=4).scores)


@pytest.mark.slow
def test_processes_play_the_same_episodes(compare):
    with cluster.processes(1) as one, cluster.processes(2) as two:
        found = [compare(episodes=EPISODES, executor=executor).scores for executor in (one, two)]
    assert_same(*found)
