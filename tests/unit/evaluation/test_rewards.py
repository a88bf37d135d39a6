"""What samples are paid, at terminal states and elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.evaluation.rewards import OnHost, Table, payment

STATES = jnp.array([0, 1, 2]).reshape(1, 3, 1)
ACTIONS = jnp.array([1, 0, 1]).reshape(1, 3, 1)


def last_is_terminal(state):
    return state == 2


@pytest.mark.parametrize(
    ("form", "expected"), [("state", [10, 20, 0]), ("arrival", [10, 20, 3])], ids=["leaving", "arriving"]
)
def test_a_terminal_state_is_left_never_and_entered_once(form, expected):
    """Of μ's mass at an absorbing state the share 1−γ is the arrival."""
    pay = payment(Table(jnp.array([10.0, 20.0, 30.0])), form, last_is_terminal, 0.9)
    np.testing.assert_allclose(pay(STATES).ravel(), expected, rtol=1e-5)
    everywhere = payment(Table(jnp.array([10.0, 20.0, 30.0])), form, None, 0.9)
    np.testing.assert_allclose(everywhere(STATES).ravel(), [10, 20, 30])


def test_actions_are_paid():
    table = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    pay = payment(Table(table), "state_action", last_is_terminal, 0.9)
    np.testing.assert_allclose(pay(STATES, ACTIONS).ravel(), [2, 3, 0])


def test_the_host_pays_sample_by_sample():
    pay = payment(OnHost(lambda state: 10 * int(state) + 1), "state", last_is_terminal, 0.9)
    np.testing.assert_allclose(pay(STATES).ravel(), [1, 11, 0])
