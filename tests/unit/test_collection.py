"""Collecting: who acted, where episodes end, and what is recorded there."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ggpi import TabularMDP, TabularPolicy, collect
from ggpi.envs import PointMass
from ggpi.policies.linear import MixedPolicy, direction_policies, linear_policy

MODES = list(AutoresetMode)


class Count(gymnasium.Env):
    """The state is (time, episode, last action); every third episode terminates, the others are truncated."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float32)
    action_space = Discrete(2)

    def __init__(self, length=5, about=None):
        self.length, self.about, self.episode = length, about or {}, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time, self.last = self.episode + 1, 0, -1
        return self._seen(), {}

    def step(self, action):
        self.time, self.last = self.time + 1, int(action)
        over = self.time == self.length + self.episode % 2
        terminal = over and self.episode % 3 == 0
        return self._seen(), 0.0, terminal, over and not terminal, self.about if terminal else {}

    def _seen(self):
        return np.array([self.time, self.episode, self.last], np.float32)


def always(action):
    return MixedPolicy(jnp.eye(2)[action], f"always {action}")


BOTH = [always(0), always(1)]


def counters(mode, n=3, **about):
    return SyncVectorEnv([lambda: Count(about=about)] * n, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_every_row_is_a_true_transition_in_every_autoreset_mode(mode):
    data = collect(counters(mode), BOTH, 97, switch_every=3, seed=1)
    assert len(data) == 97
    np.testing.assert_array_equal(data.next_state[:, 0], data.state[:, 0] + 1)
    np.testing.assert_array_equal(data.next_state[:, 1], data.state[:, 1])
    np.testing.assert_array_equal(data.next_state[:, 2], data.action)
    np.testing.assert_array_equal(data.behaviour, data.action)
    np.testing.assert_array_equal(data.step, data.state[:, 0])


@pytest.mark.parametrize("mode", MODES)
def test_episodes_follow_each_other_and_end_once(mode):
    data = collect(counters(mode), BOTH, 100)
    lengths = []
    for number, episode in enumerate(data.episodes()):
        assert (episode.episode == number).all()
        np.testing.assert_array_equal(episode.state[1:], episode.next_state[:-1])
        ends = episode.terminated | episode.truncated
        assert ends[-1] and not ends[:-1].any()
        assert not (episode.terminated & episode.truncated).any()
        assert len(set(episode.behaviour)) == 1, "one policy per episode"
        whole = len(episode) == 5 + episode.state[0, 1] % 2
        assert episode.terminated[-1] == (whole and episode.state[0, 1] % 3 == 0)
        lengths.append(len(episode))
    assert sum(lengths) == 100 and lengths[:2] == [5, 6]


@pytest.mark.parametrize("mode", MODES)
def test_a_done_task_is_not_the_end_of_the_world(mode):
    data = collect(counters(mode, world_ended=False), BOTH, 60)
    assert not data.terminated.any()
    assert collect(counters(mode, world_ended=True), BOTH, 60).terminated.any()


def test_turns_last_uniformly_many_steps():
    env = SyncVectorEnv([lambda: Count(length=2000)] * 20)
    policies = [always(0), always(1)] * 10
    data = collect(env, policies, 20_000, switch_every=4, seed=2)
    runs = []
    for episode in data.episodes():
        changes = np.flatnonzero(np.diff(episode.behaviour)) + 1
        runs.append(np.diff(changes))
    runs = np.concatenate(runs)
    # A turn goes to the same policy again with probability 1/20.
    shares = [(runs == length).mean() for length in range(1, 5)]
    one, two = 0.95 / 4, 0.95 / 4 + 0.05 / 4 * 0.95 / 4
    bound = 5 * np.sqrt(0.25 / len(runs))
    assert abs(shares[0] - one) < bound and abs(shares[1] - two) < bound
    counts = np.bincount(data.behaviour, minlength=20)
    assert counts.min() > 600 and counts.max() < 1400


def test_the_same_seed_gives_the_same_data():
    first, again, other = (
        collect("ggpi/PointMass-v0", direction_policies(), 500, switch_every=40, num_envs=4, seed=seed)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.state, again.state)
    assert not np.array_equal(first.state, other.state)
    np.testing.assert_array_equal(
        first.next_state, PointMass().step(first.state, first.action).astype(np.float32)
    )
    assert first.state.dtype == first.action.dtype == np.float32
    assert first.state.shape == (500, 4) and first.action.shape == (500, 2)


def test_one_environment_and_progress():
    seen = []
    data = collect(
        gymnasium.make("ggpi/PointMass-v0", max_steps=7), direction_policies(), 20, progress=seen.append
    )
    assert data.step.tolist() == [*range(7), *range(7), *range(6)]
    assert data.truncated.sum() == 3 and seen == list(range(1, 21))


def test_discrete_states():
    env = gymnasium.make("FrozenLake-v1")
    mdp, _ = TabularMDP.from_gymnasium(env)
    policies = [TabularPolicy.constant(mdp, a) for a in range(4)]
    data = collect("FrozenLake-v1", policies, 300, switch_every=2)
    assert data.state.shape == (300,) and data.state.dtype.kind == "i"
    np.testing.assert_array_equal(data.action, data.behaviour)
    for x, a, y, end in zip(data.state, data.action, data.next_state, data.terminated, strict=True):
        assert (y, end) in {(following, ends) for _, following, _, ends in env.unwrapped.P[x][a]}
    assert data.terminated.any()


def test_actions_out_of_range_are_clipped_and_counted():
    far = linear_policy(np.zeros((2, 4)), (3.0, 0.5), 0.0, low=-np.inf, high=np.inf)
    with pytest.warns(UserWarning, match="50 of 50 actions were outside"):
        data = collect(gymnasium.make("ggpi/PointMass-v0"), [far], 50)
    np.testing.assert_array_equal(data.action, np.tile([1.0, 0.5], (50, 1)))


def test_bad_input():
    with pytest.raises(ValueError, match="at least one step"):
        collect("ggpi/PointMass-v0", direction_policies(), 0)
    with pytest.raises(TypeError, match="an id, an Env or a VectorEnv"):
        collect(3, direction_policies(), 10)
    with pytest.raises(ValueError, match="actions 0 to 1"):
        collect(Count(), [linear_policy(np.zeros((2, 3)), 0.0, 0.1)], 10)
    with pytest.raises(ValueError, match="actions of shape"):
        collect("Pendulum-v1", [linear_policy(np.zeros((2, 3)), 0.0, 0.1)], 10, num_envs=1)
    env = Count()
    env.observation_space = Dict(a=Box(-1, 1, (1,)))
    with pytest.raises(TypeError, match="vectors or discrete"):
        collect(env, BOTH, 10)
