"""Tabular policies: the table, its most probable action, its logarithm and its samples."""

import jax
import numpy as np

import ggpi
from ggpi import TabularPolicy

PI = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])


def test_mode_and_log_prob():
    policy = TabularPolicy(PI)
    assert policy.mode(np.array([0, 1, 0])).tolist() == [2, 0, 2]
    np.testing.assert_allclose(policy.log_prob([0, 1], [1, 1]), np.log([0.3, 0.4]), rtol=1e-6)
    assert policy.log_prob(1, 2) == -np.inf


def test_ways_to_make_one():
    mdp = ggpi.TabularMDP(np.full((2, 3, 2), 0.5))
    assert TabularPolicy.constant(mdp, 1).pi.tolist() == [[0, 1, 0]] * 2
    assert TabularPolicy.deterministic([2, 0], 3).pi.tolist() == [[0, 0, 1], [1, 0, 0]]
    np.testing.assert_allclose(TabularPolicy.uniform(mdp).pi, 1 / 3)
    assert TabularPolicy.constant(mdp, 1).name == "always 1"


def test_samples_are_of_the_states_own_row():
    certain = TabularPolicy.deterministic([2, 0, 1], 3)
    state = np.array([1, 0, 2, 2, 0])
    assert certain.sample(state, key=jax.random.key(0)).tolist() == [0, 2, 1, 1, 2]
