"""Simulated futures against exact ones, in every kind of world."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from chance import are_frequencies, error_of_mean
from ggpi import TabularPolicy
from ggpi.envs import Pendulum, PointMass, chain
from ggpi.ghm import ExactGHM
from ggpi.policies.linear import MixedPolicy, direction_policies, linear_policy, pendulum_policies
from ggpi.rollout.futures import simulate_futures
from linear_gaussian import LinearGaussian
from ring import Ring
from settable_env import SettableEnv, set_pendulum

N = 20_000
RING = Ring(7, 0.2)


def test_the_ring_seen_and_the_ring_counted_agree_with_exact_models():
    probabilities, beta = np.array([0.3, 0.7]), 0.8
    table = TabularPolicy(np.tile(probabilities, (7, 1)))
    exact = ExactGHM(RING.mdp, table, beta).dense()[2, 1]
    counted = simulate_futures(RING.mdp, table, np.full(N, 2), np.ones(N, int), beta, seed=1)
    assert are_frequencies(np.bincount(counted, minlength=7), exact, comparisons=14)
    seen = simulate_futures(
        RING, MixedPolicy(jnp.asarray(probabilities)), np.tile(RING.observe(2), (N, 1)), np.ones(N, int), beta
    )
    assert are_frequencies(np.bincount(RING.place(seen), minlength=7), exact, comparisons=14)


def test_terminal_states_absorb():
    mdp, _ = chain(3, 1.0)
    right = TabularPolicy.constant(mdp, 0)
    exact = ExactGHM(mdp, right, 0.9).dense()[0, 0]
    drawn = simulate_futures(mdp, right, np.zeros(N, int), np.zeros(N, int), 0.9)
    assert are_frequencies(np.bincount(drawn, minlength=5), exact, comparisons=5)


def test_the_linear_gaussian_system():
    system, beta = LinearGaussian(0.9, 0.5, 0.04, -0.4, 0.3, 0.2), 0.8
    policy = linear_policy(system.gain, system.bias, system.action_std, low=-np.inf, high=np.inf)
    drawn = simulate_futures(system, policy, np.full((N, 1), 1.0), np.full((N, 1), 0.5), beta, seed=2)[:, 0]
    mean, variance = system.mean([1.0], [0.5], beta)[0], system.covariance([1.0], [0.5], beta)[0, 0]
    scale = variance**0.5  # a mixture of normal numbers, whose means lie within 5 deviations
    assert abs(drawn.mean() - mean) < error_of_mean(scale, N, 5 * scale, comparisons=2)
    squares = (drawn - mean) ** 2
    assert abs(squares.mean() - variance) < error_of_mean(squares.std(), N, 25 * variance, comparisons=2)


def test_rows_keep_their_places_and_beta_zero_is_one_step():
    world = PointMass()
    rng = np.random.default_rng(0)
    states, actions = world.start(100, rng), rng.uniform(-1, 1, (100, 2))
    policy = direction_policies()[0]
    np.testing.assert_array_equal(
        simulate_futures(world, policy, states, actions, 0.0), world.step(states, actions)
    )
    far = simulate_futures(world, policy, states, actions, 0.95)
    assert np.corrcoef(far[:, 1], states[:, 1])[0, 1] > 0.9, "the y of each row stays near its own"


def test_our_pendulum_is_gymnasiums():
    env, world = gymnasium.make("Pendulum-v1"), Pendulum()
    rng = np.random.default_rng(1)
    state, _ = env.reset(seed=3)
    for _ in range(50):
        action = rng.uniform(-2.5, 2.5, 1).astype(np.float32)
        ours = world.step(state[None], action[None])[0]
        state = env.step(action)[0]
        np.testing.assert_allclose(ours, state, atol=1e-5)


def test_any_environment_whose_state_can_be_set():
    env = SettableEnv(gymnasium.make("Pendulum-v1"), set_pendulum)
    rng = np.random.default_rng(2)
    states = Pendulum().start(200, rng)
    actions = rng.uniform(-2, 2, (200, 1))
    for policy in pendulum_policies():
        ours, theirs = (
            simulate_futures(world, policy, states, actions, 0.7, seed=4) for world in (Pendulum(), env)
        )
        np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_terminal_observations_are_stayed_in():
    env = SettableEnv(gymnasium.make("Pendulum-v1"), set_pendulum, terminal=lambda x: x[:, 0] < 0)
    states = np.array([[-1.0, 0.0, 0.5], [1.0, 0.0, 0.5]])
    moved = env.step(states, np.zeros((2, 1)), np.random.default_rng(0))
    np.testing.assert_array_equal(moved[0], states[0])
    assert moved[1, 1] > 0


def test_pendulum_policies_do_what_their_names_say():
    world, rng = Pendulum(), np.random.default_rng(5)
    energies = {}
    for policy in pendulum_policies():
        states = np.tile([-1.0, 0.0, 0.3], (500, 1))
        futures = simulate_futures(world, policy, states, rng.uniform(-2, 2, (500, 1)), 0.99, seed=6)
        energies[policy.name] = (futures[:, 2] ** 2 / 6 + 5 * futures[:, 0]).mean()
    assert energies["pump"] > energies["turn"] + 2
    assert energies["pump"] > energies["brake"] + 4


def test_bad_input():
    with pytest.raises(ValueError, match="needs its first action"):
        simulate_futures(PointMass(), direction_policies()[0], np.zeros((3, 4)), np.zeros((2, 2)), 0.5)
    with pytest.raises(ValueError, match="β lies in"):
        simulate_futures(PointMass(), direction_policies()[0], np.zeros((3, 4)), np.zeros((3, 2)), 1.0)
    with pytest.raises(ValueError, match="3 places or more"):
        Ring(2)
