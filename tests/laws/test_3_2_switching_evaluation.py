"""Thm 3.2, Thm F.1: the value of a switching policy from the models of its parts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import error_of_mean
from ggpi import GSP, TabularPolicy, evaluate, exact_ghms, rewards
from ggpi.rollout.execution import rollout
from worlds import ALPHAS, bellman_q, bellman_q_gsp, return_moments, switching_policies, worlds


@given(worlds(), st.lists(switching_policies(), min_size=1, max_size=6))
def test_action_rewards_and_unequal_alpha(world, gsps):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, ALPHAS)
    q = evaluate(gsps, ghms, world.r_action)
    for gsp in gsps:
        expected = bellman_q_gsp(world.P, world.pis, gsp, world.r_action, world.gamma)
        np.testing.assert_allclose(q[gsp], expected, rtol=1e-10, atol=1e-10)


@given(worlds(), switching_policies())
def test_state_rewards(world, gsp):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, ALPHAS)
    repeated = np.repeat(world.r_state[:, None], world.A, axis=1)
    expected = bellman_q_gsp(world.P, world.pis, gsp, repeated, world.gamma)
    np.testing.assert_allclose(evaluate([gsp], ghms, world.r_state)[0], expected, rtol=1e-10, atol=1e-10)


@given(worlds(terminal=True), switching_policies())
def test_arrival_rewards_and_a_terminal_state(world, gsp):
    """Paid on entering: r(x, a) = Σ_x′ P(x′|x, a) ρ(x′) while the episode lasts."""
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, ALPHAS)
    r = world.P @ world.r_state
    r[world.mdp.terminal] = 0.0
    expected = bellman_q_gsp(world.P, world.pis, gsp, r, world.gamma)
    q = evaluate([gsp], ghms, rewards.arrival(world.r_state))[0]
    np.testing.assert_allclose(q, expected, rtol=1e-10, atol=1e-10)


@given(worlds())
def test_one_segment_is_the_markov_policy(world):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, 0.5)
    for i, pi in enumerate(world.pis):
        q = evaluate([GSP((i,)), GSP((i, i, i), (0.5, 0.5))], ghms, world.r_action)
        assert len(q.gsps) == 1
        np.testing.assert_allclose(q[0], bellman_q(world.P, pi, world.r_action, world.gamma), atol=1e-9)


@given(worlds())
def test_alpha_one_is_one_step_planning(world):
    """π₁ →(1) π₂ takes one action, then follows π₂: Q = r + γ P V^{π₂}, whatever π₁ is."""
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, 1.0)
    v_2 = (world.pis[2] * bellman_q(world.P, world.pis[2], world.r_action, world.gamma)).sum(axis=1)
    for head in (0, 1):
        q = evaluate([GSP((head, 2), (1.0,))], ghms, world.r_action)[0]
        np.testing.assert_allclose(q, world.r_action + world.gamma * world.P @ v_2, atol=1e-9)


@given(worlds())
def test_a_repeat_that_is_not_last_matters_not_for_the_markov_policy_but_for_the_time(world):
    """π₁ → π₁ → π₂ stays with π₁ for two geometric times."""
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, 0.5)
    longer = GSP((1, 1, 2), (0.5, 0.5))
    assert longer != GSP((1, 2), (0.5,))
    q = evaluate([longer], ghms, world.r_action)[0]
    expected = bellman_q_gsp(world.P, world.pis, longer, world.r_action, world.gamma)
    np.testing.assert_allclose(q, expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=20)
@given(worlds(terminal=True), switching_policies())
def test_executed_returns_have_this_mean(world, gsp):
    """Real roll-outs: within the bound of the exact variance, plus what the cut-off can hide."""
    gamma, n, steps = min(world.gamma, 0.9), 2000, 250
    policies = [TabularPolicy(pi) for pi in world.pis]
    run = rollout(gsp, policies, world.mdp, num_steps=steps, num_episodes=n, start=0, first_action=0, seed=3)
    paid = world.r_action[run.state, run.action] * gamma**run.step
    returns = np.bincount(run.episode, paid, minlength=n)
    expected = evaluate([gsp], exact_ghms(world.mdp, policies, gamma, ALPHAS), world.r_action)[0][0, 0]
    r = np.where(world.mdp.terminal[:, None], 0, world.r_action)
    mean, square = return_moments(world.P, world.pis, gsp, r, gamma)
    np.testing.assert_allclose(mean[0, 0], expected, atol=1e-8)
    deviation, width = max(square[0, 0] - mean[0, 0] ** 2, 0) ** 0.5, np.ptp([*r.ravel(), 0]) / (1 - gamma)
    hidden = gamma**steps / (1 - gamma) * np.abs(r).max()
    assert (
        abs(returns.mean() - expected) <= error_of_mean(deviation, n, width, comparisons=20) + hidden + 1e-9
    )
