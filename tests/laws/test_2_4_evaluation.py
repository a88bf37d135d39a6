"""Prop 2.4 and App. A: Q from μ, and μ beside successor representation and features."""

import numpy as np
from hypothesis import given

from ggpi import evaluate, exact_ghms, rewards
from ggpi.ghm import ExactGHM, successor_features, successor_representation
from ggpi.switching import GSP
from worlds import bellman_q, worlds


@given(worlds())
def test_q_is_reward_now_and_reward_at_a_geometric_time(world):
    pi, gamma = world.pis[1], world.gamma
    mu = ExactGHM(world.mdp, pi, gamma).dense()
    r_pi = (pi * world.r_action).sum(axis=1)
    expected = bellman_q(world.P, pi, world.r_action, gamma)
    np.testing.assert_allclose(world.r_action + gamma / (1 - gamma) * mu @ r_pi, expected, atol=1e-9)
    ghms = exact_ghms(world.mdp, [pi], gamma, 0.5)
    np.testing.assert_allclose(evaluate([GSP((0,))], ghms, world.r_action)[0], expected, atol=1e-9)
    np.testing.assert_allclose(world.mdp.q(pi, world.r_action, gamma), expected, atol=1e-9)


@given(worlds())
def test_a_state_reward_is_an_action_reward_that_ignores_the_action(world):
    repeated = np.repeat(world.r_state[:, None], world.A, axis=1)
    for pi in world.pis:
        q = world.mdp.q(pi, rewards.state(world.r_state), world.gamma)
        np.testing.assert_allclose(q, bellman_q(world.P, pi, repeated, world.gamma), atol=1e-9)


@given(worlds())
def test_successor_representation(world):
    """λ(x, a) counts X₀ too: λ = e_x + γ/(1−γ) μ; and Q = Σ_x′ λ(x′) r(x′) for a state reward."""
    sr = successor_representation(world.mdp, world.pis[1], world.gamma)
    repeated = np.repeat(world.r_state[:, None], world.A, axis=1)
    np.testing.assert_allclose(
        sr @ world.r_state, bellman_q(world.P, world.pis[1], repeated, world.gamma), atol=1e-8
    )
    np.testing.assert_allclose((1 - world.gamma) * sr.sum(axis=2), 1.0, atol=1e-9)


@given(worlds())
def test_mu_is_a_successor_feature(world):
    basis = [rewards.arrival((1 - world.gamma) * row) for row in np.eye(world.S)]
    psi = successor_features(world.mdp, world.pis[1], basis, world.gamma)
    np.testing.assert_allclose(psi, ExactGHM(world.mdp, world.pis[1], world.gamma).dense(), atol=1e-9)
    ones = [rewards.state(row) for row in np.eye(world.S)]
    sr = successor_representation(world.mdp, world.pis[1], world.gamma)
    np.testing.assert_allclose(successor_features(world.mdp, world.pis[1], ones, world.gamma), sr, atol=1e-8)
