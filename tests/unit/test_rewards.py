"""Rewards of a batch are modules of arrays; others are refused where they are put together."""

import numpy as np
import pytest

from ggpi import rewards


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
