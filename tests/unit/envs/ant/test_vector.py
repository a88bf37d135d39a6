"""The vector ant: bit for bit what gymnasium's own vector of single ants does."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

pytest.importorskip("mujoco")

from ggpi.envs.ant import SparseAnt, SparseAntVector


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key in ours:
        if isinstance(ours[key], dict):
            same(ours[key], theirs[key])
        else:
            for a, b in zip(ours[key], theirs[key], strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target, radius", [(None, 0.5), ("random", 1.7)])
def test_bit_exact_with_single_ants(target, radius):
    """Over episode ends, which for random targets are of both kinds."""
    mode = AutoresetMode.SAME_STEP
    make = [lambda: SparseAnt(target=target, radius=radius)] * 5
    theirs, ours = SyncVectorEnv(make, autoreset_mode=mode), SparseAntVector(5, target=target, radius=radius)
    assert ours.metadata["autoreset_mode"] == mode
    rng, ends = np.random.default_rng(0), np.zeros(2, int)
    answers = ours.reset(seed=7), theirs.reset(seed=7)
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    for _ in range(160):
        action = rng.uniform(-1.3, 1.3, (5, 8)).astype(np.float32)
        mine, yours = ours.step(action), theirs.step(action)
        for a, b in zip(mine[:4], yours[:4], strict=True):
            np.testing.assert_array_equal(a, b)
        same(mine[4], yours[4])
        ends += mine[2].sum(), mine[3].sum()
    assert ends[1] >= 3 and (ends[0] > 0) == (target is not None)


def test_threads_and_neighbours_do_not_matter():
    def last(ants, threads):
        env = SparseAntVector(ants, target=None, num_threads=threads)
        env.reset(seed=3)
        rng = np.random.default_rng(0)
        for _ in range(30):
            state = env.step(rng.uniform(-1, 1, (1, 8)).repeat(ants, axis=0))[0]
        return state[0]

    np.testing.assert_array_equal(last(1, 1), last(40, 2))


def test_made_by_gymnasium():
    env = gymnasium.make_vec("ggpi/SparseAnt-v0", num_envs=3, target=(1.0, 2.0))
    assert isinstance(env, VectorEnv) and env.num_envs == 3
    state, info = env.reset(seed=0)
    assert state in env.observation_space and (info["target"] == [1, 2]).all()
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    wrapped.reset(seed=0)
    for _ in range(150):
        info = wrapped.step(env.action_space.sample())[4]
    assert "episode" in info and (info["episode"]["l"] == 150).all()


def test_only_some_are_reset():
    env = SparseAntVector(4, target=None)
    env.reset(seed=0)
    before = env.step(np.ones((4, 8)))[0]
    mask = np.array([True, False, False, True])
    after, _ = env.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(after[~mask], before[~mask])
    assert (after[mask] != before[mask]).any(axis=1).all() and (env.steps == [0, 1, 1, 0]).all()


def test_divergence_of_one_leaves_the_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env, calm = SparseAntVector(3, target=None), SparseAntVector(3, target=None)
    start, _ = env.reset(seed=0)
    calm.reset(seed=0)
    env.batch.qvel[1, 2] = np.nan
    state, reward, terminated, truncated, info = env.step(np.zeros((3, 8)))
    assert terminated.tolist() == [False, True, False] and not truncated.any() and not reward.any()
    assert info["final_info"]["reason"][1] == "diverged" and np.isfinite(state).all()
    np.testing.assert_array_equal(info["final_obs"][1], start[1])
    np.testing.assert_array_equal(state[[0, 2]], calm.step(np.zeros((3, 8)))[0][[0, 2]])


@pytest.mark.parametrize("wrong", [np.zeros((3, 8)), np.zeros(8), np.full((2, 8), np.nan), np.zeros((2, 7))])
def test_bad_actions(wrong):
    env = SparseAntVector(2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="actions"):
        env.step(wrong)


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least one"):
        SparseAntVector(0)
    env = SparseAntVector(2)
    with pytest.raises(ValueError, match="one seed"):
        env.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": [1, 0]})
    with pytest.raises(ValueError, match="two finite numbers"):
        env.reset(options={"target": "there"})
