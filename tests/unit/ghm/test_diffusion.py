"""Solvers of diffusion models against closed forms: single targets, normal ones, and bootstrapping from samples.

With Y = cos φ y + sin φ ε and targets y ∼ N(0, σ²), the path from ε leads to y = σ ε, and

    v(Y) = E[cos φ ε − sin φ y | Y] = (1 − σ²) sin φ cos φ / (σ² cos² φ + sin² φ) · Y
"""

from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.ghm.diffusion import Diffusion, DiffusionConfig
from ggpi.ghm.paths import PATHS, diffusion_time
from ggpi.learning.flow_losses import TDDD
from one_backup import frame

KEY = jax.random.key(0)
NOISE = jax.random.normal(KEY, (1000, 1))


class Normal(Diffusion):
    """The exact noise of N(mean, σ²) in the frame's coordinates; `network` holds mean and σ."""

    def encode(self, state, action):
        return state

    def field(self, y, t, code):
        (signal, noise), (mean, sigma) = self.levels(t), self.network
        signal, noise = signal[..., None], noise[..., None]
        return noise * (y - signal * mean) / (signal**2 * sigma**2 + noise**2)


def normal(solver, mean=0.0, sigma=1.0):
    return Normal(frame(), (mean, sigma), 10, solver=solver)


def ends(model, num_steps):
    times = jnp.linspace(0.0, 1.0, num_steps + 1)
    return np.asarray(model.carry(jnp.zeros((1000, 1)), NOISE, times)[2], float)


def shrinkage(num_steps):
    """Π cos Δ over evenly spaced times, from the variance schedule itself."""
    left = 1 - np.linspace(0, 1, num_steps + 1)
    angles = np.arccos(np.exp(-0.25 * left**2 * 19.9 - 0.05 * left))
    return np.prod([np.cos(later - earlier) for earlier, later in pairwise(angles)])


def test_times_of_levels():
    t = jnp.linspace(0.0, 0.99, 34)
    np.testing.assert_allclose(diffusion_time(PATHS["diffusion"].levels(t).signal), t, atol=1e-4)


@pytest.mark.parametrize("solver", ["ddim", "midpoint"])
def test_single_targets_are_reached_in_any_number_of_steps(solver):
    for num_steps in (1, 3, 20):
        np.testing.assert_allclose(ends(normal(solver, 1.5, 0.0), num_steps), 1.5, atol=2e-3)


@pytest.mark.parametrize("num_steps", [2, 20])
def test_ddim_shrinks_standard_normal_samples_and_the_midpoint_does_not(num_steps):
    np.testing.assert_allclose(ends(normal("midpoint"), num_steps), NOISE, rtol=1e-3, atol=1e-3)
    shrunk = ends(normal("ddim"), num_steps)
    np.testing.assert_allclose(shrunk, shrinkage(num_steps) * NOISE, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("solver", "order"), [("ddim", 1), ("midpoint", 2)])
def test_errors_fall_at_the_order_of_the_solver(solver, order):
    """The first angle is not quite π/2, so that more steps are the reference, not σ ε."""
    exact = ends(normal(solver, 0.3, 0.4), 800)
    assert np.abs(exact - (0.3 + 0.4 * NOISE)).max() < 0.02
    coarse, fine = (np.abs(ends(normal(solver, 0.3, 0.4), n) - exact).max() for n in (16, 32))
    assert coarse / fine > 0.7 * 2**order


@pytest.mark.parametrize("beta", [0.8, 0.99])
def test_backups_multiply_what_ddim_loses(beta):
    """v ← (1−β) + β ρ² v, with ρ² from samples of the loss itself, ends at (1−β)/(1−βρ²): at β = .99 a sixteenth."""
    share = {}
    for solver in ("ddim", "midpoint"):
        loss = TDDD(targets_per_solve=4, steps_per_target=4 if solver == "ddim" else 2)
        noise, end = loss._samples(normal(solver), jnp.zeros((1000, 1)), 4, key=KEY)
        share[solver] = float(jnp.var(end) / jnp.var(noise))
    assert share["midpoint"] == pytest.approx(1, abs=1e-3)
    assert share["ddim"] == pytest.approx(shrinkage(20) ** 2, abs=1e-3)
    variance = 1.0
    for _ in range(2000):
        variance = (1 - beta) + beta * share["ddim"] * variance
    assert variance == pytest.approx((1 - beta) / (1 - beta * shrinkage(20) ** 2), rel=0.01)
    assert variance < (0.65 if beta == 0.8 else 0.065)


def test_errors_of_the_network_are_not_magnified_in_noise():
    """An error n of the network moves the estimated target by sₜ n: at most n, though aₜ is .007 at t = 0."""
    model = DiffusionConfig(width=8, depth=1).build(frame(), key=KEY)
    wrong = eqx.tree_at(lambda model: model.network.outer_bias, model, jnp.array([0.5]))
    for t in jnp.array([0.0, 0.3, 0.9]):
        (signal, noise), code = model.levels(t), model.encode(jnp.zeros(1), jnp.zeros(1))
        moved = (model.field(NOISE, t, code) - wrong.field(NOISE, t, code)) * noise / signal
        np.testing.assert_allclose(moved, noise * 0.5, rtol=1e-2)


def test_solvers_can_be_changed_after_training():
    model = normal("midpoint")
    assert not np.allclose(ends(replace(model, solver="ddim"), 5), ends(model, 5), atol=0.01)
