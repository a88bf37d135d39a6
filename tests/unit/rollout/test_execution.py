"""Executing a switching policy: who acts when, and where episodes end."""

import gymnasium
import numpy as np
import pytest

from chance import error_of_mean, is_share
from ggpi import GSP, TabularMDP, TabularPolicy
from ggpi.envs import chain, four_rooms
from ggpi.rollout.execution import rollout


def policies(mdp):
    return [TabularPolicy.constant(mdp, a) for a in range(mdp.num_actions)]


def test_the_policy_that_acts_is_the_one_recorded():
    mdp = four_rooms()
    run = rollout(
        GSP((0, 2, 1), (0.5, 0.25)), policies(mdp), mdp, num_steps=40, num_episodes=2000, start=0, seed=0
    )
    np.testing.assert_array_equal(run.action, run.behaviour)
    first = run.step == 0
    assert (run.behaviour[first] == 0).all(), "the head acts first"
    second = run.step == 1
    assert is_share(run.behaviour[second] == 2, 0.5, comparisons=2), "a switch may precede the second action"
    lengths = np.bincount(run.episode, run.behaviour == 2)
    bound = error_of_mean(12**0.5, 2000, width=6, comparisons=2)
    assert abs(lengths.mean() - 4) < bound, "the second segment lasts Geometric(1/4) steps"
    assert len(run) == 80_000 and run.truncated.sum() == 2000


def test_alpha_one_switches_after_every_step():
    mdp = four_rooms()
    run = rollout(GSP((0, 1, 2), (1.0, 1.0)), policies(mdp), mdp, num_steps=5, start=50)
    assert run.behaviour.tolist() == [0, 1, 2, 2, 2]


def test_the_first_action_can_be_given():
    mdp = four_rooms()
    run = rollout(GSP((0,)), policies(mdp), mdp, num_steps=3, start=0, first_action=2)
    assert run.action.tolist() == [2, 0, 0]


def test_a_terminal_state_ends_the_episode():
    mdp, _ = chain(3, 10.0)
    run = rollout(GSP((0,)), policies(mdp), mdp, num_steps=20, start=0)
    assert run.state.tolist() == [0, 1, 2, 3]
    assert run.terminated.tolist() == [False, False, False, True]
    assert not run.truncated.any()


def test_an_episode_that_ends_at_the_last_step_is_not_truncated():
    mdp, _ = chain(3, 10.0)
    run = rollout(GSP((0,)), policies(mdp), mdp, num_steps=4, start=0)
    assert run.terminated.tolist() == [False, False, False, True] and not run.truncated.any()
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    mdp, _ = TabularMDP.from_gymnasium(env)
    run = rollout(GSP((1, 2), (1.0,)), policies(mdp), env, num_steps=2, seed=0)
    assert run.next_state.tolist() == [4, 5], "down, then right into a hole"
    assert run.terminated.tolist() == [False, True] and not run.truncated.any()


def test_each_episode_can_have_its_own_start():
    mdp = four_rooms()
    run = rollout(GSP((0,)), policies(mdp), mdp, num_steps=2, num_episodes=3, start=[5, 6, 7])
    assert [episode.state[0] for episode in run.episodes()] == [5, 6, 7]


def test_gymnasium_environments():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    mdp, _ = TabularMDP.from_gymnasium(env)
    run = rollout(GSP((1, 2), (0.5,)), policies(mdp), env, num_steps=30, num_episodes=5, seed=1)
    assert set(run.behaviour) <= {1, 2}
    np.testing.assert_array_equal(run.action, run.behaviour)
    for episode in run.episodes():
        assert episode.state[0] == 0
        assert episode.terminated[-1] ^ episode.truncated[-1]
        np.testing.assert_array_equal(episode.state[1:], episode.next_state[:-1])


def test_the_head_acts_first_in_an_environment_too():
    """α = 1: one step with each policy; the first action is the head's, or the given one, and no switch precedes it."""
    env = gymnasium.make("CliffWalking-v1")
    mdp, _ = TabularMDP.from_gymnasium(env)
    gsp = GSP((3, 0, 1), (1.0, 1.0))
    run = rollout(gsp, policies(mdp), env, num_steps=5, num_episodes=2, seed=0)
    assert run.behaviour.tolist() == [3, 0, 1, 1, 1] * 2
    assert run.action.tolist() == [3, 0, 1, 1, 1] * 2
    assert run.step.tolist() == [0, 1, 2, 3, 4] * 2 and run.episode.tolist() == [0] * 5 + [1] * 5
    assert run.truncated.tolist() == [False, False, False, False, True] * 2
    given = rollout(gsp, policies(mdp), env, num_steps=3, first_action=2, seed=0)
    assert given.action.tolist() == [2, 0, 1] and given.behaviour.tolist() == [3, 0, 1]


def test_every_step_has_noise_of_its_own():
    """200 fair tosses in two episodes: all alike, or the same in both, with a probability below 2⁻¹⁹⁷."""
    mdp = TabularMDP(np.full((3, 2, 3), 1 / 3))
    coin = [TabularPolicy(np.full((3, 2), 0.5))]
    run = rollout(GSP((0,)), coin, mdp, num_steps=200, num_episodes=2, start=0, seed=0)
    actions = run.action.reshape(2, 200)
    assert (actions.std(axis=1) > 0).all() and not np.array_equal(*actions)
    following = run.next_state.reshape(2, 200)
    assert not np.array_equal(*following)
    env = gymnasium.make("CliffWalking-v1")
    mdp, _ = TabularMDP.from_gymnasium(env)
    run = rollout(GSP((0,)), [TabularPolicy.uniform(mdp)], env, num_steps=40, seed=0)
    assert len(np.unique(run.action)) > 1, "else by 4⁻³⁹"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gsp": GSP((4,))}, "names policy 4, but there are 4"),
        ({"num_steps": 0}, "at least one step"),
        ({"start": None}, "needs start="),
    ],
)
def test_bad_input(arguments, message):
    mdp = four_rooms()
    given = {"gsp": GSP((0,)), "num_steps": 5, "start": 0} | arguments
    with pytest.raises((ValueError, IndexError), match=message):
        rollout(given.pop("gsp"), policies(mdp), mdp, **given)
    with pytest.raises(ValueError, match="chooses its own start"):
        rollout(GSP((0,)), policies(mdp), gymnasium.make("FrozenLake-v1"), num_steps=1, start=0)
