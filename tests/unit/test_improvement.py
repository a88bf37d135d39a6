"""Greedy policies of given values: ties, heads and shapes."""

import numpy as np
import pytest

import ggpi
import ggpi.evaluation
import ggpi.improvement
from ggpi.improvement import break_ties
from ggpi.mdp.ties import Accuracy
from ggpi.switching import GSPs

LEFT, RIGHT, BOTH = [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]


def values_of(gsps, policies, array):
    policies = [ggpi.TabularPolicy(pi, f"π{i}") for i, pi in enumerate(policies)]
    return ggpi.evaluation.QValues(np.array(array, float), ggpi.suffix_closure(gsps), policies)


def test_the_head_rule_averages_over_tied_heads():
    """State 0: both heads have the same V, so half of each; in state 1 the second is better."""
    q = values_of(
        [ggpi.GSP((0,)), ggpi.GSP((1,))], [[LEFT] * 2, [RIGHT] * 2], [[[3, 0], [1, 0]], [[0, 3], [0, 2]]]
    )
    np.testing.assert_array_equal(ggpi.improvement.improve_head(q).pi, [BOTH, RIGHT])


def test_the_head_rule_counts_every_tied_plan():
    """Three plans are tied; two of them start with policy 1."""
    gsps = [ggpi.GSP((1, 0), (0.5,)), ggpi.GSP((0,)), ggpi.GSP((1,))]
    q = values_of(gsps, [[LEFT], [RIGHT]], [[[0, 1]], [[1, 0]], [[0, 1]]])
    np.testing.assert_allclose(ggpi.improvement.improve_head(q).pi, [[1 / 3, 2 / 3]])


def test_the_head_rule_goes_by_v_and_improve_by_q():
    """Plan 0 has the best action value, 5, but its head hardly takes that action."""
    gsps = [ggpi.GSP((0,)), ggpi.GSP((1,))]
    q = values_of(gsps, [[[0.1, 0.9]], [LEFT]], [[[5, 0]], [[2, 3]]])
    np.testing.assert_array_equal(q.v, [[0.5], [2.0]])
    np.testing.assert_array_equal(ggpi.improvement.improve_head(q).pi, [LEFT])
    np.testing.assert_array_equal(ggpi.improve(q).pi, [LEFT])
    np.testing.assert_array_equal(ggpi.improve(q.array[1]).pi, [RIGHT])


def test_the_best_of_all_plans_counts_not_their_mean():
    q = np.array([[[4.0, 0.0]], [[0.0, 3.0]], [[0.0, 3.0]]])
    np.testing.assert_array_equal(ggpi.improve(q).pi, [LEFT])


def test_an_open_set_has_no_head_rule():
    policies = [ggpi.TabularPolicy([LEFT], "one"), ggpi.TabularPolicy([RIGHT], "two")]
    q = ggpi.evaluation.QValues(np.zeros((1, 1, 2)), GSPs((ggpi.GSP((0, 1), (0.5,)),)), policies)
    with pytest.raises(ValueError, match=r"lacks 1 suffixes \(two\)"):
        ggpi.improvement.improve_head(q)


def test_the_first_of_tied_actions_is_one_action():
    maximisers = np.array([[True, False, True], [False, True, True], [False, False, True]])
    np.testing.assert_array_equal(break_ties(maximisers, "first"), np.eye(3))
    np.testing.assert_array_equal(break_ties(maximisers, "uniform")[0], [0.5, 0, 0.5])


def test_values_that_a_solver_cannot_tell_apart_are_tied():
    """An error of .5 in all states: .4 is a tie, .6 is not, however large the values are."""
    array = np.array([[[10.0, 9.6], [1000.0, 999.6], [0.0, 0.6]]])
    q = ggpi.evaluation.QValues(array, GSPs((ggpi.GSP((0,)),)), [ggpi.TabularPolicy([LEFT] * 3)])
    known = q.with_accuracy(Accuracy(tolerance=0.0, error=0.5))
    np.testing.assert_array_equal(ggpi.improve(known).pi, [BOTH, BOTH, RIGHT])


@pytest.mark.parametrize("seed", range(5))
def test_random_ties_stay_among_the_maximisers(seed):
    """Forty states choose between two actions; all alike by 2⁻³⁹."""
    maximisers = np.array([[False, True, True], [True, False, False]] * 40)
    pi = break_ties(maximisers, "random", seed)
    assert (pi.sum(axis=1) == 1).all() and (pi <= maximisers).all()
    assert len(np.unique(pi[::2], axis=0)) == 2, "each state has its own lot"


def test_values_of_one_plan_by_place_or_by_name():
    gsps = [ggpi.GSP((0, 1), (0.5,)), ggpi.GSP((1,))]
    q = values_of(gsps, [[LEFT], [RIGHT]], [[[1, 2]], [[3, 4]]])
    np.testing.assert_array_equal(q[gsps[1]], [[3, 4]])
    np.testing.assert_array_equal(q[0], [[1, 2]])
    np.testing.assert_array_equal(q.v, [[1], [4]])
