"""Policy iteration with GGPI: stops, counts, and agreement with plain dynamic programming."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggpi import GSP, TabularMDP, compositions, policy_iteration, policy_iteration_sampled, q_star
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


@pytest.mark.slow
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


def corridor(length):
    """Left and right; the far right pays. The values of distant cells are told apart only by going there."""
    following = np.clip(np.arange(length)[:, None] + [-1, 1], 0, length - 1)
    return TabularMDP(np.eye(length)[following]), np.eye(length)[-1]


def test_newest_last_ends_plans_in_the_newest_policy():
    """Depth 2 visits the same policies either way; plans that all ended in the first policy would visit others."""
    following = np.array([[4, 5], [5, 3], [5, 5], [5, 0], [2, 3], [1, 2]])
    reward = np.array([[-0.6, 0.1], [-1.6, 0.2], [0.2, 1.6], [0.3, 0.5], [-1.5, 2.3], [-1.9, 1.1]])
    mdp = TabularMDP(np.eye(6)[following])
    first = np.eye(2)[np.zeros(6, int)]
    all_plans, newest = (
        policy_iteration(mdp, reward, 0.9, 0.3, depth=2, newest_last=flag, start=first, max_iterations=8)
        for flag in (False, True)
    )
    np.testing.assert_array_equal(newest.policies[0].pi, first)
    assert all_plans.stopped == newest.stopped == "stable"
    assert all_plans.iterations == newest.iterations == 3
    for one, other in zip(all_plans.policies, newest.policies, strict=True):
        np.testing.assert_array_equal(one.pi, other.pi)


def test_newest_last_takes_fewer_samples():
    """Iteration k has k policies: k² plans of depth 2, of which k end in the newest.

    All actions lead everywhere alike: an iteration ends early only if 24 states choose as before, by about 4⁻²⁴.
    """
    mdp, reward = TabularMDP(np.full((24, 4, 24), 1 / 24)), np.arange(24.0)
    options = {"depth": 2, "num_samples": 1, "max_iterations": 3, "key": KEY}
    runs = [
        policy_iteration_sampled(mdp, reward, 0.9, 0.3, newest_last=flag, **options) for flag in (False, True)
    ]
    assert [run.iterations for run in runs] == [3, 3]
    draws = [
        [ghm_draws(compositions(k, 2, 0.3, last=last and k - 1)) for k in (1, 2, 3)] for last in (None, True)
    ]
    assert [run.ghm_draws for run in runs] == [96 * sum(part) for part in draws]
    assert runs[0].ghm_samples == 96 * sum(k + 2 * k * (k - 1) for k in (1, 2, 3))


def test_every_iteration_has_noise_of_its_own():
    """All actions lead everywhere alike, so that the choice is noise alone; 24 states choose again by 4⁻²⁴ each."""
    mdp = TabularMDP(np.full((24, 4, 24), 1 / 24))
    run = policy_iteration_sampled(
        mdp, np.arange(24.0), 0.9, 0.3, newest_last=True, num_samples=2, max_iterations=3, key=KEY
    )
    assert run.stopped == "limit"
    for one, other in itertools.combinations(run.policies, 2):
        assert not np.array_equal(one.pi, other.pi)


def test_samples_are_counted():
    assert ghm_draws(compositions(3, 1, 0.5)) == 3
    assert ghm_draws(compositions(3, 2, 0.5)) == 9 + 3
    assert ghm_draws([GSP((0, 1, 2), (0.5, 0.5)), GSP((0, 1, 0), (0.5, 0.5))]) == 2 + 2
    mdp = four_rooms()
    run = policy_iteration_sampled(
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


def test_an_optimum_is_a_policy_of_optimal_actions_alone():
    """On the way to all right, distant cells are tied: to take both actions is not yet optimal."""
    mdp, reward = corridor(7)
    left, right = (np.eye(2)[np.full(7, a)] for a in range(2))
    run = policy_iteration(mdp, reward, 0.9, 0.3, start=left, optimal=right > 0)
    assert run.stopped == "optimal" and run.iterations > 1
    np.testing.assert_array_equal(run.policy.pi, right)


def test_bad_input():
    mdp = four_rooms()
    reward = mdp.indicator((1, 11))
    with pytest.raises(ValueError, match="max_iterations is at least 1, got 0"):
        policy_iteration(mdp, reward, 0.9, 0.1, max_iterations=0)
    with pytest.raises(ValueError, match="num_samples is at least 1, got 0"):
        policy_iteration_sampled(mdp, reward, 0.9, 0.1, num_samples=0, key=jax.random.key(0))
