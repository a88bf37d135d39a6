"""Whose turn it is when an episode ends, and what copies of an environment say of themselves."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ggpi import collect
from ggpi.policies.linear import MixedPolicy


class Short(gymnasium.Env):
    """Terminates after three steps, and may say that the world goes on."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, about=None):
        self.about = about or {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.time == 3
        return np.full(1, self.time, np.float32), 0.0, over, False, self.about if over else {}


BOTH = [MixedPolicy(jnp.eye(2)[k], f"always {k}") for k in range(2)]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_new_episode_is_a_new_turn_and_a_turn_is_no_longer_than_said(mode):
    """Turns of up to 10⁶ steps never end before the episode does: each of 80 episodes has one policy, and the
    same one in all of them would be as likely as 2⁻⁷⁹."""
    data = collect(SyncVectorEnv([Short] * 2, autoreset_mode=mode), BOTH, 240, switch_every=10**6, seed=0)
    own = [set(episode.behaviour.tolist()) for episode in data.episodes()]
    assert all(len(each) == 1 for each in own) and {0} in own and {1} in own
    changing = collect(SyncVectorEnv([Short] * 2, autoreset_mode=mode), BOTH, 240, switch_every=1, seed=0)
    assert any(len(set(episode.behaviour.tolist())) == 2 for episode in changing.episodes())


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_copies_that_say_nothing_of_the_world_have_ended(mode):
    """The first copy was merely done with its task; the second one, at the same step, was not."""
    env = SyncVectorEnv([lambda: Short({"world_ended": False}), Short], autoreset_mode=mode)
    data = collect(env, BOTH, 60, seed=0)
    last = [episode for episode in data.episodes() if len(episode) == 3]
    flags = [(bool(episode.terminated[-1]), bool(episode.truncated[-1])) for episode in last]
    assert flags == [(False, True)] * 10 + [(True, False)] * 10


def test_every_step_and_every_copy_has_noise_of_its_own():
    """Two copies throw a fair coin 100 times: that all agree in time, or the copies do, has probability 3 · 2⁻⁹⁹."""
    coin = [MixedPolicy(jnp.array([0.5, 0.5]), "coin")]
    data = collect(SyncVectorEnv([Short] * 2, autoreset_mode=AutoresetMode.SAME_STEP), coin, 200, seed=0)
    first, second = data.action[:100], data.action[100:]
    assert set(first.tolist()) == set(second.tolist()) == {0, 1} and (first != second).any()
