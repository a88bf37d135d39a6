"""Many policies as one: each acts on its own states, whatever it is made of."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chance import are_frequencies
from ggpi import TabularPolicy
from ggpi.policies import PolicyBank


class Shift(eqx.Module):
    """Goes from the state's first two numbers by an offset, with noise of a given scale."""

    offset: jax.Array
    name: str
    noise: float = 0.0

    def sample(self, state, *, key):
        return state[:2] + self.offset + self.noise * jax.random.normal(key, (2,))


class Scale(eqx.Module):
    """Another structure."""

    factor: np.ndarray

    def sample(self, state, *, key):
        return state[:2] * self.factor


class Plain:
    """No pytree at all."""

    name = "plain"

    def sample(self, state, *, key):
        return -state[:2]


KEY = jax.random.key(0)
sample = eqx.filter_jit(lambda bank, index, states: bank.sample(index, states, key=KEY))
sample_each = jax.jit(lambda bank, states: bank.sample_each(states, key=KEY))
MIXED = [
    Shift(jnp.array([1.0, 0.0]), "east"),
    Scale(np.array([2.0, 3.0])),
    Shift(jnp.array([0.0, 1.0]), "north"),
    Plain(),
    Shift(jnp.array([0.0, 1.0]), "noisy", 0.5),
]


def expected(k, states):
    return np.asarray(
        [states[:, :2] + [1, 0], states[:, :2] * [2, 3], states[:, :2] + [0, 1], -states[:, :2]][k]
    )


def test_policies_of_one_structure_form_a_group():
    bank = PolicyBank(MIXED)
    assert bank.members == ((0, 2), (1,), (3,), (4,))
    assert len(bank) == 5
    assert bank.arrays[0].offset.shape == (2, 2)
    other = PolicyBank(
        [Shift(jnp.zeros(2), "west"), Scale(np.ones(2)), Shift(jnp.ones(2), "south"), *MIXED[3:]]
    )
    assert jax.tree.structure(bank) == jax.tree.structure(other), "names do not count"


def test_the_indexed_policy_acts():
    bank = PolicyBank(MIXED[:4])
    states = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    index = np.arange(40) % 4
    actions = sample(bank, index, states)
    for k in range(4):
        np.testing.assert_allclose(actions[index == k], expected(k, states[index == k]), rtol=1e-6)
    square = sample(bank, index.reshape(5, 8), states.reshape(5, 8, 3))
    np.testing.assert_array_equal(square.reshape(40, 2), actions)


def test_each_policy_acts_on_its_own_states():
    bank = PolicyBank(MIXED[:4])
    states = np.random.default_rng(1).normal(size=(4, 5, 6, 3)).astype(np.float32)
    actions = sample_each(bank, states)
    assert actions.shape == (4, 5, 6, 2)
    for k in range(4):
        np.testing.assert_allclose(
            actions[k].reshape(-1, 2), expected(k, states[k].reshape(-1, 3)), rtol=1e-6
        )


def test_noise_is_independent_between_states_and_policies():
    bank = PolicyBank([Shift(jnp.zeros(2), "a", 1.0), Shift(jnp.zeros(2), "b", 1.0)])
    n = 4000
    actions = np.asarray(sample_each(bank, jnp.zeros((2, n, 3)))).transpose(1, 0, 2).reshape(n, 4)
    bound = 6 / np.sqrt(
        n
    )  # for 10 numbers of mean zero and variance 1/n: beyond with a probability of about 2e-8
    np.testing.assert_allclose(np.corrcoef(actions, rowvar=False), np.eye(4), atol=bound)
    one = np.asarray(sample(bank, np.zeros(n, int), jnp.zeros((n, 3))))
    assert abs((one[1:] * one[:-1]).mean()) < bound
    np.testing.assert_allclose(one.std(axis=0), 1.0, atol=bound)


def test_tabular_policies_act_on_integers():
    pi = np.random.default_rng(2).dirichlet(np.ones(3), (2, 4))
    bank = PolicyBank([TabularPolicy(pi[0], "a"), TabularPolicy(pi[1], "b")])
    n = 20_000
    states = np.broadcast_to(np.arange(4), (2, n, 4))
    actions = np.asarray(sample_each(bank, states))
    counts = (actions[..., None] == np.arange(3)).sum(axis=1)
    assert are_frequencies(counts, pi, comparisons=27)
    chosen = np.asarray(sample(bank, np.ones(n, int), np.full(n, 3)))
    assert are_frequencies(np.bincount(chosen, minlength=3), pi[1, 3], comparisons=27)


def test_a_bank_goes_through_scan():
    bank = PolicyBank(MIXED[:3])

    def step(carry, key):
        bank, states = carry
        return (bank, states.at[..., :2].set(bank.sample_each(states, key=key))), None

    (_, states), _ = jax.lax.scan(step, (bank, jnp.ones((3, 2, 3))), jax.random.split(KEY, 3))
    np.testing.assert_allclose(states[0, 0, :2], [4, 1])
    np.testing.assert_allclose(states[1, 0, :2], [8, 27])


def test_bad_input():
    class Long(Plain):
        def sample(self, state, *, key):
            return state

    with pytest.raises(ValueError, match="at least one policy"):
        PolicyBank([])
    with pytest.raises(ValueError, match="actions of one shape"):
        PolicyBank([Plain(), Long()]).sample(np.zeros(2, int), jnp.ones((2, 3)), key=KEY)
    with pytest.raises(ValueError, match="2 policies need states"):
        PolicyBank([Plain(), Plain()]).sample_each(jnp.ones((3, 4)), key=KEY)
