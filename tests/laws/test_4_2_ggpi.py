"""Thm 4.2: over a suffix-closed set the greedy policy is at least as good as every member."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chance import are_frequencies
from ggpi import GSP, compositions, evaluate, exact_ghms, improve, suffix_closure
from ggpi.improvement import OpenSetWarning, improve_head
from worlds import ALPHAS, bellman_q, bellman_q_star, switching_policies, worlds


def values(world, gsps, alphas=ALPHAS):
    return evaluate(gsps, exact_ghms(world.mdp, list(world.pis), world.gamma, alphas), world.r_action)


closed_sets = st.one_of(
    st.lists(switching_policies(), min_size=1, max_size=5).map(suffix_closure),
    st.tuples(st.integers(1, 3), st.sampled_from(ALPHAS)).map(lambda c: compositions(3, c[0], c[1])),
)


@given(worlds(), closed_sets)
def test_improvement(world, gsps):
    q = values(world, gsps)
    improved = bellman_q(world.P, improve(q).pi, world.r_action, world.gamma)
    assert (improved >= q.array.max(axis=0) - 1e-8).all()


@given(worlds(), st.integers(1, 3), st.sampled_from(ALPHAS))
def test_every_base_policy_is_among_the_dominated(world, depth, alpha):
    q = values(world, compositions(3, depth, alpha)).array.max(axis=0)
    for pi in world.pis:
        assert (q >= bellman_q(world.P, pi, world.r_action, world.gamma) - 1e-8).all()


@given(worlds(max_states=4), st.integers(1, 3))
def test_equality_everywhere_means_optimal(world, depth):
    """Iterating GGPI until Q^{π′} = max_ν Q^ν ends at Q*, and only there."""
    optimal = bellman_q_star(world.P, world.r_action, world.gamma)
    pis = list(world.pis)
    for _ in range(20):
        q = evaluate(
            compositions(len(pis), depth, 0.5, last=len(pis) - 1),
            exact_ghms(world.mdp, pis, world.gamma, 0.5),
            world.r_action,
        )
        improved = improve(q).pi
        now = bellman_q(world.P, improved, world.r_action, world.gamma)
        is_equal = np.abs(now - q.array.max(axis=0)).max() < 1e-10
        if is_equal:
            break
        pis = [pis[-1], improved]
    assert is_equal
    np.testing.assert_allclose(now, optimal, atol=1e-7)


@given(worlds(), closed_sets)
def test_the_head_rule_improves_too(world, gsps):
    """Acting in x with the head of the best ν by V^ν(x): V^{π′} ≥ max_ν V^ν."""
    q = values(world, gsps)
    pi = improve_head(q).pi
    improved = (pi * bellman_q(world.P, pi, world.r_action, world.gamma)).sum(axis=1)
    assert (improved >= q.v.max(axis=0) - 1e-8).all()


@given(worlds(), st.lists(switching_policies(), min_size=1, max_size=3))
def test_an_open_set_is_refused_and_its_missing_suffixes_are_named(world, gsps):
    closure = suffix_closure(gsps)
    assume(len(closure) > len(set(gsps)))
    q = values(world, gsps)
    with pytest.raises(ValueError, match="not suffix-closed") as error:
        improve(q)
    missing = closure[len(set(gsps))]
    assert missing.name([f"π{i}" for i in range(3)]) in str(error.value)
    with pytest.warns(OpenSetWarning):
        improve(q, allow_open_set=True)
    improve(np.asarray(q))


def test_a_bare_array_is_taken_as_it_is():
    assert improve([[0.0, 1.0]]).pi.tolist() == [[0.0, 1.0]]
    assert improve([[[0.0, 1.0]], [[2.0, 0.0]]]).pi.tolist() == [[1.0, 0.0]]


def test_ties():
    q = [[1.0, 1.0 - 1e-12, 0.0], [0.0, 1.0, 1.0]]
    assert improve(q).pi.tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert improve(q, ties="first").pi.tolist() == [[1, 0, 0], [0, 1, 0]]
    picks = np.stack([improve(q, ties="random", seed=seed).pi for seed in range(200)])
    assert set(np.unique(picks)) == {0.0, 1.0}
    for row, tied in ((0, [0, 1]), (1, [1, 2])):
        assert are_frequencies(picks[:, row, tied].sum(axis=0).astype(int), [0.5, 0.5], comparisons=4)
    assert GSP((0,)) == GSP((0, 0), (0.5,))
