"""Prop 2.1: GPI improves on all its policies at once; the past policies of policy iteration add nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggpi import improve, policy_iteration
from worlds import bellman_q, bellman_q_star, worlds


@given(worlds())
def test_the_improved_policy_is_at_least_as_good_as_each(world):
    q = np.stack([bellman_q(world.P, pi, world.r_action, world.gamma) for pi in world.pis])
    improved = bellman_q(world.P, improve(q).pi, world.r_action, world.gamma)
    assert (improved >= q.max(axis=0) - 1e-9).all()


@given(worlds(max_states=4))
def test_equality_means_optimal(world):
    optimal = bellman_q_star(world.P, world.r_action, world.gamma)
    pi = improve(optimal).pi
    q = np.stack([bellman_q(world.P, p, world.r_action, world.gamma) for p in [*world.pis, pi]])
    improved = bellman_q(world.P, improve(q).pi, world.r_action, world.gamma)
    np.testing.assert_allclose(improved, q.max(axis=0), atol=1e-8)
    np.testing.assert_allclose(improved, optimal, atol=1e-8)


@given(worlds(), st.integers(1, 6))
def test_past_policies_of_policy_iteration_add_nothing(world, limit):
    run = policy_iteration(
        world.mdp, world.r_action, world.gamma, 0.5, start=world.pis[1], max_iterations=limit
    )
    q = np.stack([bellman_q(world.P, p.pi, world.r_action, world.gamma) for p in run.policies])
    np.testing.assert_allclose(q.max(axis=0), q[-1], atol=1e-8)
    assert (improve(q, tolerance=1e-7).pi > 0).any(axis=1).all()
    np.testing.assert_array_equal(improve(q, tolerance=1e-7).pi, improve(q[-1], tolerance=1e-7).pi)
