"""Rewards of samples, at terminal states and elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.evaluation.rewards import OnHost, PolicyReward, SampledReward
from ggpi.ghm.samplers import Table

STATES = jnp.array([0, 1, 2]).reshape(1, 3, 1)
ACTIONS = jnp.array([1, 0, 1]).reshape(1, 3, 1)


def last_is_terminal(state):
    return state == 2


@pytest.mark.parametrize(
    ("form", "expected"), [("state", [10, 20, 0]), ("arrival", [10, 20, 3])], ids=["leaving", "arriving"]
)
def test_a_terminal_state_is_left_never_and_entered_once(form, expected):
    """Of μ's mass at an absorbing state the share 1−γ is the arrival."""
    reward = SampledReward(Table(jnp.array([10.0, 20.0, 30.0])), form, 0.1, last_is_terminal)
    np.testing.assert_allclose(reward((), STATES).ravel(), expected, rtol=1e-5)
    everywhere = SampledReward(Table(jnp.array([10.0, 20.0, 30.0])), form, 0.1, None)
    np.testing.assert_allclose(everywhere((), STATES).ravel(), [10, 20, 30])


R = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def test_actions_have_rewards():
    reward = SampledReward(Table(R), "state_action", 0.1, last_is_terminal)
    np.testing.assert_allclose(reward((), STATES, ACTIONS).ravel(), [2, 3, 0])


def test_rewards_of_policies_are_means_over_their_actions():
    """Two nodes of policy 2, then two of policy 0; an action that is given counts in the place of the mean."""
    r_pi = jnp.array([[10.0, 20.0, 30.0], [0.0, 0.0, 0.0], [12.0, 22.0, 32.0], [1.0, 1.0, 1.0]])
    reward = SampledReward(PolicyReward(R, r_pi), "policy", 0.1, last_is_terminal)
    states = jnp.array([0, 1, 2, 0]).reshape(4, 1, 1)
    np.testing.assert_allclose(reward((2, 0), states).ravel(), [12, 22, 0, 10])
    np.testing.assert_allclose(reward((2, 0), states, jnp.ones((4, 1, 1), int)).ravel(), [2, 4, 0, 2])


def test_the_host_computes_sample_by_sample():
    reward = SampledReward(OnHost(lambda state: 10 * int(state) + 1), "state", 0.1, last_is_terminal)
    np.testing.assert_allclose(reward((), STATES).ravel(), [1, 11, 0])
