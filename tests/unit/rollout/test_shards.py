"""Collecting in shards: the same transitions on every executor and in every order, in memory and on disk."""

from functools import partial

import gymnasium
import numpy as np
import pytest

import seeds
from ggpi import cluster, collect
from ggpi.data.memory import is_mapped
from ggpi.data.transitions import FIELDS
from ggpi.envs import GymVectorEnv, PointMass
from ggpi.policies.linear import direction_policies
from ggpi.rollout.shards import planned

STEPS, SHARDS = 250, 3
collect_all = partial(
    collect, "ggpi/PointMass-v0", direction_policies(), STEPS, switch_every=5, num_envs=4, seed=7
)


class Backwards(cluster.Executor):
    """Runs the last task first."""

    workers = 1

    def completed(self, function, tasks, *, begin=None):
        return ((name, function(tasks[name])) for name in reversed(tasks))

    def _pool(self, function):
        raise AssertionError

    def close(self):
        pass


@pytest.fixture(scope="module")
def expected():
    return collect_all(shards=SHARDS)


def assert_same(found, expected):
    for field in FIELDS:
        one, other = getattr(found, field), getattr(expected, field)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_shards_are_collections_of_their_own(expected):
    """Each with its seed; the episodes of one follow those of another."""
    episodes = 0
    for shard in planned(STEPS, SHARDS, seed=7).values():
        part = collect(
            "ggpi/PointMass-v0",
            direction_policies(),
            shard.count,
            switch_every=5,
            num_envs=4,
            seed=shard.seed,
        )
        here = expected[shard.rows]
        np.testing.assert_array_equal(here.state, part.state)
        np.testing.assert_array_equal(here.behaviour, part.behaviour)
        np.testing.assert_array_equal(here.episode, part.episode + episodes)
        assert here.episode_ends[-1] and (here.truncated | here.terminated)[-1]
        episodes += part.episode.max() + 1
    assert len(expected) == STEPS


def test_one_shard_is_the_whole(tmp_path):
    assert_same(collect_all(shards=1), collect_all())


def test_shards_differ(expected):
    seeds = [shard.seed for shard in planned(STEPS, 100, seed=7).values()]
    assert len(set(seeds)) == 100
    first, second = (
        expected[shard.rows].state[:50] for shard in list(planned(STEPS, SHARDS, 7).values())[:2]
    )
    assert not np.isin(first, second).all(axis=1).any()


@pytest.mark.parametrize("num_steps", [1, 2, 99, 100, 101])
def test_rows_of_shards_are_all_rows(num_steps):
    shards = list(planned(num_steps, 7, seed=0).values())
    assert [row for shard in shards for row in range(num_steps)[shard.rows]] == list(range(num_steps))
    assert all(shard.count for shard in shards) and len(shards) == min(7, num_steps)


def test_order_does_not_matter(expected):
    assert_same(collect_all(shards=SHARDS, executor=Backwards()), expected)


@pytest.mark.skipif(seeds.OFFSET != 0, reason="other processes start from seeds that are not shifted")
def test_processes_collect_the_same(expected, tmp_path):
    with cluster.processes(2) as executor:
        assert_same(collect_all(shards=SHARDS, executor=executor), expected)
        assert_same(collect_all(shards=SHARDS, executor=executor, mapped=tmp_path / "data"), expected)


def test_shards_go_to_disk(expected, tmp_path):
    found = collect_all(shards=SHARDS, executor=Backwards(), mapped=tmp_path / "data")
    assert is_mapped(found)
    assert_same(found, expected)


def test_environments_of_functions():
    make = partial(GymVectorEnv, PointMass(), max_steps=20)
    found = collect(make, direction_policies(), 90, shards=2, num_envs=4, seed=1)
    assert_same(found[:45], collect(make(4), direction_policies(), 45, seed=1))


def test_given_environments_cannot_be_sharded():
    env = gymnasium.make("ggpi/PointMass-v0")
    with pytest.raises(TypeError, match="give an id, or a function of num_envs"):
        collect(env, direction_policies(), 10, shards=2)
    with pytest.raises(ValueError, match="shards is at least 1, got 0"):
        collect_all(shards=0)


def test_errors_name_the_shard():
    with pytest.raises(cluster.TaskError, match="task shard-0: "):
        collect("ggpi/NoSuchWorld-v0", direction_policies(), 10, executor=cluster.local())
