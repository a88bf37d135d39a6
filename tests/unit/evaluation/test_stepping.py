"""One explicit step before the jump: Q^ν(x, a) = E[r + γ((1−α₁) V^ν(X′) + α₁ V^ν′(X′))]."""

import jax
import numpy as np
import pytest

import ggpi
from chance import error_of_estimate
from ggpi import rewards
from ggpi.evaluation.stepping import Suffixes

GAMMA = 0.8
KEY = jax.random.key(0)


def world(alphas=(0.3,), terminal=None):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(5), (5, 3))
    if terminal is not None:
        P[terminal] = np.eye(5)[terminal][:, None]
    mdp = ggpi.TabularMDP(P, terminal=terminal)
    policies = [ggpi.TabularPolicy(rng.dirichlet(np.ones(3), 5), f"π{k}") for k in range(2)]
    return ggpi.exact_ghms(mdp, policies, GAMMA, alphas)


def in_python(x):
    """Of the same values as `squares`, by code that JAX cannot trace."""
    return [0.0, 1.0, 4.0, 9.0, 16.0][int(x)] / 16


squares = np.arange(5.0) ** 2 / 16
REWARDS = {
    "arrival": rewards.arrival(squares),
    "state": rewards.state(squares),
    "state_action": rewards.state_action(np.arange(15.0).reshape(5, 3) / 15),
}


@pytest.mark.parametrize("reward", REWARDS.values(), ids=REWARDS)
@pytest.mark.parametrize(("depth", "alphas"), [(1, ()), (3, (0.3, 0.6))])
def test_a_step_gives_the_exact_values(depth, alphas, reward):
    """Against the linear solve, in a world that ends in one state, for equal and unequal α.

    Samples lie in [0, 1/(1−γ)]; a right program fails with probability below 1e-6.
    """
    ghms = world(alphas, [False, False, True, False, False])
    agent = ggpi.GGPIAgent(ghms, reward, depth=depth, num_samples=4000, first_actions="step")
    plan = agent.plan(np.arange(5), key=KEY)
    expected = np.moveaxis(np.asarray(ggpi.evaluate(agent.gsps, ghms, reward)), 0, 1)
    bound = error_of_estimate(plan.stderr, 4000, 1 / (1 - GAMMA), expected.size)
    assert (np.abs(plan.value - expected) <= bound + 1e-5).all()


def test_after_the_step_a_switch_has_its_probability():
    """Of "stay, then go" only a switch leaves state 0: the value is 1.14, and 2.97 with 1 − α in the place of α.

    Returns lie in [0, 5]; a right program fails with probability below 1e-6.
    """
    P = np.stack([np.eye(2), np.eye(2)[[1, 1]]], axis=1)
    policies = [ggpi.TabularPolicy(np.eye(2)[[a, a]]) for a in (0, 1)]
    ghms, reward = ggpi.exact_ghms(ggpi.TabularMDP(P), policies, GAMMA, 0.1), rewards.state([0.0, 1.0])
    agent = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=4000, first_actions="step")
    plan, place = agent.plan(0, key=KEY), list(agent.gsps).index(ggpi.GSP((0, 1), (0.1,)))
    bound = error_of_estimate(plan.stderr[place, 0], 4000, 5.0, 1)
    assert bound < 0.5
    assert abs(plan.value[place, 0] - 0.32 / 0.28) < bound


def test_the_step_into_a_terminal_state_has_its_reward_in_full():
    """From state 0 every action ends the episode with an arrival reward of 1: there is nothing random."""
    mdp = ggpi.TabularMDP(np.broadcast_to(np.eye(2)[1], (2, 2, 2)).copy(), terminal=[False, True])
    ghms = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy(np.full((2, 2), 0.5))], GAMMA, ())
    agent = ggpi.GGPIAgent(ghms, rewards.arrival([0.0, 1.0]), depth=1, num_samples=3, first_actions="step")
    np.testing.assert_allclose(agent.plan(0, key=KEY).value, [[1.0, 1.0]], rtol=1e-6)


def test_python_rewards_are_the_same():
    options = {"depth": 2, "num_samples": 20, "first_actions": "step"}
    compiled = ggpi.GGPIAgent(world(), rewards.arrival(squares), **options).plan(np.arange(5), key=KEY)
    on_host = ggpi.GGPIAgent(world(), rewards.arrival(in_python), **options).plan(np.arange(5), key=KEY)
    np.testing.assert_allclose(compiled.value, on_host.value, rtol=1e-5)


def test_first_actions_share_their_noise():
    """Two actions that do the same have the same value, sample by sample; with "all" they differ."""
    rng = np.random.default_rng(0)
    P = np.repeat(rng.dirichlet(np.ones(5), (5, 1)), 2, axis=1)
    policies = [ggpi.TabularPolicy(rng.dirichlet(np.ones(2), 5))]
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), policies, GAMMA, ())
    agent = ggpi.GGPIAgent(ghms, rewards.arrival(squares), depth=1, num_samples=50, first_actions="step")
    value = agent.plan(np.arange(5), key=KEY).value
    np.testing.assert_array_equal(value[..., 0], value[..., 1])
    other = ggpi.GGPIAgent(ghms, rewards.arrival(squares), depth=1, num_samples=50, first_actions="all")
    value = other.plan(np.arange(5), key=KEY).value
    assert (value[..., 0] != value[..., 1]).all()


def test_samples_of_a_plan_follow_their_own_action():
    """From every start action a leads into sink a for ever."""
    following = np.tile([3, 4], (5, 1))
    following[3:] = [[3, 3], [4, 4]]
    mdp = ggpi.TabularMDP(np.eye(5)[following])
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    ghms = ggpi.exact_ghms(mdp, policies, GAMMA, 0.3)
    agent = ggpi.GGPIAgent(ghms, rewards.arrival(squares), depth=2, num_samples=7, first_actions="step")
    plan = agent.plan(np.arange(3), key=KEY)
    for gsp in range(len(agent.gsps)):
        for states in plan.samples(gsp):
            assert states.shape == (3, 2, 7)
            np.testing.assert_array_equal(states, np.broadcast_to([[[3], [4]]], states.shape))


def test_a_set_goes_on_with_its_suffixes():
    gsps = ggpi.suffix_closure([ggpi.GSP((0, 1, 0), (0.3, 0.6))])
    suffixes = Suffixes(gsps)
    names = gsps.names()
    assert [names[i] for i in suffixes.place] == ["π1 →(0.6) π0", "π0", "π0"]
    np.testing.assert_allclose(suffixes.alpha, [0.3, 0.6, 0.0])
