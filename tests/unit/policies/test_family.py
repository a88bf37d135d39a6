"""Families π(·|x, z): policies of one function, known by their codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import ggpi
from ggpi.policies import PolicyBank
from ggpi.policies.family import codes_of, family_codes, policy_family

BOUNDS = [-1.0], [1.0]


def scaled(state, z):
    return z * state[:1]


def test_each_code_is_a_policy():
    family = policy_family(scaled, [[0.5], [-0.25]], BOUNDS)
    np.testing.assert_allclose([float(p.mode(jnp.ones(2))[0]) for p in family], [0.5, -0.25])
    assert [p.name for p in family] == ["z = 0.5", "z = -0.25"]
    named = policy_family(scaled, [[0.5], [-0.25]], BOUNDS, names=["up", "down"])
    assert [p.name for p in named] == ["up", "down"]


def test_a_family_is_one_group_of_a_bank():
    bank = PolicyBank(policy_family(scaled, np.linspace(-1, 1, 9)[:, None], BOUNDS))
    assert len(bank.members) == 1
    actions = bank.sample_each(jnp.ones((9, 2)), key=jax.random.key(0))
    np.testing.assert_allclose(actions[:, 0], np.linspace(-1, 1, 9), atol=1e-6)


def test_discrete_actions():
    one, other = policy_family(lambda state, z: z, [[0.0, 1.0], [1.0, 0.0]], Discrete(2), returns="logits")
    assert (int(one.mode(jnp.ones(2))), int(other.mode(jnp.ones(2)))) == (1, 0)


def test_codes_are_those_of_one_family():
    family = policy_family(scaled, [[0.5], [-0.25]], BOUNDS)
    np.testing.assert_array_equal(codes_of(family), [[0.5], [-0.25]])
    single = ggpi.policy_from(lambda state: state[:1], BOUNDS)
    stranger = policy_family(lambda state, z: z * state[1:], [[0.5]], BOUNDS)
    for mixed in ((*family, single), (*family, *stranger)):
        assert family_codes(mixed) is None
        np.testing.assert_array_equal(codes_of(mixed), np.eye(3))


@pytest.mark.parametrize(
    ("codes", "names", "words"),
    [
        ([0.5, 1.0], None, r"one row for each policy, got shape \(2,\)"),
        (np.zeros((0, 2)), None, r"got shape \(0, 2\)"),
        ([[np.nan]], None, "finite"),
        ([[0.5], [1.0]], ["one"], "2 codes, got 1 names"),
    ],
)
def test_bad_input(codes, names, words):
    with pytest.raises(ValueError, match=words):
        policy_family(scaled, codes, BOUNDS, names=names)
