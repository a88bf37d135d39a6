"""Models of policies that were learned apart, joined: each answers as it did alone."""

import jax
import numpy as np
import pytest

import ggpi
from ggpi._jax.batching import stack
from ggpi.data import StateSpec
from ggpi.ghm import GHMs, exact_ghms, joined_ghms
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig


def learned(name: str, seed: int) -> GHMs:
    rng = np.random.default_rng(seed)
    states, actions = rng.normal(size=(20, 2)), rng.integers(3, size=20)
    frame = fit_frame(states, actions, states + 1, StateSpec(("x", "y")), 3)
    models = [VAEConfig(width=8).build(frame, key=jax.random.key(seed + i)) for i in (0, 10)]
    return GHMs((name,), 0.9, (0.1,), tuple(stack([model]) for model in models))


def test_learned_models_answer_as_they_did_alone():
    parts = [learned("one", 1), learned("two", 2)]
    joined = joined_ghms(parts)
    assert tuple(joined.policies) == ("one", "two")
    state, action, key = np.array([0.3, -1.0], np.float32), 2, jax.random.key(5)
    for i, part in enumerate(parts):
        for alpha in (None, 0.1):
            alone = part.segment(0, alpha).sample(state, action, key=key)
            np.testing.assert_array_equal(joined.segment(i, alpha).sample(state, action, key=key), alone)


def test_exact_models_answer_as_they_did_together():
    mdp = ggpi.envs.four_rooms()
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    together = exact_ghms(mdp, policies, 0.9, 0.1)
    joined = joined_ghms([exact_ghms(mdp, [policy], 0.9, 0.1) for policy in policies])
    gsps, reward = ggpi.compositions(2, 2, 0.1), mdp.indicator((1, 11))
    np.testing.assert_allclose(
        ggpi.evaluate(gsps, joined, reward), ggpi.evaluate(gsps, together, reward), rtol=0, atol=1e-12
    )


def test_what_does_not_go_together_is_refused():
    mdp = ggpi.envs.four_rooms()
    parts = [exact_ghms(mdp, [ggpi.TabularPolicy.uniform(mdp)], gamma, 0.1) for gamma in (0.9, 0.95)]
    with pytest.raises(ValueError, match="one γ"):
        joined_ghms(parts)
    with pytest.raises(ValueError, match="nothing to join"):
        joined_ghms([])
