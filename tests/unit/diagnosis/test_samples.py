"""Samples of models at pairs, and what a truth says about their rows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi._jax.batching import stack
from ggpi.diagnosis import Truth
from ggpi.diagnosis.samples import draw, draw_at, draw_each
from ggpi.diagnosis.truth import on_policy_truth, random_rows, simulate_pairs
from ggpi.envs import PointMass
from ggpi.policies.linear import direction_policies, linear_policy

KEY = jax.random.key(0)


class Walk(eqx.Module):
    """x + factor · a + noise."""

    factor: jax.Array

    def sample(self, state, action, *, key):
        return state + self.factor * action + jax.random.normal(key, state.shape)


STATE, ACTION = np.array([[0.0], [100.0]]), np.array([[1.0], [2.0]])


def test_stacked_models_share_their_noise():
    models = stack([Walk(jnp.array(f)) for f in (0.0, 3.0)])
    drawn = draw_each(models, STATE, ACTION, 5, key=KEY)
    assert drawn.shape == (2, 2, 5, 1)
    np.testing.assert_allclose(
        drawn[1] - drawn[0], np.broadcast_to(3 * ACTION[:, None], (2, 5, 1)), atol=1e-4
    )
    np.testing.assert_allclose(drawn[0], draw(Walk(jnp.array(0.0)), STATE, ACTION, 5, key=KEY), rtol=1e-6)


@pytest.mark.parametrize("kind", [float, int])
def test_rows_repeat_pairs_or_have_an_action_for_each_future(kind):
    """Discrete actions have no axis of their own."""
    future, inner = np.zeros((2, 3, 1)), (1,) if kind is float else ()
    per_pair = np.arange(2, dtype=kind).reshape(2, *inner)
    per_future = np.arange(6, dtype=kind).reshape(2, 3, *inner)
    states, actions = Truth(STATE, per_pair, future).rows
    assert states.ravel().tolist() == [0, 0, 0, 100, 100, 100] and actions.ravel().tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]
    assert Truth(STATE, per_future, future).rows[1].ravel().tolist() == [0, 1, 2, 3, 4, 5]


def test_samples_at_a_truth_follow_its_first_actions():
    truth = Truth(STATE, np.arange(6.0).reshape(2, 3, 1), np.zeros((2, 3, 1)))
    ours, still = (draw_at(Walk(jnp.array(f)), truth, key=KEY) for f in (10.0, 0.0))
    np.testing.assert_allclose(ours - still, 10 * truth.action, atol=1e-4)


def test_on_policy_futures_start_with_actions_of_the_policy():
    """At β = 0 the future is one step of the environment after the action that the truth names."""
    rng = np.random.default_rng(0)
    world, states = PointMass(), PointMass().start(4, rng).astype(np.float32)
    noisy = linear_policy(np.zeros((2, 4)), 0.0, 0.3, "noisy")
    truth = on_policy_truth(world, noisy, states, 0.0, 5, seeds=[1, 2], key=KEY)
    assert truth.action.shape == (4, 5, 2) and len(np.unique(truth.action)) > 30
    wanted = world.step(*truth.rows).reshape(4, 5, 4)
    np.testing.assert_allclose(truth.future, wanted, atol=1e-6)
    np.testing.assert_allclose(truth.again, wanted, atol=1e-6)
    later = on_policy_truth(world, noisy, states, 0.9, 5, seeds=[1, 2], key=KEY)
    assert not np.allclose(later.future, later.again)
    assert on_policy_truth(world, noisy, states, 0.0, 5, seeds=[1], key=KEY).again is None


def test_simulated_pairs_are_in_order():
    rng = np.random.default_rng(0)
    states, actions = PointMass().start(3, rng), rng.uniform(-1, 1, (3, 2))
    found = simulate_pairs(PointMass(), direction_policies()[0], states, actions, 0.0, 4, seed=0)
    np.testing.assert_allclose(found, np.repeat(PointMass().step(states, actions)[:, None], 4, axis=1))


def test_rows_are_drawn_without_replacement():
    from ggpi import Transitions

    n = np.arange(20)
    data = Transitions(n[:, None] * 1.0, n, n[:, None] * 1.0, n < 0, n < 0, n, n, n)
    assert sorted(random_rows(data, 20, 0).action.tolist()) == n.tolist()
    assert random_rows(data, 3, 1).action.tolist() == random_rows(data, 3, 1).action.tolist()
