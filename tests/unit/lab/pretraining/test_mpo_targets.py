"""The critic's targets, from networks that say the same of every state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("mujoco")

from ggpi.lab.pretraining import mpo
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP

pytestmark = pytest.mark.slow

CONFIG = mpo.MPO((4,), (4,), gamma=0.9, reward_scale=0.1, num_actions=3, target_period=2, learning_rate=1e-3)


def constant(value):
    critic = jax.tree.map(jnp.zeros_like, LayerNormMLP((1 + 8, 4, 1), key=jax.random.key(0)))
    return eqx.tree_at(lambda old: old.biases[-1], critic, jnp.full(1, value))


@pytest.fixture(scope="module")
def updated():
    """The learner before, after one and after two updates, and the first one's numbers."""
    network = LayerNormMLP((1, 4, 16), last=0.01, key=jax.random.key(0))
    policy = GaussianPolicy(network=network, name="π", inputs=(3,), scale=(1.0,))
    learner = mpo.new_learner(CONFIG, policy, key=jax.random.key(1))
    learner = eqx.tree_at(lambda old: old.online.critic, learner, constant(2.0))
    learner = eqx.tree_at(lambda old: old.target.critic, learner, constant(7.0))
    rng = np.random.default_rng(0)
    batch = {
        "state": rng.normal(size=(10, 35)).astype(np.float32),
        "next_state": rng.normal(size=(10, 35)).astype(np.float32),
        "action": rng.uniform(-1, 1, (10, 8)).astype(np.float32),
        "direction": np.zeros(10, np.int32),
        "fell": np.arange(10) < 4,
        "reward": rng.normal(size=10).astype(np.float32),
    }
    update = eqx.filter_jit(mpo.update)
    first, numbers = update(CONFIG, learner, batch, key=jax.random.key(2))
    second, _ = update(CONFIG, first, batch, key=jax.random.key(3))
    return learner, first, second, batch, numbers


@pytest.mark.slow
def test_the_critic_learns_from_the_target_networks(updated):
    """0.1 r + 0.9 · 7, and 0.1 r after a fall; the online critic says 2."""
    *_, batch, numbers = updated
    wanted = 0.1 * batch["reward"] + np.where(batch["fell"], 0, 0.9 * 7)
    assert float(numbers["critic_loss"]) == pytest.approx(((2 - wanted) ** 2).mean(), rel=1e-4)
    assert float(numbers["q"]) == pytest.approx(7, rel=1e-5), "actions are weighed by the target critic"


def test_targets_are_copied_every_period(updated):
    before, first, second, *_ = updated
    np.testing.assert_array_equal(first.target.critic.biases[-1], before.target.critic.biases[-1])
    assert (first.online.critic.biases[-1] != before.online.critic.biases[-1]).all()
    assert eqx.tree_equal(second.target, second.online)


def test_values_are_of_executed_actions():
    """Actions beyond the bounds are clipped when they are executed, so their values are those of the bounds."""
    network = LayerNormMLP((1, 4, 16), key=jax.random.key(0))
    policy = GaussianPolicy(network=network, name="π", inputs=(3,), scale=(1.0,))
    networks = mpo.Networks(policy, LayerNormMLP((9, 4, 1), key=jax.random.key(1)))
    state, action = jnp.zeros((2, 35)), jnp.array([[3.0], [-5.0]]) * jnp.ones(8)
    far, near = (np.asarray(mpo._q(networks, state, a)) for a in (action, jnp.clip(action, -1, 1)))
    np.testing.assert_array_equal(far, near)
    assert far[0] != far[1]


def test_the_critic_sees_turned_states_and_actions():
    """An ant that walks another way with renamed legs is the same ant to policy and critic."""
    from ggpi.envs.ant.symmetry import forth, rename_legs, turn_world

    policy = GaussianPolicy(
        network=LayerNormMLP((1, 4, 16), key=jax.random.key(0)), name="π", inputs=(3,), scale=(1.0,)
    )
    learner = mpo.new_learner(CONFIG, policy, key=jax.random.key(1))
    rng = np.random.default_rng(1)
    state = rng.normal(size=35).astype(np.float32)
    state[3:9] = np.array([1, 0.2, 0, 0, 0, np.sqrt(1.04)]) / np.sqrt(1.04)
    state, action = jnp.asarray(state), jnp.asarray(rng.uniform(-1, 1, 8), jnp.float32)

    def prepared(state, action, direction):
        batch = {"state": state, "next_state": state, "action": action, "reward": 1.0, "fell": False}
        batch = {name: jnp.asarray(value)[None] for name, value in batch.items()}
        batch["direction"] = jnp.array([direction], jnp.int32)
        return mpo._prepare(CONFIG, learner, batch, jax.random.key(2))

    prepared, one = jax.jit(prepared), prepared(state, action, 0)
    for direction, legs in ((1, 0), (2, 3), (0, 1)):
        other = prepared(rename_legs(turn_world(state, direction), legs), forth(action, legs), direction)
        for name in ("state", "action", "actions", "q", "target"):
            np.testing.assert_allclose(one[name], other[name], atol=1e-4, err_msg=name)
