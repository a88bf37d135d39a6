"""Following policies: single environments, vector environments and simulations give the same transitions."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ggpi.data.spaces import clipped, executed, state_reader
from ggpi.envs import chain
from ggpi.rollout.episodes import Simulation, Singles, Vector, follow, recorded


class Count(gymnasium.Env):
    """Counts up by the action; terminal at `last`, cut after five steps. `about` is the info at the end."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Discrete(3)

    def __init__(self, last=4, about=None):
        self.last, self.about = last, about or {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = seed or 0, 0
        return np.array([self.at], np.float32), {}

    def step(self, action):
        self.at, self.time = self.at + action, self.time + 1
        over = self.at >= self.last
        return np.array([self.at], np.float32), 0.0, over, self.time == 5, self.about if over else {}


READ = state_reader(Count.observation_space)


def always(action):
    return lambda t, states: np.full(len(states), action)


def test_single_environments_end_one_by_one():
    copies = Singles.reset([Count(), Count()], READ, [0, 2])
    steps = [*follow(copies, always(1))]
    assert [step.live.tolist() for step in steps] == [[True, True]] * 2 + [[True, False]] * 2
    assert steps[-1].terminated.tolist() == [True, False] and copies.is_over
    assert [step.next_state[1, 0] for step in steps] == [3, 4, 4, 4], "an ended copy stays where it is"
    data = recorded(steps, [np.array([7, 8])] * 4)
    assert data.state.ravel().tolist() == [0, 1, 2, 3, 2, 3] and data.behaviour.tolist() == [7] * 4 + [8] * 2
    assert data.terminated.tolist() == [False, False, False, True, False, True] and not data.truncated.any()
    assert data.episode.tolist() == [0, 0, 0, 0, 1, 1] and data.step.tolist() == [0, 1, 2, 3, 0, 1]


def test_a_done_task_is_no_terminal_state():
    copies = Singles.reset([Count(about={"world_ended": False})], READ, [2])
    *_, last = follow(copies, always(2))
    assert last.truncated.all() and last.is_done.all() and not last.terminated.any()


def test_steps_are_limited_and_copies_can_be_taken_out():
    copies = Singles.reset([Count(99), Count(99)], READ, [0, 0])
    for t, step in enumerate(follow(copies, lambda t, states: np.full(2, t % 3), 4)):
        assert step.action.tolist() == [t % 3] * 2
        copies.live[1] = False
    assert t == 3 and copies.state.ravel().tolist() == [0 + 1 + 2 + 0, 0]
    cut = recorded([*follow(Singles.reset([Count(99)], READ, [0]), always(1), 2)], [np.zeros(1, int)] * 2)
    assert cut.truncated.tolist() == [False, True]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_runs_on_and_never_mixes_episodes(mode):
    copies = Vector(SyncVectorEnv([Count, Count], autoreset_mode=mode), READ, seed=0)
    steps = []
    for step in follow(copies, always(1)):
        steps.append(step)
        if sum(one.live.sum() for one in steps) >= 20:
            break
    data = recorded(steps, [np.zeros(2, int)] * len(steps), 20)
    assert len(data) == 20
    np.testing.assert_array_equal(data.next_state, data.state + 1)
    whole = [len(episode) for episode in data.episodes() if episode.terminated[-1]]
    assert whole and set(whole) <= {4, 3}, "from 0, and the second copy first from its seed 1"


def test_a_simulation_rests_in_terminal_states():
    mdp, _ = chain(2, 1.0)
    copies = Simulation(mdp, np.array([0, 1, 3]), np.random.default_rng(0), lambda x: mdp.terminal[x])
    steps = [*follow(copies, always(0), 10)]
    data = recorded(steps, [np.zeros(3, int)] * len(steps))
    assert data.state.tolist() == [0, 1, 2, 1, 2] and data.terminated.tolist() == [
        False,
        False,
        True,
        False,
        True,
    ]
    over = Simulation(mdp, np.array([3]), np.random.default_rng(0), lambda x: mdp.terminal[x])
    assert not len(recorded([*follow(over, always(0), 5)], [np.zeros(1, int)]))


def test_actions_are_clipped_to_their_space():
    box = Box(-1.0, np.array([1.0, 2.0], np.float32), (2,))
    inside, outside = clipped(np.array([[0.5, 3.0], [0.5, 1.5], [-np.inf, 0.0]]), box)
    np.testing.assert_array_equal(inside, np.float32([[0.5, 2.0], [0.5, 1.5], [-1.0, 0.0]]))
    assert outside.tolist() == [True, False, True] and inside.dtype == np.float32
    assert executed(np.int64(2), Discrete(3)) == 2 and type(executed(np.int64(2), Discrete(3))) is int
    with pytest.raises(ValueError, match="actions 0 to 2, got"):
        clipped(np.array([0, 3]), Discrete(3))
