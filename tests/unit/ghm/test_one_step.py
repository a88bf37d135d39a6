"""A one-step model composed for a geometric time samples μ_β: here the true model of a linear-Gaussian world."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from chance import error_of_mean
from ggpi.ghm.base import AbstractGHM
from ggpi.ghm.one_step import after, unroll
from ggpi.policies.linear import LinearPolicy

A = np.array([[0.95, 0.2], [-0.1, 0.9]])
B = np.array([[0.0], [0.5]])
GAIN, NOISE, SIGMA = np.array([[-0.4, -0.3]]), 0.2, 0.1
STATE, ACTION = np.array([2.0, -1.0]), np.array([1.5])
POLICY = LinearPolicy(jnp.asarray(GAIN, jnp.float32), jnp.zeros(1), jnp.full(1, NOISE), low=-1e3, high=1e3)


class Truth(AbstractGHM):
    """x′ = A x + B a + σ ε."""

    frame: Any = None
    noise_size: int = eqx.field(static=True, default=2)
    loss_noise_size: int = eqx.field(static=True, default=0)

    def push(self, state, action, noise):
        return jnp.asarray(A, jnp.float32) @ state + jnp.asarray(B, jnp.float32) @ action + SIGMA * noise

    def loss(self, state, action, target, noise):
        raise NotImplementedError


def moments(weights):
    """Mean and covariance of Σ wₜ · (distribution of Xₜ), t = 1, 2, …"""
    step, added = A + B @ GAIN, SIGMA**2 * np.eye(2) + NOISE**2 * B @ B.T
    mean, covariance = A @ STATE + B @ ACTION, SIGMA**2 * np.eye(2)
    total, second = np.zeros(2), np.zeros((2, 2))
    for weight in weights:
        total += weight * mean
        second += weight * (covariance + np.outer(mean, mean))
        mean, covariance = step @ mean, step @ covariance @ step.T + added
    return total, second - np.outer(total, total)


def assert_moments(samples, mean, covariance):
    """Mixtures of normal numbers, whose means lie within 5 deviations; at most three mixtures in a test."""
    samples, scales = np.asarray(samples, float), np.sqrt(np.diag(covariance))
    bound = error_of_mean(scales, len(samples), 5 * scales, comparisons=15)
    assert (abs(samples.mean(axis=0) - mean) < bound).all()
    products = np.einsum("ni,nj->nij", samples - mean, samples - mean)
    bound = error_of_mean(products.std(axis=0), len(samples), 25 * np.outer(scales, scales), comparisons=15)
    assert (abs(products.mean(axis=0) - covariance) < bound).all()


def many(function, *arguments, num=20_000):
    """Samples [argument, num] of a function of an argument and a key."""
    keys = jax.random.split(jax.random.key(0), num)
    return jax.jit(jax.vmap(jax.vmap(function, in_axes=(None, 0)), in_axes=(0, None)))(
        jnp.array(arguments), keys
    )


def test_unrolled_one_step_model_samples_the_geometric_horizon():
    """Horizons are an axis like any other."""
    betas = (0.0, 0.5, 0.9)
    samples = many(lambda beta, key: unroll(Truth(), POLICY, beta, STATE, ACTION, key=key), *betas)
    for beta, drawn in zip(betas, samples, strict=True):
        assert_moments(drawn, *moments((1 - beta) * beta ** np.arange(400)))


def test_a_given_number_of_steps():
    samples = many(lambda steps, key: after(Truth(), POLICY, steps, STATE, ACTION, key=key), 1, 3)
    assert_moments(samples[0], *moments([1]))
    assert_moments(samples[1], *moments([0, 0, 1]))


def test_time_is_cut():
    def cut(beta, key):
        return unroll(Truth(), POLICY, beta, STATE, ACTION, max_steps=2, key=key)

    assert_moments(many(cut, 0.9)[0], *moments([0.1, 0.9]))


def test_terminal_states_are_not_left():
    """All states but the first are terminal here, so that one step is taken."""

    def walk(beta, key):
        return unroll(Truth(), POLICY, beta, STATE, ACTION, terminal=lambda x: x[0] != 2.0, key=key)

    assert_moments(many(walk, 0.9)[0], *moments([1]))
