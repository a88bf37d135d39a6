"""Eq 3, Eq 4, Lem B.1, Eq 6, Thm F.1: sampled estimates lie as near as their exact variances say."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import error_of_mean
from ggpi import GSP, compositions, evaluate, evaluate_sampled, exact_ghms, rewards
from ggpi.evaluation import evaluate_gsp_sampled, evaluate_janner_sampled, evaluate_markov_sampled
from ggpi.switching import beta_of, composition_weights
from worlds import ALPHAS, bellman_q, bellman_q_gsp, switching_policies, visitation_series, worlds

N = 1000
SIZE = (4, 2)
FEW = settings(max_examples=12)
PAIRS = 12 * 4 * 2
"""Comparisons of a test that looks at all pairs of each example."""


def chain_moments(world, gamma, policies, alphas, r):
    """Mean and variance of Σ_{m<n} wₘ fₘ(X^(m)) + wₙ r^{πₙ}(X′) at every pair, by backward recursion."""
    w = composition_weights(gamma, alphas)
    r_pis = [(world.pis[i] * r).sum(axis=1) for i in policies]
    first, second = np.zeros((world.S, world.A)), np.zeros((world.S, world.A))
    for m in reversed(range(len(policies))):
        is_last = m == len(policies) - 1
        horizon = gamma if is_last else beta_of(gamma, alphas[m])
        mu = visitation_series(world.P, world.pis[policies[m]], horizon)
        f = w[m] * (r_pis[m] if is_last else (1 - alphas[m]) * r_pis[m] + alphas[m] * r_pis[m + 1])
        later = (
            [0.0, 0.0] if is_last else [(world.pis[policies[m + 1]] * q).sum(axis=1) for q in (first, second)]
        )
        first, second = mu @ (f + later[0]), mu @ (f**2 + 2 * f * later[0] + later[1])
    return first, np.maximum(second - first**2, 0)


def agree(estimate, expected, deviation, width, comparisons=PAIRS):
    """Within Bernstein's bound of the exact variance; float32 rounding allowed for."""
    slack = 2e-5 * (1 + np.abs(expected).max() + deviation.max())
    bound = error_of_mean(deviation, N, width, comparisons)
    assert (np.abs(estimate - expected) <= bound + slack).all()


def all_pairs(world):
    return np.indices((world.S, world.A))


@FEW
@given(worlds(size=SIZE), st.integers(1, 4))
def test_eq_3_and_eq_4(world, num_segments):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, 0.5)
    estimate = evaluate_markov_sampled(
        1,
        ghms,
        world.r_action,
        *all_pairs(world),
        num_segments=num_segments,
        num_samples=N,
        key=jax.random.key(0),
    )
    _, variance = chain_moments(
        world, world.gamma, (1,) * num_segments, (0.5,) * (num_segments - 1), world.r_action
    )
    scale = world.gamma / (1 - world.gamma)
    expected = bellman_q(world.P, world.pis[1], world.r_action, world.gamma)
    agree(estimate.mean, expected, scale * variance**0.5, scale * np.ptp(world.r_action))


@FEW
@given(worlds(size=SIZE))
def test_janner_through_b_1(world):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, 0.5)
    estimate = evaluate_janner_sampled(
        1, ghms, world.r_action, *all_pairs(world), num_samples=N, key=jax.random.key(1)
    )
    _, variance = chain_moments(world, world.gamma, (1,), (), world.r_action)
    scale = world.gamma / (1 - world.gamma)
    expected = bellman_q(world.P, world.pis[1], world.r_action, world.gamma)
    agree(estimate.mean, expected, scale * variance**0.5, scale * np.ptp(world.r_action))


@FEW
@given(worlds(size=SIZE), switching_policies())
def test_eq_6_and_thm_f_1(world, gsp):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, ALPHAS)
    estimate = evaluate_gsp_sampled(
        gsp, ghms, world.r_action, *all_pairs(world), num_samples=N, key=jax.random.key(2)
    )
    mean, variance = chain_moments(world, world.gamma, gsp.policies, gsp.alphas, world.r_action)
    scale = world.gamma / (1 - world.gamma)
    expected = bellman_q_gsp(world.P, world.pis, gsp, world.r_action, world.gamma)
    np.testing.assert_allclose(world.r_action + scale * mean, expected, atol=1e-8)
    agree(estimate.mean, expected, scale * variance**0.5, scale * np.ptp(world.r_action))


