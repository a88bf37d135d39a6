"""MPO's loss, against a derivation of its own in NumPy and, where rlax is installed, against rlax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

pytest.importorskip("mujoco")

from ggpi.lab.pretraining import mpo
from ggpi.lab.pretraining.walking import Walk
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP

CONFIG = mpo.MPO(epsilon=0.1, epsilon_mean=0.01, epsilon_std=0.003)


def softplus(x):
    return np.log1p(np.exp(x))


@pytest.fixture
def problem():
    """7 sampled actions in 5 states, 3 coordinates; the online policy has moved a little from the target."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(5, 3)), rng.uniform(0.3, 0.9, (5, 3))
    moved = mean + 0.1 * rng.normal(size=(5, 3)), std * rng.uniform(0.9, 1.2, (5, 3))
    actions = mean + std * rng.normal(size=(7, 5, 3))
    duals = mpo.Duals(np.float64(0.4), rng.normal(size=3), rng.normal(size=3))
    return moved, (mean, std), duals, actions, rng.normal(size=(7, 5))


def as_jax(problem):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), problem)


def by_hand(online, target, duals, actions, q):
    """Each term from its definition, in float64 and with loops."""
    eta = softplus(duals.temperature)
    temperature = np.mean(
        [eta * CONFIG.epsilon + eta * np.log(np.mean(np.exp(q[:, b] / eta))) for b in range(5)]
    )
    fit = 0.0
    for b in range(5):
        w = np.exp(q[:, b] / eta) / np.exp(q[:, b] / eta).sum()
        for j in range(7):
            a = actions[j, b]
            fit -= w[j] * stats.norm.logpdf(a, online[0][b], target[1][b]).sum() / 5
            fit -= w[j] * stats.norm.logpdf(a, target[0][b], online[1][b]).sum() / 5
    kl_mean = ((online[0] - target[0]) ** 2 / (2 * target[1] ** 2)).mean(axis=0)
    ratio = target[1] / online[1]
    kl_std = (-np.log(ratio) + ratio**2 / 2 - 0.5).mean(axis=0)
    held = (softplus(duals.mean) * kl_mean).sum() + (softplus(duals.std) * kl_std).sum()
    learned = (softplus(duals.mean) * (CONFIG.epsilon_mean - kl_mean)).sum()
    learned += (softplus(duals.std) * (CONFIG.epsilon_std - kl_std)).sum()
    return temperature, fit, held, learned


def test_value_against_numpy(problem):
    loss, numbers = mpo.mpo_loss(CONFIG, *as_jax(problem))
    assert float(loss) == pytest.approx(sum(by_hand(*problem)), rel=1e-5)
    assert float(numbers["kl_mean"]) > 0 and float(numbers["kl_std"]) > 0


def test_gradients_against_numpy(problem):
    """By central differences of the terms that each parameter is meant to see, and of no others."""
    online, target, duals, actions, q = problem

    def gradient(pick, terms, value, step=1e-5):
        slopes = np.zeros_like(value, dtype=float)
        for i in np.ndindex(value.shape):
            ends = []
            for sign in (1, -1):
                changed = np.array(value, float)
                changed[i] += sign * step
                ends.append(sum(by_hand(*pick(changed))[term] for term in terms))
            slopes[i] = (ends[0] - ends[1]) / (2 * step)
        return slopes

    got = jax.grad(
        lambda o, d: mpo.mpo_loss(CONFIG, o, *as_jax(problem)[1:2], d, *as_jax(problem)[3:])[0], (0, 1)
    )(*as_jax((online, duals)))
    (mean, std), slopes = got
    wanted = gradient(lambda m: ((m, online[1]), target, duals, actions, q), (1, 2), online[0])
    np.testing.assert_allclose(mean, wanted, rtol=1e-3, atol=1e-4)
    wanted = gradient(lambda s: ((online[0], s), target, duals, actions, q), (1, 2), online[1])
    np.testing.assert_allclose(std, wanted, rtol=1e-3, atol=1e-4)
    wanted = gradient(
        lambda t: (online, target, duals._replace(temperature=t), actions, q), (0,), duals.temperature
    )
    np.testing.assert_allclose(slopes.temperature, wanted, rtol=1e-3)
    wanted = gradient(lambda a: (online, target, duals._replace(mean=a), actions, q), (3,), duals.mean)
    np.testing.assert_allclose(slopes.mean, wanted, rtol=1e-3, atol=1e-5)
    wanted = gradient(lambda a: (online, target, duals._replace(std=a), actions, q), (3,), duals.std)
    np.testing.assert_allclose(slopes.std, wanted, rtol=1e-3, atol=1e-5)


