"""Collecting: who acted, where episodes end, and what is recorded there."""

from inspect import unwrap

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from chance import error_of_mean, is_share
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
    bound = error_of_mean(0.5, len(runs), 1.0, comparisons=2) + 0.01  # runs at the ends of the record are cut
    assert abs(shares[0] - one) < bound and abs(shares[1] - two) < bound
    # of 8000 turns of 1 to 4 steps each policy has 1/20: 1000 ± 54 steps, and by Bernstein 1000 ± 400 but for 3e-9
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


def test_one_environment():
    data = collect(gymnasium.make("ggpi/PointMass-v0", max_steps=7), direction_policies(), 20)
    assert data.step.tolist() == [*range(7), *range(7), *range(6)]
    assert data.truncated.sum() == 3


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


class Told(Count):
    """The counter, in dictionaries with a goal and with its episode apart."""

    observation_space = Dict(
        goal=Box(0, 9, (2,)),
        count=Box(-9, 9999, (2,), np.int64),
        last=Box(-1, 1, (1,)),
        image=Box(0, 1, (2, 2)),
    )

    def _seen(self):
        time, episode, last = super()._seen()
        return {
            "goal": np.full(2, 7.0, np.float32),
            "count": np.array([time, episode], np.int64),
            "last": np.array([last], np.float32),
            "image": np.zeros((2, 2), np.float32),
        }


@pytest.mark.parametrize("mode", MODES)
def test_chosen_keys_of_dictionaries_make_the_state(mode):
    """In their order, in every autoreset mode, and nothing else: the same data as without dictionaries."""
    env = SyncVectorEnv([Told] * 3, autoreset_mode=mode)
    data = collect(env, BOTH, 97, switch_every=3, seed=1, keys=("count", "last"))
    plain = collect(counters(mode), BOTH, 97, switch_every=3, seed=1)
    np.testing.assert_array_equal(data.state, plain.state)
    np.testing.assert_array_equal(data.next_state, plain.next_state)
    assert data.state.dtype == np.float32
    other = collect(Told(), BOTH, 5, keys=["last", "count"])
    np.testing.assert_array_equal(other.next_state[:, 1], [1, 2, 3, 4, 5])


def test_keys_that_are_missing_wrong_or_not_asked_for():
    there = r"'goal' Box.*'count' Box.*'image' Box"
    with pytest.raises(
        TypeError, match=rf"dictionaries of {there}.*choose.*keys=\('count', 'last', 'image'\)"
    ):
        collect(Told(), BOTH, 10)
    with pytest.raises(TypeError, match="got keys='count'"):
        collect(Told(), BOTH, 10, keys="count")
    with pytest.raises(KeyError, match=f"no key 'observation'; there are {there}"):
        collect(Told(), BOTH, 10, keys=("observation",))
    with pytest.raises(TypeError, match="a chosen key is a Box vector, 'image' is"):
        collect(Told(), BOTH, 10, keys=("image",))
    with pytest.raises(TypeError, match=r"these observations are Box.* leave keys out"):
        collect(Count(), BOTH, 10, keys=("observation",))


@pytest.mark.parametrize(
    "space",
    [MultiDiscrete([2, 3]), MultiBinary(2), Discrete(2, start=1), Box(0, 1, (2, 2)), Box(0, 1, (2,), int)],
)
def test_other_actions_are_refused(space):
    env = Count()
    env.action_space = space
    with pytest.raises(TypeError, match="actions are Box vectors of floats or Discrete numbers from 0, got"):
        collect(env, BOTH, 10)


@pytest.mark.parametrize("space", [MultiDiscrete([2, 3]), Discrete(2, start=1), Text(3)])
def test_other_observations_are_refused(space):
    env = Count()
    env.observation_space = space
    with pytest.raises(TypeError, match=r"observations are Box vectors .* got .*FlattenObservation"):
        collect(env, BOTH, 10)


