"""Model-predictive control on a one-step model that is known."""

from typing import Any

import jax
import numpy as np
import pytest

from ggpi.envs.directions import EIGHT
from ggpi.ghm.abstract import AbstractGHM
from ggpi.lab.walks import Walks, over_walks
from ggpi.policies import ogbench_policies


class Moves(AbstractGHM):
    """A plane without walls."""

    frame: Any = None

    @property
    def noise_size(self):
        return 2

    @property
    def loss_noise_size(self):
        return 0

    def push(self, state, action, noise):
        return state + action

    def loss(self, state, action, target, noise):
        raise NotImplementedError


@pytest.mark.parametrize("way", range(8))
def test_the_first_action_leads_to_the_target(way):
    """A target three steps ahead; walks that begin in another direction arrive later."""
    decide = over_walks(Moves(), ogbench_policies(noise=0.0), Walks(256, 8, 0.1, 0.5, 0.4))
    states = np.array([[5.0, -2.0], [0.0, 0.0]])
    actions = decide(states, states + 3 * EIGHT[way], jax.random.key(way))
    np.testing.assert_allclose(actions, np.tile(EIGHT[way], (2, 1)), atol=1e-6)


def test_without_a_target_in_sight_first_actions_are_drawn():
    decide = over_walks(Moves(), ogbench_policies(noise=0.0), Walks(64, 4, 0.1, 0.9, 0.4))
    actions = [decide(np.zeros((1, 2)), np.full((1, 2), 99.0), jax.random.key(i))[0] for i in range(24)]
    assert len({tuple(np.round(action, 2)) for action in actions}) > 3
