"""The linear-Gaussian system: its closed forms against each other, and what LL2TD makes of it."""

import numpy as np
import pytest

from chance import FAILURE, error_of_mean
from linear_gaussian import LinearGaussian
from ll2td_bias import ll2td_bias

LINE = LinearGaussian(0.9, 0.5, 0.04, -0.4, 0.3, 0.2)
PLANE = LinearGaussian(
    [[0.9, 0.2], [-0.1, 0.8]],
    [[0.0], [0.5]],
    [[0.04, 0.01], [0.01, 0.02]],
    [[0.1, -0.3]],
    0.4,
    0.3,
)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_moments_are_those_of_the_mixture(beta):
    state, action = [1.0, -0.5], [0.7]
    means, covariances = PLANE.components(state, action, 600)
    weights = (1 - beta) * beta ** np.arange(600)
    mean = weights @ means
    second = np.einsum("t,tij->ij", weights, covariances + means[:, :, None] * means[:, None])
    np.testing.assert_allclose(PLANE.mean(state, action, beta), mean, rtol=1e-12)
    np.testing.assert_allclose(
        PLANE.covariance(state, action, beta), second - np.outer(mean, mean), rtol=1e-10
    )


def test_components_follow_the_dynamics():
    rng = np.random.default_rng(0)
    n = 20_000
    x = np.tile([1.0, -0.5], (n, 1))
    a = np.full((n, 1), 0.7)
    for _ in range(3):
        x = PLANE.step(x, a, rng)
        a = x @ PLANE.gain.T + PLANE.bias + PLANE.action_std * rng.normal(size=(n, 1))
    means, covariances = PLANE.components([1.0, -0.5], [0.7], 3)
    scales = np.sqrt(np.diag(covariances[2]))
    assert (np.abs(x.mean(axis=0) - means[2]) < error_of_mean(scales, n, comparisons=5)).all()
    products = np.outer(scales, scales)
    bound = error_of_mean(np.sqrt(2) * products, n, 3 * products, comparisons=5) + products / n
    assert (np.abs(np.cov(x, rowvar=False) - covariances[2]) < bound).all()


def test_samples_have_the_exact_moments():
    n, beta, rng = 100_000, 0.8, np.random.default_rng(1)
    drawn = PLANE.sample_future([1.0, -0.5], [0.7], beta, n, rng)
    exact = PLANE.covariance([1.0, -0.5], [0.7], beta)
    scales = np.sqrt(np.diag(exact))
    mean = PLANE.mean(
        [1.0, -0.5], [0.7], beta
    )  # of a mixture of normals, whose means lie within 5 deviations
    assert (np.abs(drawn.mean(axis=0) - mean) < error_of_mean(scales, n, 5 * scales, comparisons=5)).all()
    centred = drawn - mean
    products = centred[:, :, None] * centred[:, None]
    width = 25 * np.outer(scales, scales)
    bound = error_of_mean(products.std(axis=0), n, width, comparisons=5)
    assert (np.abs(products.mean(axis=0) - exact) < bound).all()


def test_the_density_integrates_to_one_and_fits_the_samples():
    beta, grid = 0.8, np.linspace(-3, 4, 4001)
    density = np.exp(LINE.log_prob(grid[:, None], [1.0], [0.5], beta))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-10)
    assert np.trapezoid(grid * density, grid) == pytest.approx(LINE.mean([1.0], [0.5], beta)[0])
    n = 50_000
    drawn = LINE.sample_future([1.0], [0.5], beta, n, np.random.default_rng(2))[:, 0]
    cumulative = np.cumsum(density) * (grid[1] - grid[0])
    distance = np.abs(np.interp(np.sort(drawn), grid, cumulative) - np.arange(n) / n).max()
    kolmogorov = np.sqrt(np.log(2 / FAILURE) / (2 * n))  # Dvoretzky, Kiefer, Wolfowitz, Massart
    assert distance < kolmogorov + 1e-3, "the integral of the density is a sum over the grid"