@FEW
@given(worlds(terminal=True, size=SIZE), switching_policies())
def test_arrival_rewards(world, gsp):
    """Terminal samples count (1−γ)ρ, so that the reward there is paid once."""
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, ALPHAS)
    reward = rewards.arrival(world.r_state)
    estimate = evaluate_gsp_sampled(
        gsp, ghms, reward, *all_pairs(world), num_samples=N, key=jax.random.key(3)
    )
    counted = world.r_state * np.where(world.mdp.terminal, 1 - world.gamma, 1.0)
    as_actions = np.repeat(counted[:, None], world.A, axis=1)
    _, variance = chain_moments(world, world.gamma, gsp.policies, gsp.alphas, as_actions)
    scale = 1 / (1 - world.gamma)
    agree(estimate.mean, evaluate([gsp], ghms, reward)[0], scale * variance**0.5, scale * np.ptp(counted))


@FEW
@given(worlds(size=SIZE), st.integers(1, 3))
def test_a_whole_set_with_shared_prefixes(world, depth):
    """Every GSP of the set is estimated as well as on its own, and the reported errors are right."""
    gsps = compositions(3, depth, 0.5)
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, 0.5)
    q = evaluate_sampled(gsps, ghms, world.r_action, num_samples=N, key=jax.random.key(4))
    scale = world.gamma / (1 - world.gamma)
    for i, gsp in enumerate(gsps):
        _, variance = chain_moments(world, world.gamma, gsp.policies, gsp.alphas, world.r_action)
        expected = bellman_q_gsp(world.P, world.pis, gsp, world.r_action, world.gamma)
        agree(q.array[i], expected, scale * variance**0.5, scale * np.ptp(world.r_action), PAIRS * len(gsps))
    assert q.stderr is not None and q.stderr.shape == q.array.shape


def test_reported_standard_errors_match_the_exact_ones():
    from ggpi.envs import four_rooms

    mdp = four_rooms()
    reward = rewards.state(mdp.indicator((1, 11)))
    ghms = exact_ghms(mdp, [np.eye(4)[np.full(104, a)] for a in range(4)], 0.9, 1 / 9)
    start, n = mdp.index((3, 8)), 100_000
    estimate = evaluate_gsp_sampled(
        GSP((2, 3), (1 / 9,)), ghms, reward, start, 2, num_samples=n, key=jax.random.key(0)
    )

    class World:
        P, S, A, pis = mdp.P, 104, 4, [np.asarray(p) for p in ghms.policies]

    r = np.repeat(reward.values[:, None], 4, axis=1)
    _, variance = chain_moments(World, 0.9, (2, 3), (1 / 9,), r)
    exact = 9 * (variance[start, 2] / n) ** 0.5
    assert exact > 0.005, "the goal is hit often enough for this to mean something"
    assert estimate.stderr == pytest.approx(exact, rel=0.03)


def test_the_action_that_goes_on_is_not_the_one_that_is_paid():
    """Paying only the next policy's action at a switch is biased; both policies' actions are needed."""
    from ggpi.envs import one_state

    mdp, reward = one_state()
    ghms = exact_ghms(mdp, [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], 0.9, 0.5)
    gsp = GSP((0, 1), (0.5,))
    estimate = evaluate_gsp_sampled(gsp, ghms, reward, 0, 0, num_samples=2, key=jax.random.key(0))
    beta = 0.45  # a pays 1 until the switch: Σ βᵗ, but at t = 0 it is paid for certain
    assert estimate.mean == pytest.approx(1 / (1 - beta), rel=1e-6)
    assert evaluate([gsp], ghms, reward)[0][0, 0] == pytest.approx(1 / (1 - beta))
