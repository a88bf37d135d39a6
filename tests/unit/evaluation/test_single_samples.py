"""What a single sample, an infinite reward and an untraceable reward of a batch lead to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi import GSP, rewards
from ggpi.evaluation import (
    evaluate_gsp_sampled,
    evaluate_janner_sampled,
    evaluate_markov_sampled,
    evaluate_pairs_sampled,
)

KEY = jax.random.key(0)


def world(gamma=0.9):
    """Three states, the last terminal."""
    P = np.zeros((3, 2, 3))
    P[0, :, 1] = P[1, 0, 2] = P[2, :, 2] = 1.0
    P[1, 1] = [0, 0.5, 0.5]
    mdp = ggpi.TabularMDP(P, [False, False, True])
    return ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.uniform(mdp)], gamma, 0.5)


@pytest.mark.parametrize(
    "form, gamma", [("state", 0.9), ("state_action", 0.9), ("arrival", 0.9), ("state", 0.0)]
)
def test_one_sample_has_an_infinite_standard_error(form, gamma):
    """Everywhere: one sample says nothing about its error, not even where the reward does not vary."""
    ghms = world(gamma)
    reward = getattr(rewards, form)(np.ones((3, 2)) if form == "state_action" else np.ones(3))
    pairs = np.arange(3), np.zeros(3, int)
    q = evaluate_pairs_sampled([GSP((0,))], ghms, reward, num_samples=1, key=KEY)
    one = {"num_samples": 1, "key": KEY}
    estimates = [
        evaluate_gsp_sampled(GSP((0,)), ghms, reward, *pairs, **one),
        evaluate_markov_sampled(0, ghms, reward, *pairs, num_segments=2, **one),
        evaluate_janner_sampled(0, ghms, reward, *pairs, **one),
    ]
    plan = ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=1).plan(np.arange(3), key=KEY)
    for stderr in (q.stderr, *(estimate.stderr for estimate in estimates), plan.stderr):
        assert (stderr == np.inf).all()
    for mean in (q.array, *(estimate.mean for estimate in estimates), plan.value):
        assert np.isfinite(mean).all()


@pytest.mark.slow
def test_an_arrival_reward_may_be_infinite_where_one_stands():
    """State 0 is never entered; state 1 is."""
    ghms = world()
    plans = []
    for first in (np.inf, np.nan, 0.0):
        agent = ggpi.GGPIAgent(ghms, rewards.arrival([first, 1.0, 2.0]), depth=1, num_samples=4)
        plans.append(agent.plan(0, key=KEY).value)
        function = rewards.arrival(lambda x, first=first: jnp.array([first, 1.0, 2.0])[x])
        plans.append(agent.with_reward(function).plan(0, key=KEY).value)
    assert np.isfinite(plans[0]).all()
    for plan in plans[1:]:
        np.testing.assert_array_equal(plan, plans[0])
    # All samples miss state 1, which has probability of at least 1 − γ, in 1 case out of 10¹⁸.
    entered = ggpi.GGPIAgent(ghms, rewards.arrival([0.0, np.inf, 0.0]), depth=1, num_samples=400)
    with pytest.raises(ValueError, match=r"the reward is inf at sample \d+: state 1"):
        entered.plan(0, key=KEY)


class Branching(eqx.Module):
    """A reward with an `if`, which JAX cannot trace."""

    limit: jax.Array

    def __call__(self, state):
        return 1.0 if state > self.limit else 0.0


def test_untraceable_rewards_of_a_batch_are_named():
    ghms = world()
    agent = ggpi.GGPIAgent(ghms, np.zeros(3), depth=1, num_samples=2)
    each = [rewards.arrival(Branching(jnp.array(limit))) for limit in (0, 1)]
    with pytest.raises(ValueError, match=r"JAX cannot trace Branching: write it with jax.numpy.*with_reward"):
        agent.with_reward(rewards.each(each))
    alone = agent.with_reward(rewards.arrival(lambda state: 1.0 if state > 0 else 0.0)).plan(0, key=KEY)
    assert np.isfinite(alone.value).all()
