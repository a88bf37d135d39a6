"""Dynamic programming: two methods, one answer, a bound that holds, clear errors."""

import numpy as np
import pytest
import scipy.sparse

from ggpi import rewards
from ggpi.envs.gridworlds import four_rooms, rooms
from ggpi.mdp.optimal import howard, modified_policy_iteration, optimal_actions, q_star
from ggpi.mdp.tabular import TabularMDP

METHODS = (modified_policy_iteration, howard)


def random_mdp(num_states=30, num_actions=3, seed=0, terminal=False):
    P = np.random.default_rng(seed).dirichlet(np.full(num_states, 0.2), (num_states, num_actions))
    flags = np.zeros(num_states, bool)
    if terminal:
        P[-1], flags[-1] = np.eye(num_states)[-1], True
    return TabularMDP(P, flags)


def as_sparse(mdp):
    return TabularMDP(scipy.sparse.csr_array(mdp.kernel), mdp.terminal)


def brute_force(mdp, reward, gamma):
    v, r = np.zeros(mdp.num_states), mdp.r(reward)
    for _ in range(int(np.log(1e-16) / np.log(gamma))):
        v = (r + gamma * mdp.ahead(v)).max(axis=1)
    return r + gamma * mdp.ahead(v)


def rewards_of(mdp, seed=1):
    rng = np.random.default_rng(seed)
    shape = mdp.num_states, mdp.num_actions
    return (
        rewards.state(rng.normal(size=shape[0])),
        rewards.state_action(rng.normal(size=shape)),
        rewards.arrival(rng.normal(size=shape[0])),
    )


@pytest.mark.parametrize("layout", [lambda mdp: mdp, as_sparse])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("form", range(3))
def test_all_methods_find_the_optimum_within_their_bound(layout, terminal, form):
    mdp = layout(random_mdp(terminal=terminal))
    reward = rewards_of(mdp)[form]
    expected = brute_force(mdp, reward, 0.9)
    for method in METHODS:
        solution = method(mdp, reward, 0.9)
        assert solution.error_bound <= 1e-8
        assert np.abs(solution.q - expected).max() <= solution.error_bound + 1e-11
        np.testing.assert_allclose(solution.v, expected.max(axis=1), atol=1e-7)
        np.testing.assert_allclose(mdp.q(solution.pi, reward, 0.9), expected, atol=1e-7)
    np.testing.assert_allclose(q_star(mdp, reward, 0.9), expected, atol=1e-8)


def test_terminal_states_are_worth_nothing():
    mdp = random_mdp(terminal=True)
    for reward in rewards_of(mdp)[:2]:
        assert (q_star(mdp, reward, 0.9)[-1] == 0).all()
        assert (q_star(as_sparse(mdp), reward, 0.9)[-1] == 0).all()


def test_the_bound_holds_when_stopped_early():
    mdp = rooms(3, 4, 1 / 3)
    expected = brute_force(mdp, mdp.indicator((1, 1)), 0.95)
    for limit in (1, 2, 4):
        solution = modified_policy_iteration(
            mdp, mdp.indicator((1, 1)), 0.95, max_iterations=limit, tolerance=1e-12
        )
        assert solution.stopped == "limit" and solution.iterations == limit
        assert np.abs(solution.q - expected).max() <= solution.error_bound


def test_howard_does_not_cycle_on_ties():
    mdp = four_rooms()
    for reward in (mdp.indicator((1, 11)), np.zeros(mdp.num_states), np.ones(mdp.num_states)):
        assert howard(mdp, reward, 0.9).stopped == "stable policy"
    assert howard(mdp, np.ones(mdp.num_states), 0.9).iterations == 1


