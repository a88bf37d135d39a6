"""Lemmas B.1, B.2, Prop B.3, Prop 2.5: a geometric time as a sum of shorter ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggpi.ghm import ExactGHM, compose
from ggpi.switching import beta_of, composition_weights
from worlds import ALPHAS, worlds

TIMES = 400


def geometric(stopping):
    """P(T = k) for k = 0 … TIMES, T ∼ Geometric(stopping)."""
    k = np.arange(TIMES + 1)
    return np.where(k > 0, stopping * (1 - stopping) ** np.maximum(k - 1, 0), 0.0)


def sum_of(*distributions):
    total = np.eye(1, TIMES + 1)[0]
    for distribution in distributions:
        total = np.convolve(total, distribution)[: TIMES + 1]
    return total


gammas = st.floats(0.1, 0.95)
alphas = st.sampled_from(ALPHAS)


@given(gammas, alphas)
def test_b_1_a_random_number_of_short_times(gamma, alpha):
    beta = beta_of(gamma, alpha)
    short, count = geometric(1 - beta), geometric((1 - gamma) / (1 - beta))
    total, n_fold = np.zeros(TIMES + 1), np.eye(1, TIMES + 1)[0]
    for probability in count[1:]:
        n_fold = np.convolve(n_fold, short)[: TIMES + 1]
        total += probability * n_fold
    np.testing.assert_allclose(total, geometric(1 - gamma), atol=1e-10)


@given(gammas, st.lists(alphas, max_size=4))
def test_b_2_a_fixed_number_of_short_times_and_a_long_one(gamma, switches):
    """For unequal α too, with the weights of the design."""
    w = composition_weights(gamma, switches)
    assert np.isclose(w.sum(), 1) and (w >= 0).all()
    shorts = [geometric(1 - beta_of(gamma, alpha)) for alpha in switches]
    parts = [sum_of(*shorts[: m + 1]) for m in range(len(shorts))] + [sum_of(*shorts, geometric(1 - gamma))]
    np.testing.assert_allclose(w @ np.stack(parts), geometric(1 - gamma), atol=1e-10)


@given(gammas, alphas, st.integers(1, 5))
def test_equal_alpha_gives_the_papers_weights(gamma, alpha, n):
    beta = beta_of(gamma, alpha)
    ratio = (gamma - beta) / (1 - beta)
    paper = [(1 - gamma) / (1 - beta) * ratio ** (m - 1) for m in range(1, n)] + [ratio ** (n - 1)]
    np.testing.assert_allclose(composition_weights(gamma, [alpha] * (n - 1)), paper, atol=1e-14)


@given(worlds(), alphas, st.integers(1, 3))
def test_b_3_composed_models_are_trajectories_at_summed_times(world, alpha, n):
    beta, pi = beta_of(min(world.gamma, 0.9), alpha), world.pis[1]
    mu = ExactGHM(world.mdp, pi, beta).dense()
    composed = mu
    for _ in range(n - 1):
        composed = compose(mu, composed, pi)
    P_pi = np.einsum("xa,xay->xy", pi, world.P)
    times, ahead, expected = sum_of(*[geometric(1 - beta)] * n), world.P, np.zeros_like(world.P)
    for k in range(1, TIMES + 1):
        expected += times[k] * ahead
        ahead = ahead @ P_pi
    np.testing.assert_allclose(composed, expected, atol=1e-9)


@given(worlds(), alphas)
def test_horizons_are_consistent(world, alpha):
    """μ_γ = (1−γ)/(1−β) μ_β + (γ−β)/(1−β) μ_γ ⊗_π μ_β."""
    pi, gamma, beta = world.pis[1], world.gamma, beta_of(world.gamma, alpha)
    mu_gamma, mu_beta = (ExactGHM(world.mdp, pi, horizon).dense() for horizon in (gamma, beta))
    mixed = (1 - gamma) * mu_beta + (gamma - beta) * compose(mu_gamma, mu_beta, pi)
    np.testing.assert_allclose(mixed / (1 - beta), mu_gamma, atol=1e-10)
