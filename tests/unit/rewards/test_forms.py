"""What each form of reward pays, and which can be put together for a batch."""

import jax.numpy as jnp
import numpy as np
import pytest

from ggpi import StateSpec, rewards


def test_a_target_is_a_disc_of_some_numbers_of_the_state():
    """|(x₂, x₀) − (1, 1)| ≤ 2: on the rim is inside."""
    reward = rewards.target((1.0, 1.0), 2.0, indices=(2, 0))
    assert reward.form == "arrival"
    near, rim, far = [1.0, 9.0, 2.8], [1.0, 9.0, 3.0], [2.0, 1.0, 3.0]
    assert [float(reward.values(jnp.array(x))) for x in (near, rim, far)] == [1, 1, 0]
    many = rewards.targets([[1.0, 1.0], [5.0, 5.0]], 2.0, indices=(2, 0))
    assert many.form == "arrival"
    np.testing.assert_array_equal(many.values.values.radius, [2, 2])
    np.testing.assert_array_equal(many.values.values(jnp.array([near, near])), [1, 0])


def test_features_are_found_by_name():
    reward = rewards.features({"z": 2.0, "x": -1.0}, StateSpec(("x", "y", "z")))
    assert reward.form == "arrival"
    assert float(reward.values(jnp.array([3.0, 100.0, 5.0]))) == 7


def test_the_constructor_names_the_form():
    assert rewards.state(np.ones(3)).form == rewards.as_reward(np.ones(3)).form == "state"
    assert (
        rewards.state_action(np.ones((3, 2))).form
        == rewards.as_reward(np.ones((3, 2))).form
        == "state_action"
    )
    assert rewards.arrival(np.ones(3)).form == "arrival"
    heights = [rewards.Reward("state", rewards.Features(jnp.array([float(i)]), (0,))) for i in range(2)]
    batch = rewards.each(heights)
    assert batch.form == "state"
    np.testing.assert_array_equal(batch.values.values.weights, [[0], [1]])


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        (rewards.state(np.ones(5)), r"an array \(5,\).*agent\.with_reward"),
        (rewards.arrival(lambda state: 0.0), "a plain function"),
    ],
)
def test_a_batch_has_no_arrays_and_no_plain_functions(reward, words):
    with pytest.raises(ValueError, match=words):
        rewards.each([reward, reward])
