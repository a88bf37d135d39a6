"""fit with discrete actions: the next state is learned too, kept, and used to score first actions."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)
POLICIES = [
    ggpi.policy_from(lambda s, a=a: jnp.eye(2)[a], 2, returns="probabilities", name=f"always {a}")
    for a in range(2)
]


def walks(num_episodes=40, num_steps=30):
    """Action 1 goes one to the right, action 0 one to the left, whoever acts; a third of the actions are random."""
    rng = np.random.default_rng(0)
    behaviour = np.repeat(rng.integers(-1, 2, (num_episodes, num_steps // 5)), 5, axis=1)
    action = np.where(behaviour < 0, rng.integers(2, size=behaviour.shape), behaviour)
    end = np.cumsum(2 * action - 1, axis=1)
    episode, step = np.indices(action.shape)
    begin = end - (2 * action - 1)
    places = [part.reshape(-1, 1).astype(np.float32) for part in (begin, end)]
    last = (step == num_steps - 1).ravel()
    return ggpi.Transitions(
        places[0],
        action.ravel(),
        places[1],
        last & False,
        last,
        behaviour.ravel(),
        episode.ravel(),
        step.ravel(),
    )


def small_fit(**changes):
    settings: dict[str, Any] = {
        "model": ggpi.ghm.vae.VAEConfig(width=16, depth=1),
        "steps": 300,
        "batch_size": 64,
        "key": KEY,
    }
    return ggpi.fit(
        POLICIES, walks(), gamma=0.9, alpha=1 / 9, **(settings | {"learning_rate": 1e-2} | changes)
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    out = tmp_path_factory.mktemp("fit")
    return small_fit(out=out), out


@pytest.mark.slow
def test_the_next_state_is_learned(fitted):
    """It is known up to a hundredth of the distance between the two actions' ends; the bound is a quarter of it."""
    ghms, _ = fitted
    for action in (0, 1):
        keys = jax.random.split(KEY, 100)
        drawn = jax.vmap(lambda key, a=action: ghms.one_step.sample(jnp.array([3.0]), jnp.array(a), key=key))(
            keys
        )
        assert np.mean(drawn) == pytest.approx(3 + 2 * action - 1, abs=0.5)


def test_it_is_kept_and_resumed(fitted):
    ghms, out = fitted
    kept, again = ggpi.load(out / "models", policies=POLICIES), small_fit(out=out)
    for other in (kept, again):
        for ours, theirs in zip(jax.tree.leaves(ghms.one_step), jax.tree.leaves(other.one_step), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_agents_score_first_actions_with_it(fitted):
    """The reward is 1 to the right of 0.5; from 0 only action 1 leads there in a step."""
    ghms, _ = fitted
    reward = ggpi.rewards.arrival(lambda s: jnp.where(s[0] > 0.5, 1.0, 0.0))
    agent = ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=200, first_actions="step")
    value = agent.plan(np.zeros(1), key=KEY).value
    assert (value[:, 1] > value[:, 0]).all()


def test_models_without_it_say_so(fitted):
    without = dataclasses.replace(fitted[0], one_step=None)
    reward = ggpi.rewards.arrival(lambda s: s[0])
    with pytest.raises(ValueError, match="model of the next state, which these models lack"):
        ggpi.GGPIAgent(without, reward, depth=1, first_actions="step")


def test_heads_act_by_default(fitted):
    """To score actions is to leave the states that models were trained in."""
    assert ggpi.GGPIAgent(fitted[0], ggpi.rewards.arrival(lambda s: s[0]), depth=1).first_actions == "head"