def test_ll2td_goal_is_the_regression_that_its_definition_asks_for():
    """Against draws of x′, a′, x″ and averages of log g in narrow bins of x″."""
    beta, n, rng = 0.8, 150_000, np.random.default_rng(3)
    bias = ll2td_bias(LINE, 1.0, 0.5, beta)
    x = LINE.step(np.full((n, 1), 1.0), np.full((n, 1), 0.5), rng)
    a = x @ LINE.gain.T + LINE.bias + LINE.action_std * rng.normal(size=(n, 1))
    means = x @ LINE.A.T + a @ LINE.B.T
    offsets, covariances = LINE.components([0.0], [0.0], 60)
    powers = LINE.closed_loop[0, 0] ** np.arange(60)
    spreads = np.sqrt(covariances[:, 0, 0])
    times = np.minimum(rng.geometric(1 - beta, n) - 1, 59)
    drawn = powers[times] * means[:, 0] + offsets[times, 0] + spreads[times] * rng.normal(size=n)
    z = (drawn[:, None] - powers * means - offsets[:, 0]) / spreads
    u = ((1 - beta) * beta ** np.arange(60) / spreads * np.exp(-(z**2) / 2)).sum(1) / np.sqrt(2 * np.pi)
    first = LINE.components([1.0], [0.5], 1)[0][0, 0]
    p = np.exp(-((drawn - first) ** 2) / (2 * 0.04)) / np.sqrt(2 * np.pi * 0.04)
    log_g = np.log((1 - beta) * p + beta * u)
    for middle in (0.3, 0.8, 1.3):
        near = np.abs(drawn - middle) < 0.02
        error = log_g[near].std() / np.sqrt(near.sum())
        predicted = np.interp(middle, bias.grid, np.log(bias.goal))
        # thousands of draws are near: beyond 6 standard errors with a probability of about 2e-9
        assert abs(log_g[near].mean() - predicted) < 6 * error + 2e-3


def test_ll2td_is_biased_upwards_and_its_density_is_too_wide():
    bias = ll2td_bias(LINE, 1.0, 0.5, 0.8)
    exact = LINE.log_prob(bias.grid[:, None], [1.0], [0.5], 0.8)
    seen = exact > -12
    np.testing.assert_allclose(np.log(bias.correct)[seen], exact[seen], atol=1e-5)
    assert (np.log(bias.goal) > exact)[seen].all(), "Jensen's inequality, for the true one-step density"
    assert bias.mass > 1.03
    assert bias.moments(bias.minimiser)[1] > 1.02 * bias.moments(bias.correct)[1]


def test_the_minimiser_is_the_best_density():
    bias = ll2td_bias(LINE, 1.0, 0.5, 0.8)
    drawn = (bias.correct - 0.2 * np.exp(-((bias.grid - 1.15) ** 2) / 0.08) / np.sqrt(0.08 * np.pi)) / 0.8

    def loss(density):
        return np.trapezoid(drawn * (np.log(density) - np.log(bias.goal)) ** 2, bias.grid)

    assert np.trapezoid(bias.minimiser, bias.grid) == pytest.approx(1)
    rng = np.random.default_rng(4)
    for _ in range(20):
        bump = np.exp(-((bias.grid - rng.uniform(0, 1.5)) ** 2) / 0.1)
        for size in (-0.05, 0.05):
            other = bias.minimiser * (1 + size * bump)
            assert loss(other / np.trapezoid(other, bias.grid)) > loss(bias.minimiser)


def test_without_noise_ll2td_is_right():
    still = LinearGaussian(0.9, 0.5, 1e-6, -0.4, 0.3, 0.0)
    target = LINE
    bias = ll2td_bias(
        still, 1.0, 0.5, 0.8, target=lambda grid, x, a: target.log_prob(grid[:, None], [x], [a], 0.8)
    )
    np.testing.assert_allclose(bias.goal, bias.correct, rtol=1e-3)


def test_bad_input():
    with pytest.raises(ValueError, match="asks for"):
        LinearGaussian(np.eye(2), np.ones((2, 1)), np.eye(2), np.ones((2, 1)), 0.0, 0.1)
    with pytest.raises(ValueError, match="one dimension"):
        ll2td_bias(PLANE, 0.0, 0.0, 0.5)