def test_a_constant_residual_says_all():
    """Action 1 pays 1 everywhere: T 0 − 0 = 1 in all states, so Q* is known before the first iteration."""
    mdp = random_mdp(num_actions=2)
    solution = modified_policy_iteration(mdp, np.tile([0.0, 1.0], (mdp.num_states, 1)), 0.9)
    assert solution.iterations == 0 and solution.error_bound < 1e-12
    np.testing.assert_allclose(solution.q, np.tile([9.0, 10.0], (mdp.num_states, 1)), rtol=1e-12)


def test_of_equal_actions_the_first_is_taken():
    mdp = four_rooms()
    solution = modified_policy_iteration(mdp, np.zeros(mdp.num_states), 0.9)
    np.testing.assert_array_equal(solution.pi, np.eye(4)[np.zeros(mdp.num_states, int)])


def test_howard_reports_its_limit_and_starts_where_told():
    mdp = four_rooms()
    goal = mdp.indicator((1, 11))
    assert howard(mdp, goal, 0.9, max_iterations=2).stopped == "limit"
    best = howard(mdp, goal, 0.9)
    assert howard(mdp, goal, 0.9, policy=best.pi).iterations == 1


@pytest.mark.parametrize("slip", [0.0, 0.1, 1 / 3])
def test_momentum_survives_gridworlds(slip):
    mdp = rooms(4, 5, slip)
    expected = brute_force(mdp, mdp.indicator((1, 1)), 0.97)
    np.testing.assert_allclose(q_star(mdp, mdp.indicator((1, 1)), 0.97), expected, atol=1e-8)


def test_momentum_is_dropped_where_the_policy_turns_in_circles():
    num_states = 60
    ring = np.roll(np.eye(num_states), 1, axis=1)
    mdp = TabularMDP(scipy.sparse.csr_array(np.repeat(ring, 2, axis=0)))
    reward = np.arange(num_states) == 7
    np.testing.assert_allclose(q_star(mdp, reward, 0.99), brute_force(mdp, reward, 0.99), atol=1e-8)


def test_no_horizon_at_all():
    mdp = random_mdp()
    reward = rewards_of(mdp)[1]
    for layout in (mdp, as_sparse(mdp)):
        np.testing.assert_array_equal(q_star(layout, reward, 0.0), reward.values)


def test_a_tolerance_below_rounding_is_refused():
    mdp = as_sparse(random_mdp())
    with pytest.raises(ArithmeticError, match="rounding"):
        q_star(mdp, rewards_of(mdp)[0], 0.9, tolerance=1e-30)
    assert modified_policy_iteration(mdp, rewards_of(mdp)[0], 0.9, tolerance=1e-30).stopped == "rounding"


def test_all_maximisers_are_optimal_actions():
    q = np.array([[1.0, 1.0 - 1e-10, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    expected = [[True, True, False], [True, True, True], [False, False, True]]
    np.testing.assert_array_equal(optimal_actions(q), expected)
    assert optimal_actions(q, tolerance=0.0).sum() == 5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"gamma": 1.0}, "γ lies in"),
        ({"reward": np.zeros(7)}, "shape"),
        ({"reward": np.full(104, np.nan)}, "not finite"),
        ({"max_iterations": 0}, "max_iterations is at least 1"),
    ],
)
def test_bad_arguments_are_named(method, bad, message):
    arguments = {"reward": np.zeros(104), "gamma": 0.9} | bad
    with pytest.raises(ValueError, match=message):
        method(four_rooms(), **arguments)


def test_more_bad_arguments():
    mdp, r = four_rooms(), np.zeros(104)
    with pytest.raises(ValueError, match="tolerance is positive"):
        q_star(mdp, r, 0.9, tolerance=0.0)
    with pytest.raises(ValueError, match="a policy of this MDP has shape"):
        howard(mdp, r, 0.9, policy=np.ones((2, 2)))
    with pytest.raises(ValueError, match="q is a finite array"):
        optimal_actions(np.zeros(3))
    with pytest.raises(ValueError, match="at least 0"):
        optimal_actions(np.zeros((3, 2)), tolerance=-1.0)
