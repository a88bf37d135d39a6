"""Thm 6.3, Eq 7–9, 12: tabular CETD and CEMC reach μ."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chance import are_frequencies, error_of_mean
from ggpi import GSP, TabularMDP, TabularPolicy
from ggpi.envs import three_states
from ggpi.envs.examples import CETD_LOGITS
from ggpi.ghm import ExactGHM, cemc, cetd, cetd_replay, polynomial_steps
from ggpi.rollout.execution import rollout

ONE_ACTION = np.ones((3, 1))
START = CETD_LOGITS[:, None, :]


def variation(mu, truth):
    """The largest total variation over rows."""
    return 0.5 * np.abs(np.asarray(mu) - truth).sum(axis=-1).max(axis=(-2, -1))


@pytest.mark.parametrize(("transient", "bound"), [(False, 0.1), (True, 0.12)])
@pytest.mark.parametrize("learn", [cetd, cemc])
def test_both_matrices_converge(learn, transient, bound):
    """From above ½. Over ten seeds CETD's mean error is 0.035 ± 0.006 and 0.053 ± 0.005: ten deviations below."""
    mdp = three_states(transient)
    keys = jax.random.split(jax.random.key(0), 4)

    def fit(key):
        return learn(mdp, ONE_ACTION, 0.9, num_steps=30_000, record_every=15_000, logits=START, key=key)

    errors = variation(jax.vmap(fit)(keys).mu, ExactGHM(mdp, ONE_ACTION, 0.9).dense())
    assert errors.shape == (4, 2)
    assert errors[:, -1].mean() < bound


def test_one_step_is_the_update_of_eq_9():
    """From the same draws, φ₁ − φ₀ = ε₀ ((1−γ) e_x′ + γ e_x″ − μ₀): each row's change says what was drawn."""
    mdp, gamma = three_states(), 0.9
    ghm = cetd(mdp, ONE_ACTION, gamma, num_steps=1, logits=START, key=jax.random.key(5))
    change = (np.asarray(ghm.logits) - START) / 0.75
    target = change + np.asarray(jax.nn.softmax(jnp.asarray(START), axis=-1))
    for row in target.reshape(-1, 3):
        weights = {round(float(value), 4) for value in row if abs(value) > 1e-4}
        assert weights in ({0.1, 0.9}, {1.0})


def test_the_mean_update_is_the_gradient_of_the_cross_entropy():
    """Eq 11 and 12: E[φ₁ − φ₀]/ε = −∇ KL(T μ̄ ‖ softmax φ), by automatic differentiation."""
    from ggpi.ghm import bellman

    mdp, gamma, n = three_states(), 0.9, 4000
    keys = jax.random.split(jax.random.key(0), n)
    steps = jax.vmap(lambda key: cetd(mdp, ONE_ACTION, gamma, num_steps=1, logits=START, key=key).logits)(
        keys
    )
    mean = (np.asarray(steps).mean(axis=0) - START) / 0.75
    mu = np.asarray(jax.nn.softmax(jnp.asarray(START), axis=-1))
    target = jnp.asarray(bellman(mu, mdp, ONE_ACTION, gamma), jnp.float32)

    def cross_entropy(logits):
        return -(target * jax.nn.log_softmax(logits, axis=-1)).sum()

    gradient = jax.grad(cross_entropy)(jnp.asarray(START, jnp.float32))
    # changes lie in an interval of length 1, so that none has a standard deviation above ½
    np.testing.assert_allclose(mean, -gradient, atol=error_of_mean(0.5, n, 1.0, comparisons=9))


def absorbing_chain():
    """0 → 1 → end with chances to stay; two actions of different haste."""
    P = np.zeros((3, 2, 3))
    P[0, :, 0], P[0, :, 1] = [0.6, 0.2], [0.4, 0.8]
    P[1, :, 1], P[1, :, 2] = [0.5, 0.1], [0.5, 0.9]
    P[2, :, 2] = 1
    return TabularMDP(P, [False, False, True])


def test_replay_learns_off_policy_and_knows_terminals():
    """Recorded by a uniform policy, learned for another; nothing is recorded from the terminal state on."""
    mdp = absorbing_chain()
    pi = TabularPolicy([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    behaviour = TabularPolicy.uniform(mdp)
    data = rollout(GSP((0,)), [behaviour], mdp, num_steps=50, num_episodes=4000, start=0, seed=0)
    assert data.terminated.sum() == 4000 and not data.truncated.any()
    steps = polynomial_steps(2.0, 0.6)
    ghm = cetd_replay(data, pi, 0.8, num_steps=20_000, batch_size=64, step_size=steps, key=jax.random.key(0))
    truth = ExactGHM(mdp, pi, 0.8).dense()
    # over ten seeds 0.016 ± 0.009, most of it from the record's 4000 episodes
    assert variation(np.asarray(ghm.mu)[:2], truth[:2]) < 0.1


@pytest.mark.parametrize("learn", [cetd, cemc])
def test_no_key_is_used_twice(learn):
    """Checked by JAX itself."""
    with jax.debug_key_reuse(True):
        learn(three_states(), ONE_ACTION, 0.9, num_steps=2, key=jax.random.key(0))


def test_replay_uses_no_key_twice():
    data = rollout(GSP((0,)), [ONE_ACTION], three_states(), num_steps=3, start=2)
    with jax.debug_key_reuse(True):
        cetd_replay(data, ONE_ACTION, 0.9, num_steps=2, key=jax.random.key(0))


def test_learned_models_can_be_sampled():
    ghm = cetd(three_states(), ONE_ACTION, 0.9, num_steps=10, logits=START, key=jax.random.key(0))
    drawn = ghm.sample(jnp.zeros(20_000, int), jnp.zeros(20_000, int), key=jax.random.key(1))
    assert are_frequencies(np.bincount(np.asarray(drawn), minlength=3), ghm.mu[0, 0], comparisons=3)


def test_bad_input():
    mdp, key = three_states(), jax.random.key(0)
    with pytest.raises(ValueError, match="multiple of record_every"):
        cetd(mdp, ONE_ACTION, 0.9, num_steps=10, record_every=3, key=key)
    with pytest.raises(ValueError, match=r"\[0, 1\), got 1.0"):
        cetd(mdp, ONE_ACTION, 1.0, num_steps=10, key=key)
    with pytest.raises(ValueError, match=r"logits have shape .*got \(3, 3\)"):
        cetd(mdp, ONE_ACTION, 0.9, num_steps=10, logits=CETD_LOGITS, key=key)
    data = rollout(GSP((0,)), [ONE_ACTION], mdp, num_steps=3, start=2)
    with pytest.raises(ValueError, match="state: integers from 0 to 1"):
        cetd_replay(data, np.ones((2, 1)), 0.9, num_steps=1, key=key)