def test_policies_that_do_not_fit_are_named_before_a_step():
    fits, small, wide = (
        linear_policy(np.zeros(shape), 0.0, 0.1, name)
        for name, shape in (("fits", (1, 3)), ("small", (1, 2)), ("wide", (2, 3)))
    )
    with pytest.raises(ValueError, match=r"policy 1 \(small\) cannot act on states of shape \(3,\)"):
        collect("Pendulum-v1", [fits, small], 10, num_envs=1)
    with pytest.raises(
        ValueError, match=r"policy 1 \(wide\) returns actions of shape \(2,\) .* shape \(1,\): Box"
    ):
        collect("Pendulum-v1", [fits, wide], 10, num_envs=1)
    with pytest.raises(ValueError, match="expects whole numbers of shape"):
        collect(Count(), [fits], 10)


def feedback(num_actions, size, seed):
    gain = np.random.default_rng(seed).normal(size=(num_actions, size)) / 10
    return linear_policy(gain, 0.0, 0.5, f"feedback {seed}")


@pytest.mark.parametrize(
    ("name", "keys", "size", "num_actions"),
    [
        ("MountainCarContinuous-v0", None, 2, 1),
        ("Reacher-v5", None, 10, 2),
        ("HalfCheetah-v5", None, 17, 6),
        ("gymnasium_robotics:PointMaze_UMaze-v3", ("observation",), 4, 2),
    ],
)
def test_environments_that_others_wrote(name, keys, size, num_actions, tmp_path, monkeypatch):
    """Every recorded row is what the environment itself does; of the maze's dictionary the goal is left out."""
    monkeypatch.chdir(tmp_path)  # MuJoCo logs to a file
    module, _, _ = name.rpartition(":")
    pytest.importorskip(module or ("gymnasium" if size == 2 else "mujoco"))
    policies = [feedback(num_actions, size, seed) for seed in range(2)]
    data = collect(name, policies, 300, switch_every=10, num_envs=2, keys=keys, seed=5)
    data.check()
    assert data.state.shape == (300, size) and data.action.shape == (300, num_actions)
    assert set(data.behaviour) == {0, 1}
    env = gymnasium.make(name)
    seen, _ = env.reset(seed=5)
    for row in range(40):
        seen = seen if keys is None else seen["observation"]
        np.testing.assert_array_equal(data.state[row], np.asarray(seen, np.float32))
        seen, *_ = env.step(data.action[row])
    env.close()


def test_bad_input():
    with pytest.raises(ValueError, match="at least one step"):
        collect("ggpi/PointMass-v0", direction_policies(), 0)
    with pytest.raises(TypeError, match="an id, an Env or a VectorEnv"):
        unwrap(collect)(3, direction_policies(), 10)  # as users call it: types are checked in tests only
    beyond = MixedPolicy(jnp.eye(3)[2], "beyond")
    with pytest.raises(ValueError, match="actions 0 to 1"):
        collect(Count(), [beyond], 10)


@pytest.mark.parametrize("mode", MODES)
def test_exploring_turns_are_random_and_nobodys(mode):
    """Rows of behaviour −1 take both actions equally often, other rows their policy's.

    Turns last 1 to 3 steps; 300 fair actions are all equal with probability 2^-299.
    """
    data = collect(counters(mode), BOTH, 900, switch_every=3, explore=0.5, seed=1)
    random = data.behaviour == -1
    np.testing.assert_array_equal(data.behaviour[~random], data.action[~random])
    np.testing.assert_array_equal(data.next_state[:, 2], data.action)
    assert is_share(data.action[random], 0.5, comparisons=2)
    assert random.sum() > 300
    assert set(data.behaviour[~random]) == {0, 1}


def test_exploring_draws_vectors_within_bounds():
    data = collect("ggpi/PointMass-v0", direction_policies(4), 200, switch_every=5, explore=1.0)
    assert (data.behaviour == -1).all()
    low, high = data.action.min(axis=0), data.action.max(axis=0)
    assert (low >= -1).all() and (high <= 1).all() and (high - low > 1).all()


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_explore_is_a_share(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        collect(counters(MODES[0]), BOTH, 10, explore=share)
