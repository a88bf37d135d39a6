"""Policy iteration with GGPI: stops, counts, and agreement with plain dynamic programming."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggpi import GSP, compositions, policy_iteration, q_star
from ggpi.envs import four_rooms
from ggpi.evaluation import ghm_draws
from worlds import bellman_q, worlds

KEY = jax.random.key(0)


@given(worlds(), st.integers(1, 3), st.booleans())
def test_exact_iteration_ends_at_an_optimum(world, depth, newest_last):
    run = policy_iteration(
        world.mdp, world.r_action, world.gamma, 0.3, depth=depth, newest_last=newest_last, start=world.pis[1]
    )
    assert run.stopped == "stable" and run.ghm_samples == 0
    q = bellman_q(world.P, run.policy.pi, world.r_action, world.gamma)
    np.testing.assert_allclose(q, q_star(world.mdp, world.r_action, world.gamma), atol=1e-6)


@given(worlds(), st.integers(1, 3))
def test_newest_last_loses_nothing(world, depth):
    """The newest policy dominates its predecessors, so each GSP that ends in it dominates the rest."""
    runs = [
        policy_iteration(
            world.mdp, world.r_action, world.gamma, 0.3, depth=depth, newest_last=newest, start=world.pis[1]
        )
        for newest in (False, True)
    ]
    assert runs[0].iterations == runs[1].iterations


def test_samples_are_counted():
    assert ghm_draws(compositions(3, 1, 0.5)) == 3
    assert ghm_draws(compositions(3, 2, 0.5), shared=False) == 3 + 2 * 6
    assert ghm_draws(compositions(3, 2, 0.5)) == 9 + 3
    assert ghm_draws([GSP((0, 1, 2), (0.5, 0.5)), GSP((0, 1, 0), (0.5, 0.5))]) == 2 + 2
    mdp = four_rooms()
    run = policy_iteration(
        mdp,
        mdp.indicator((1, 11)),
        0.95,
        0.1,
        depth=2,
        num_samples=3,
        max_iterations=2,
        key=jax.random.key(0),
    )
    assert run.stopped == "limit" and run.iterations == 2
    assert run.ghm_samples == (1 + (2 * 1 + 2 * 2)) * 3 * 416
    assert run.ghm_draws == (1 + (4 + 2)) * 3 * 416


def test_a_known_optimum_stops_it():
    mdp = four_rooms()
    reward = mdp.indicator((1, 11))
    q = q_star(mdp, reward, 0.95)
    optimal = q >= q.max(axis=1, keepdims=True) - 1e-6
    run = policy_iteration(mdp, reward, 0.95, 0.1, optimal=optimal)
    assert run.stopped == "optimal"
    assert ((run.policy.pi > 0) <= optimal).all()


def test_bad_input():
    mdp = four_rooms()
    reward = mdp.indicator((1, 11))
    with pytest.raises(ValueError, match="needs a key"):
        policy_iteration(mdp, reward, 0.9, 0.1, num_samples=10)
    with pytest.raises(ValueError, match="max_iterations is at least 1, got 0"):
        policy_iteration(mdp, reward, 0.9, 0.1, max_iterations=0)
    with pytest.raises(ValueError, match="num_samples is at least 1, got 0"):
        policy_iteration(mdp, reward, 0.9, 0.1, num_samples=0, key=jax.random.key(0))
