"""Rewards that users wrote: their errors are their own, and an index out of range is found before the first step."""

import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi import rewards
from ggpi.agent.checks import _check_terminal
from ggpi.evaluation.rewards import OnHost, checked_payment

STATE = jax.ShapeDtypeStruct((3,), jnp.float32)
ACTION = jax.ShapeDtypeStruct((2,), jnp.float32)
TABLE = jnp.arange(12.0)


def checked(reward):
    return checked_payment(reward, STATE, ACTION)


def helper(state):
    return state @ jnp.ones(4)


def unknown(state):
    return undefined_name


def missing(state):
    return {}["missing"]


def in_python(state):
    return {1: 0.0}[int(state[0] > 5) + 1]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (unknown, r"NameError\(.*undefined_name.*\) in line \d+ of .*test_functions.py on a state"),
        (missing, r"KeyError\('missing'\) in line \d+ of .*test_functions.py on a state of shape \(3,\)"),
        (lambda state: helper(state), r"TypeError\(.*\) in line \d+ of .*test_functions.py"),
        (lambda state: None, "the reward raised ValueError.*None"),
        (lambda state: "high", "the reward raised TypeError.*high"),
        (lambda state, action: 0.0, "the reward raised TypeError.*positional argument: 'action'"),
    ],
)
def test_errors_name_the_line_and_have_no_frames_of_jax(function, words):
    with pytest.raises(ValueError, match=words) as caught:
        checked(rewards.arrival(function))
    text = "".join(traceback.format_exception(caught.value.__cause__, chain=False))
    assert "site-packages" not in text and "JAX_TRACEBACK_FILTERING" not in text


def test_errors_of_plain_python_name_line_and_sample():
    values = checked(rewards.arrival(in_python))
    assert isinstance(values, OnHost)
    with pytest.raises(
        ValueError, match=r"KeyError\(2\) in line \d+ of .*\.py at sample 1: state \[9"
    ) as caught:
        values.pay_all(np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]))
    (frame,) = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert frame.name == "in_python"


@pytest.mark.parametrize(
    "function",
    [
        lambda s: s[9],
        lambda s: s[-7],
        lambda s: s[..., 3],
        lambda s: s[jnp.array([0, 9])].sum(),
        lambda s: s[np.array([0, 9])].sum(),
        jax.jit(lambda s: jnp.where(s[0] > 0, s[9], 0.0)),
        lambda s: jax.lax.dynamic_index_in_dim(s, 3, keepdims=False),
    ],
)
def test_indices_out_of_range_are_found(function):
    with pytest.raises(ValueError, match=r"index that is out of range.* index -?\d+ .*shape \(3,\)"):
        checked(rewards.arrival(function))
    with pytest.raises(ValueError, match="terminal has an index that is out of range"):
        _check_terminal(lambda s: function(s) > 0, STATE)


def test_an_index_of_an_action_is_found():
    with pytest.raises(ValueError, match=r"index 3 .*A state has shape \(3,\) and an action \(2,\)"):
        checked(rewards.state_action(lambda s, a: s[0] * a[3]))


@pytest.mark.parametrize(
    "function",
    [
        lambda s: s[2] + s[-3] + s[1:9].sum(),
        lambda s: s[jnp.array([0, 2, -1])].sum(),
        lambda s: TABLE[jnp.int32(s[0])],
        lambda s: TABLE[jnp.int32(100 * s[0] + 40)],  # out of range, but where depends on the state
        lambda s: TABLE[jnp.argmax(s)],
    ],
)
def test_other_indices_are_not(function):
    assert checked(rewards.arrival(function)) is function
    assert _check_terminal(lambda s: function(s) > 0, STATE) is None


def test_indices_of_actions():
    assert callable(checked(rewards.state_action(lambda s, a: s[2] * a[1])))
    with pytest.raises(ValueError, match=r"index 2 is out of bounds for axis 0 with size 2"):
        checked(rewards.state_action(lambda s, a: s[2] * a[2]))


def test_numbered_states():
    number = jax.ShapeDtypeStruct((), jnp.int32)
    reward = rewards.state(lambda x: TABLE[x])
    assert checked_payment(reward, number, number, (12, 2)) is reward.values