def test_against_rlax(problem):
    rlax = pytest.importorskip("rlax")
    (online, target, duals, actions, q) = as_jax(problem)

    def theirs(online, duals):
        log_prob = jax.scipy.stats.norm.logpdf(actions, online[0], target[1])
        log_prob += jax.scipy.stats.norm.logpdf(actions, target[0], online[1])
        penalties = [
            (
                mpo.gaussian_kl(*target, online[0], target[1]),
                rlax.LagrangePenalty(jax.nn.softplus(duals.mean), CONFIG.epsilon_mean, True),
            ),
            (
                mpo.gaussian_kl(*target, target[0], online[1]),
                rlax.LagrangePenalty(jax.nn.softplus(duals.std), CONFIG.epsilon_std, True),
            ),
        ]
        temperature = rlax.LagrangePenalty(jax.nn.softplus(duals.temperature), CONFIG.epsilon)
        loss, _ = rlax.mpo_loss(
            sample_log_probs=log_prob.sum(axis=-1),
            sample_q_values=q,
            temperature_constraint=temperature,
            kl_constraints=penalties,
        )
        return loss.mean()

    def ours(online, duals):
        return mpo.mpo_loss(CONFIG, online, target, duals, actions, q)[0]

    a, b = (jax.value_and_grad(f, (0, 1))(online, duals) for f in (ours, theirs))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5), a, b)


def test_weights_prefer_better_actions():
    q = jnp.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    cold, _ = mpo.e_step(q, jnp.asarray(0.05), 0.1)
    warm, _ = mpo.e_step(q, jnp.asarray(50.0), 0.1)
    np.testing.assert_allclose(cold[:2], [[0, 1], [1, 0]], atol=1e-6)
    np.testing.assert_allclose(warm, 1 / 3, atol=0.01)


@pytest.mark.slow
def test_the_policy_finds_the_best_action_in_a_known_world():
    """One step, reward −|a − a*|²: critic, E-step and M-step together."""
    small = mpo.MPO((32,), (64, 64), learning_rate=3e-3, epsilon_mean=0.1, epsilon_std=0.01, target_period=10)
    network = LayerNormMLP((1, 32, 4), last=0.01, key=jax.random.key(0))
    policy = GaussianPolicy(network=network, name="π", inputs=(3,), scale=(1.0,))
    learner = mpo.new_learner(small, policy, key=jax.random.key(1))
    rng, best, shape = np.random.default_rng(0), np.array([-0.5, 0.4]), (600, 128)
    state = np.zeros(35, np.float32)
    state[3] = state[8] = 1
    actions = rng.uniform(-1, 1, (*shape, 2)).astype(np.float32)
    batches = {
        "state": np.tile(state, (*shape, 1)),
        "next_state": np.tile(state, (*shape, 1)),
        "action": actions,
        "direction": np.zeros(shape, np.int32),
        "fell": np.ones(shape, bool),
        "reward": -10 * ((actions - best) ** 2).sum(axis=-1).astype(np.float32),
    }
    learner, numbers = mpo.updates(small, learner, batches, key=jax.random.key(2))
    np.testing.assert_allclose(learner.policy.mode(state), best, atol=0.3)
    assert int(learner.count) == 600 and eqx.tree_equal(learner.online, learner.target)
    assert float(numbers["std"]) < 0.7


def test_relabelled_steps_are_paid_for_their_new_direction():
    rng = np.random.default_rng(0)
    state = rng.normal(size=(2, 50, 35)).astype(np.float32)
    following = state.copy()
    following[..., 0] += 0.12
    batch = {
        "state": state,
        "next_state": following,
        "action": np.zeros((2, 50, 8)),
        "fell": np.zeros((2, 50), bool),
    }
    walk = Walk(lateral=0.0, effort=0.0, tilt=0.0)
    new = mpo.relabel(walk, {**batch, "direction": np.zeros((2, 50), int)}, rng)
    wanted = np.array([1, 0, -1, 0])[new["direction"]]
    np.testing.assert_allclose(new["reward"], wanted, atol=1e-4)
    assert set(new["direction"].ravel()) == {0, 1, 2, 3}
