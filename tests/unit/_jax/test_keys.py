"""Random keys: what is not one is named, wherever it is given."""

from inspect import unwrap as untyped  # as users call it: types are checked in tests only

import jax
import numpy as np
import pytest

import ggpi
import ggpi.evaluation
from ggpi._jax.random import checked_key

GIVEN = [
    (0, "got 0"),
    (None, "got None"),
    (np.random.default_rng(0), "got Generator"),
    (jax.random.split(jax.random.key(0), 3), "got an array of 3 keys"),
    (np.zeros(2), "got array"),
]


@pytest.mark.parametrize(("given", "words"), GIVEN)
def test_what_is_not_a_key(given, words):
    with pytest.raises(TypeError, match=rf"key must be one JAX random key, .* {words}"):
        untyped(checked_key)(given)


@pytest.mark.parametrize(
    "given", [jax.random.key(3), jax.random.PRNGKey(3), np.asarray(jax.random.PRNGKey(3))]
)
def test_keys_of_both_kinds(given):
    assert jax.random.uniform(checked_key(given)) == jax.random.uniform(jax.random.key(3))


def test_agents_and_estimates_check_their_keys():
    mdp = ggpi.envs.four_rooms()
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    ghms = ggpi.exact_ghms(mdp, policies, gamma=0.9, alpha=0.5)
    reward = mdp.indicator((1, 11))
    agent = ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=1)
    for call in (untyped(ggpi.GGPIAgent.act), untyped(ggpi.GGPIAgent.plan)):
        with pytest.raises(TypeError, match="key must be one JAX random key"):
            call(agent, 0, key=0)
    with pytest.raises(TypeError, match="key must be one JAX random key"):
        untyped(ggpi.evaluation.evaluate_markov_sampled)(0, ghms, reward, 0, 0, num_samples=1, key=0)
    with pytest.raises(TypeError, match="key must be one JAX random key"):
        untyped(ggpi.fit)(policies, None, gamma=0.9, alpha=0.1, key=0)
