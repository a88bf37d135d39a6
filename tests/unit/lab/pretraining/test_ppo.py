"""PPO's advantages and loss, computed again episode by episode with NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

pytest.importorskip("mujoco")

from ggpi.lab.pretraining import ppo
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP

CONFIG = ppo.PPO(gamma=0.9, lam=0.8, reward_scale=0.1, entropy=0.05, clip=0.2)


def episodes(cut):
    """The rows of one ant, in pieces that end where its trajectory is cut."""
    ends = np.flatnonzero(cut)
    return np.split(np.arange(len(cut)), ends[ends < len(cut) - 1] + 1)


def by_hand(config, before, after, steps):
    """Âₜ = Σ (γλ)ᵏ δₜ₊ₖ over the rest of the episode, ant by ant."""
    wanted = np.zeros(before.shape)
    for ant in range(before.shape[1]):
        for rows in episodes(steps["cut"][:, ant]):
            for place, t in enumerate(rows):
                for k, later in enumerate(rows[place:]):
                    value = 0.0 if steps["fell"][later, ant] else after[later, ant]
                    reward = config.reward_scale * steps["reward"][later, ant]
                    delta = reward + config.gamma * value - before[later, ant]
                    wanted[t, ant] += (config.gamma * config.lam) ** k * delta
    return wanted


@pytest.fixture
def walked():
    """Twelve steps of five ants: some fall, some change direction, one walks on."""
    rng = np.random.default_rng(0)
    fell = rng.random((12, 5)) < 0.15
    cut = fell | (rng.random((12, 5)) < 0.2)
    fell[:, 0] = cut[:, 0] = False
    cut[4, 1], fell[4, 1], fell[7, 2], cut[7, 2] = True, False, True, True
    steps = {"reward": 10 * rng.normal(size=(12, 5)), "fell": fell, "cut": cut}
    return rng.normal(size=(12, 5)), rng.normal(size=(12, 5)), steps


def test_advantages_end_with_their_episode(walked):
    before, after, steps = walked
    assert steps["fell"].any() and (steps["cut"] & ~steps["fell"]).any()
    got = ppo.advantages(CONFIG, *jax.tree.map(jnp.asarray, walked))
    np.testing.assert_allclose(got, by_hand(CONFIG, before, after, steps), rtol=1e-4, atol=1e-4)


def test_nothing_after_a_cut_changes_what_was_before(walked):
    """A change of direction cuts: rewards and values of later rows belong to another trajectory."""
    before, after, steps = walked
    changed = steps | {"reward": steps["reward"] + 1000 * (np.arange(12) > 4)[:, None]}
    one, other = (
        np.asarray(ppo.advantages(CONFIG, *jax.tree.map(jnp.asarray, (before, after, given))))
        for given in (steps, changed)
    )
    np.testing.assert_array_equal(one[:5, 1], other[:5, 1])
    assert (one[:5, 0] != other[:5, 0]).all(), "ant 0 was not cut"


def policy(size=2):
    network = LayerNormMLP((1, 4, 2 * size), key=jax.random.key(0))
    return GaussianPolicy(network=network, name="π", inputs=(3,), scale=(0.5,))


@pytest.mark.parametrize("moved", [0.0, 0.6])
def test_the_loss_by_hand(moved):
    """− E[min(ρ Â, clip(ρ, 1 ± ε) Â)] + E[(V − V̂)²] − c H with normalised Â."""
    rng = np.random.default_rng(1)
    actor, critic = policy(), LayerNormMLP((1, 4, 1), key=jax.random.key(1))
    turned = rng.normal(size=(30, 35)).astype(np.float32)
    mean, std = (np.asarray(part, float) for part in jax.vmap(actor.distribution)(turned))
    action = mean + std * rng.normal(size=mean.shape)
    log_prob = stats.norm.logpdf(action, mean, std).sum(axis=1)
    old = log_prob - moved * rng.normal(size=30)
    advantage, target = 5 + 3 * rng.normal(size=30), rng.normal(size=30)
    params, static = eqx.partition((actor, critic), eqx.is_array)
    given = [jnp.asarray(part, jnp.float32) for part in (turned, action, old, advantage, target)]
    value, kl = ppo.loss(params, static, CONFIG, *given)
    ratio = np.exp(log_prob - old)
    normal = (advantage - advantage.mean()) / advantage.std()
    gain = np.minimum(ratio * normal, np.clip(ratio, 0.8, 1.2) * normal).mean()
    v = np.array([critic(jnp.array([0.5 * x]))[0] for x in turned[:, 3]], float)
    wanted = -gain + ((v - target) ** 2).mean() - 0.05 * np.log(std).sum(axis=1).mean()
    assert float(value) == pytest.approx(wanted, rel=1e-3)
    assert float(kl) == pytest.approx((ratio - 1 - np.log(ratio)).mean(), rel=1e-2, abs=1e-5)
    assert (moved == 0) == (np.abs(ratio - 1) < 1e-9).all()


def walked_on(learner, rng, reward, fell):
    """Six ants, four steps: what `update` takes."""
    shape = (4, 6)
    steps = {
        "next_state": rng.normal(size=(*shape, 35)).astype(np.float32),
        "direction": np.zeros(shape, np.int32),
        "reward": np.broadcast_to(np.asarray(reward, np.float32), shape),
        "fell": np.full(shape, fell),
        "cut": np.full(shape, fell),
    }
    turned = rng.normal(size=(*shape, 35)).astype(np.float32)
    mean, std = (np.asarray(part) for part in jax.vmap(jax.vmap(learner.policy.distribution))(turned))
    action = (mean + std * rng.normal(size=mean.shape)).astype(np.float32)
    log_prob = stats.norm.logpdf(action, mean, std).sum(axis=-1).astype(np.float32)
    return turned, action, log_prob, steps


@pytest.mark.slow
@pytest.mark.parametrize(("target", "factor"), [(10.0, 1.5), (1e-12, 1 / 1.5)])
def test_the_learning_rate_follows_the_divergence_and_values_go_to_the_returns(target, factor):
    """A change of policy below the wanted one makes the next step larger, one above makes it smaller.

    All values are 1 at first. Every step ends in a fall and gives about 0.1 · 15 = 1.5: values rise.
    """
    config = ppo.PPO((4,), (4,), horizon=4, epochs=1, minibatches=2, min_rate=1e-7, kl_target=target)
    learner = ppo.new_learner(config, policy(size=8), key=jax.random.key(2))
    flat = jax.tree.map(jnp.zeros_like, learner.value)
    flat = eqx.tree_at(lambda old: old.biases[-1], flat, jnp.ones(1))
    rate = jnp.asarray(6e-4, jnp.float32)
    learner = eqx.tree_at(lambda old: (old.learning_rate, old.value), learner, (rate, flat))
    rng = np.random.default_rng(3)
    given = walked_on(learner, rng, 15 + rng.normal(size=(4, 6)), True)
    after, numbers = ppo.update(config, learner, *given, key=jax.random.key(4))
    assert (
        float(numbers["learning_rate"])
        == float(after.learning_rate)
        == pytest.approx(factor * 6e-4, rel=1e-5)
    )
    assert float(numbers["kl"]) > 1e-6, "far from what rounding makes of zero"
    weights = zip(after.policy.network.weights, learner.policy.network.weights, strict=True)
    assert 0 < max(float(abs(new - old).max()) for new, old in weights) < 3e-3, "two steps of about 6e-4"
    assert float(after.value.biases[-1][0]) == pytest.approx(1 + 12e-4, abs=3e-4)
