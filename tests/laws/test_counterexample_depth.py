"""No order between depths is promised: a small MDP where depth 2 ends below depth 1."""

import numpy as np
import pytest

import ggpi

GAMMA, ALPHA = 0.8, 0.5


@pytest.fixture(scope="module")
def outcome():
    """Q over the set and the improved policy with its V, at depth 1 and depth 2."""
    mdp, reward, policies = ggpi.envs.deeper_is_worse()
    ghms = ggpi.exact_ghms(mdp, policies, GAMMA, ALPHA)
    found = {}
    for depth in (1, 2):
        q = ggpi.evaluate(ggpi.compositions(len(policies), depth, ALPHA), ghms, reward)
        policy = ggpi.improve(q)
        found[depth] = np.asarray(q), policy.pi, mdp.q(policy, reward, GAMMA), mdp.v(policy, reward, GAMMA)
    return found


def test_depth_two_ends_below_depth_one(outcome):
    shallow, deep = outcome[1][3], outcome[2][3]
    np.testing.assert_allclose(shallow, [15, 15])
    np.testing.assert_allclose(deep, [10, 15])
    assert (deep < shallow - 1e-6).any() and not (deep > shallow + 1e-6).any()


@pytest.mark.parametrize("depth", [1, 2])
def test_no_ties_are_involved(outcome, depth):
    q, pi, _, _ = outcome[depth]
    best = np.sort(q.max(axis=0), axis=1)
    assert (best[:, -1] - best[:, -2] > 0.1).all()
    assert set(np.unique(pi)) == {0.0, 1.0}


@pytest.mark.parametrize("depth", [1, 2])
def test_each_depth_keeps_its_own_promise(outcome, depth):
    q, _, q_improved, _ = outcome[depth]
    assert (q_improved >= q.max(axis=0) - 1e-12).all()


def test_the_numbers_of_the_docstring(outcome):
    """At x₀: go for 3 against stay for 2, as the two sets see them."""
    shallow, deep = outcome[1][0].max(axis=0), outcome[2][0].max(axis=0)
    np.testing.assert_allclose(shallow[0], [0, 2.2, 2])
    np.testing.assert_allclose(deep[0, 1:], [2.2, 2 + 0.8 * 5 / 6])
    assert (deep >= shallow - 1e-12).all(), "the deeper set contains the other, so it promises more"
