"""Futures of Gymnasium environments by returning to a state: they are those of the environment, from any pair."""

import contextlib

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import ggpi
from ggpi.diagnosis import true_futures
from ggpi.diagnosis.replay import NotRepeatableError, Path, Replay, _at_times
from ggpi.policies.linear import MixedPolicy


class Counter(gymnasium.Env):
    """x grows by 1 + a, in steps of noise when `noise` > 0; ends at `last`, which is terminal or not."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, noise=0.0, last=1000, terminal=True, forgets_seed=False):
        self.noise, self.last, self.terminal, self.forgets_seed = noise, last, terminal, forgets_seed

    def reset(self, *, seed=None, options=None):
        super().reset(seed=None if self.forgets_seed else seed)
        self.x = float(self.np_random.integers(1000, 2000)) if self.forgets_seed else 0.0
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += 1 + int(action) + self.noise * self.np_random.normal()
        over = self.x >= self.last
        return np.array([self.x], np.float32), 0.0, over and self.terminal, over and not self.terminal, {}


ZERO = ggpi.policy_from(lambda state: 0, 2, name="zero")
COIN = MixedPolicy(jnp.array([0.5, 0.5]), "coin")


@pytest.fixture(autouse=True)
def few_visited(monkeypatch):
    monkeypatch.setattr("ggpi.diagnosis.truth.VISITED", 64)


def test_futures_follow_the_first_action_and_then_the_policy():
    """x + 1 + a + (T − 1): with the same T for both actions, the other future is exactly one away."""
    found = true_futures(Counter(), [ZERO], 0, 0.8, num_pairs=6, num_samples=16)
    np.testing.assert_array_equal(found.other, 1 - found.action)
    np.testing.assert_array_equal(found.other_future - found.future, np.ones((6, 16, 1)))
    times = (found.future - found.state[:, None] - found.action[:, None, None])[..., 0]
    assert times.min() == 1 and (times == np.round(times)).all() and len(np.unique(times)) > 3
    assert (found.again != found.future).any() and found.left_out == 0
    assert len(np.unique(found.state)) > 1, "pairs are at different times of an episode"


def test_a_path_is_read_at_each_of_its_times():
    """X_T for T = 1, 2, …; a terminal state is stayed in."""
    path = Path(np.arange(1.0, 6.0)[:, None], is_over=True)
    states, left_out = _at_times(path, np.array([1, 3, 5, 9, 2]), 0.5, [0])
    np.testing.assert_array_equal(states[:, 0], [1, 3, 5, 5, 2])
    assert left_out == 0


def test_noise_differs_from_visit_to_visit_and_is_the_same_for_both_actions():
    found = true_futures(Counter(noise=0.1), [ZERO], 0, 0.0, num_pairs=3, num_samples=32)
    assert len(np.unique(found.future)) > 90, "at β = 0 each path is read once, at T = 1"
    wanted = np.broadcast_to(found.other[:, None, None] * 2.0 - 1, found.future.shape)
    np.testing.assert_allclose(found.other_future - found.future, wanted, atol=1e-4)
    assert np.isin(found.again, found.future).mean() < 0.1


def test_policies_are_random_on_every_path():
    """X₂ − X₁ is a coin's; a quarter of 256 draws has T = 2, on different paths, so both sides come up."""
    with contextlib.closing(Replay(Counter(), [COIN], 8, None, 0)) as replay:
        visits = replay.visits
        futures, _ = replay.futures(COIN, np.zeros(8, int), 0.5, 32, 0)
    moved = futures[..., 0] - np.stack([visit.state for visit in visits])
    assert moved.min() == 1, "at least the first step, with action 0"
    second = moved[(moved == 2) | (moved == 3)]
    assert len(np.unique(moved)) > 3 and {2.0, 3.0} <= set(second)


@pytest.mark.parametrize("terminal", [True, False])
def test_ends_are_stayed_in_and_truncated_episodes_leave_times_out(terminal):
    env = Counter(last=45, terminal=terminal)
    found = true_futures(env, [ZERO], 0, 0.99, num_pairs=4, num_samples=16)
    assert found.future.max() <= 46 and found.state.max() < 45
    assert (found.left_out == 0) == terminal
    if terminal:
        assert (found.future >= 45).any()


def test_short_episodes_are_visited_before_their_end():
    found = true_futures(Counter(last=3), [COIN], 0, 0.5, num_pairs=16, num_samples=4)
    assert found.state.max() < 3


def test_an_environment_that_does_not_repeat_itself_is_recorded(monkeypatch):
    monkeypatch.setattr("ggpi.diagnosis.truth.RECORDED", 32)
    env = gymnasium.wrappers.TimeLimit(Counter(forgets_seed=True, last=10**6), 50)
    with pytest.raises(NotRepeatableError), contextlib.closing(Replay(env, [ZERO], 2, None, 0)) as replay:
        replay.futures(ZERO, np.zeros(2, int), 0.5, 4, 0)
    found = true_futures(env, [ZERO], 0, 0.5)
    assert found.future.shape[1] == 1 and found.other_future is None


def test_cartpole_is_gymnasiums_own():
    """The next state at β = 0 is what the environment itself answers to both actions from the same state."""
    policy = MixedPolicy(jnp.array([0.5, 0.5]), "coin")
    found = true_futures("CartPole-v1", [policy], 0, 0.0, num_pairs=4, num_samples=2)
    env = gymnasium.make("CartPole-v1").unwrapped
    for futures, actions in ((found.future, found.action), (found.other_future, found.other)):
        for state, action, future in zip(found.state, actions, futures[:, 0], strict=True):
            env.reset()
            env.state = state.astype(float)
            np.testing.assert_allclose(env.step(int(action))[0], future, atol=1e-5)


def test_numbered_states_have_no_clouds():
    with pytest.raises(ValueError, match=r"state vectors \[N, D\], got states of shape \(32,\)"):
        true_futures("FrozenLake-v1", [ggpi.policy_from(lambda state: 0, 4)], 0, 0.5)
