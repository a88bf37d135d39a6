"""Agents warn once of states that are far from their data, and of rewards that no sample reaches."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.agent.warnings
from ggpi import rewards
from ggpi._jax.batching import stack
from ggpi.agent.warnings import FAR, Warner
from ggpi.evaluation.planning import Models
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.policies.bank import PolicyBank

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    """Also those that other tests may meet by chance."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def chain(num_states=3, terminal=None):
    """From each state to the next, whatever is done; the last one is stayed in."""
    P = np.zeros((num_states, 1, num_states))
    P[np.arange(num_states), 0, np.minimum(np.arange(num_states) + 1, num_states - 1)] = 1.0
    mdp = ggpi.TabularMDP(P, np.arange(num_states) == terminal)
    return ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.constant(mdp, 0)], gamma=0.9, alpha=0.5)


def at_start(x):
    return (x == 0).astype(float)


def anywhere(x):
    return jnp.ones(())


def test_a_reward_that_no_sample_reaches():
    """The first state is never entered again."""
    agent = ggpi.GGPIAgent(chain(), rewards.arrival(at_start), depth=1, num_samples=7)
    with pytest.warns(
        ggpi.agent.warnings.NoRewardWarning, match=r"all plans are worth 0 here: none of the 7 .*radius"
    ):
        agent.plan(1, key=KEY)
    agent.act(1, key=KEY)  # said once
    with pytest.warns(ggpi.agent.warnings.NoRewardWarning):
        agent.with_reward(rewards.arrival(at_start)).act(np.array([0, 1]), key=KEY)
    agent.with_reward(rewards.arrival(anywhere)).act(1, key=KEY)


def test_a_reward_that_was_met_may_be_out_of_sight_later():
    agent = ggpi.GGPIAgent(chain(), rewards.state(at_start), depth=1, num_samples=2)
    agent.act(0, key=KEY)
    agent.act(1, key=KEY)


def test_values_that_are_0_for_a_reason():
    agent = ggpi.GGPIAgent(chain(), np.zeros(3), depth=1, num_samples=2)
    agent.act(1, key=KEY)
    agent = ggpi.GGPIAgent(chain(terminal=2), rewards.arrival(anywhere), depth=1, num_samples=2)
    agent.act(2, key=KEY)


class Still(eqx.Module):
    """Does nothing."""

    name: str = "still"

    def sample(self, state, *, key):
        return jnp.zeros(1)


def models(*datasets, relative=()):
    """Untrained models, one for each dataset of states [N, 2]."""
    spec = ggpi.StateSpec(("x", "y"), relative=relative)
    frames = [fit_frame(states, np.zeros((len(states), 1)), states, spec, None) for states in datasets]
    stacked = stack([VAEConfig().build(frame, key=KEY) for frame in frames])
    return ggpi.GHMs(tuple(Still() for _ in datasets), 0.9, (), (stacked,))


def warner(ghms):
    return Warner(Models(dict(ghms.models), PolicyBank(ghms.policies), None), 0.9)


NEAR_0 = np.array([[-1.0, -0.1], [1.0, 0.1]])  # means 0, deviations 1 and 0.1
NEAR_50 = NEAR_0 + 50.0


def test_states_that_are_far_from_the_data():
    agent = ggpi.GGPIAgent(models(NEAR_0, NEAR_0), rewards.arrival(anywhere), depth=1, num_samples=2)
    agent.act(np.array([0.9 * FAR, 0.9 * FAR * 0.1]), key=KEY)
    with pytest.warns(
        ggpi.agent.warnings.UnfamiliarStateWarning,
        match=r"its coordinate 1 is 3, .* 0 ± 0\.1\. .*VecNormalize",
    ):
        agent.act(np.array([2.0, 3.0]), key=KEY)
    agent.act(np.array([2.0, 3.0]), key=KEY)
    agent.with_reward(rewards.arrival(anywhere)).act(np.array([2.0, 3.0]), key=KEY)


def test_any_state_of_a_batch_and_any_model():
    both = warner(models(NEAR_0, NEAR_50))
    both.about_states(np.array([[0.0, 0.0], [50.0, 50.0]]))
    with pytest.warns(ggpi.agent.warnings.UnfamiliarStateWarning, match="coordinate 1 is 25"):
        both.about_states(np.array([[0.0, 0.0], [25.0, 25.0]]))


def test_positions_may_be_anywhere():
    free = warner(models(NEAR_0, relative=(1,)))
    free.about_states(np.array([[0.0, 1000.0]]))
    with pytest.warns(ggpi.agent.warnings.UnfamiliarStateWarning, match="coordinate 0 is -20"):
        free.about_states(np.array([[-20.0, 0.0]]))
    warner(models(NEAR_0, relative=(0, 1))).about_states(np.array([[1000.0, 1000.0]]))
