"""Def 4.1, Prop 5.1: what is suffix-closed, and what is the same switching policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggpi import GSP, compositions, suffix_closure
from ggpi.switching import gsp_set, is_suffix_closed, missing_suffixes
from worlds import ALPHAS, switching_policies

sets = st.lists(switching_policies(), min_size=1, max_size=6)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(ALPHAS))
def test_compositions_with_equal_alpha(k, depth, alpha):
    """Π_m has kᵐ members, is closed, and contains Π_{m−1}."""
    gsps = compositions(k, depth, alpha)
    assert len(gsps) == k**depth
    assert is_suffix_closed(gsps)
    assert depth == 1 or all(gsp in gsps for gsp in compositions(k, depth - 1, alpha))
    newest = compositions(k, depth, alpha, last=k - 1)
    assert is_suffix_closed(newest) and len(newest) == k ** (depth - 1)
    assert all(gsp in gsps and gsp.policies[-1] == k - 1 for gsp in newest)


@given(st.integers(2, 3), st.permutations([0.1, 0.5, 1.0]))
def test_compositions_with_unequal_alpha_are_closed_on_purpose(k, alphas):
    gsps = compositions(k, 4, alphas)
    assert is_suffix_closed(gsps)
    assert len(gsps) > k**4
    assert not is_suffix_closed(list(gsps)[: k**4])


@given(sets)
def test_closure_is_closed_keeps_its_members_and_is_the_least(gsps):
    closure = suffix_closure(gsps)
    assert is_suffix_closed(closure)
    assert set(gsps) <= set(closure)
    assert set(closure) == set(gsps) | set(missing_suffixes(gsps))
    needed = {gsp.suffix for gsp in closure} - {None}
    assert set(missing_suffixes(gsps)) <= needed


def test_what_a_set_says_of_itself():
    gsps = suffix_closure([GSP((0, 3, 1), (0.1, 0.5)), GSP((1,))])
    assert list(gsps) == [GSP((0, 3, 1), (0.1, 0.5)), GSP((1,)), GSP((3, 1), (0.5,))], "suffixes come last"
    assert (gsps.num_policies, gsps.depth) == (4, 3)
    assert gsp_set([GSP((0, 3, 1), (0.1, 0.5))]).num_policies == 4, "policies that are no heads count, too"
    ends_in_the_first = compositions(3, 2, 0.5, last=0)
    assert set(ends_in_the_first) == {GSP((0,)), GSP((1, 0), (0.5,)), GSP((2, 0), (0.5,))}


def test_repeats_of_the_last_policy_say_nothing():
    assert GSP((0, 1, 1, 1), (0.1, 0.5, 0.9)) == GSP((0, 1), (0.1,))
    assert GSP((0, 0, 1), (0.1, 0.1)) != GSP((0, 1), (0.1,))
    assert GSP((0, 1), (0.1,)) != GSP((0, 1), (0.2,))
    assert GSP((0, 1, 0), (0.1, 0.2)).suffix == GSP((1, 0), (0.2,))
    assert GSP((3,)).suffix is None


def test_names():
    assert GSP((0, 1), (1 / 9,)).name(["left", "up"]) == "left →(1/9) up"
    assert str(GSP((2, 0), (0.25,))) == "π2 →(0.25) π0"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GSP((), ()), "at least one"),
        (lambda: GSP((0, 1), ()), "1 switches, got 0"),
        (lambda: GSP((0, 1), (0.0,)), r"α.*\(0, 1\], got 0"),
        (lambda: GSP((0, 1), (1.5,)), r"α.*got 1.5"),
        (lambda: GSP((-1,)), "not negative"),
        (lambda: suffix_closure([]), "empty"),
        (lambda: compositions(0, 2, 0.5), "num_policies is at least 1"),
        (lambda: compositions(2, 0, 0.5), "depth is at least 1"),
        (lambda: compositions(2, 3, [0.5]), "2 switches, got 1"),
        (lambda: compositions(2, 2, 0.5, last=2), "one of 0 to 1, got 2"),
        (lambda: compositions(2, 2, float(np.nan)), "got nan"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises((ValueError, IndexError), match=message):
        make()
