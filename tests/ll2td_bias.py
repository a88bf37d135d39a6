"""What LL2TD learns instead of μ, on a linear-Gaussian system of one dimension, by numeric integration.

For a fixed target model μ̄ the loss draws x′ ∼ P(·|x, a), a′ ∼ π(·|x′), x″ ∼ μ̄(·|x′, a′) and regresses
log μ(x″|x, a) on log g with g = (1−β) p(x″) + β μ̄(x″|x′, a′). A regression finds the conditional mean,

    goal(x″) = E[log g | x″] = E[u log g] / E[u],   u = μ̄(x″|x′, a′),   means over x′, a′

while the Bellman equation asks for log E[g] = log (T^π_β μ̄)(x″|x, a). With p the true P(x″|x, a), as Def E.1
has it, u log((1−β) p + β u) is convex in u, so by Jensen's inequality the goal is *above* the logarithm of the
right density wherever x′ or a′ is random: the average is outside of the logarithm (which lowers it), but it is
over those x′, a′ that made x″ likely (which raises it more). exp(goal) thus has mass above 1.

A normalised model cannot follow. Among densities, E_ν[(log μ − goal)²] with ν = E[u], the density of x″, is
least at

    log μ + κ μ/ν = goal,   μ = ν/κ · W(κ exp(goal)/ν)         (W is Lambert's function, κ makes the mass 1)

which gives way where μ/ν is large: where x″ is drawn less often than the model has it.

In practice p is a Gaussian of standard deviation σ around x′ (`sigma`). Then exp(goal) has mass below 1 when
σ is small: x″ rarely falls on x′ itself, so the peak at the next state is hardly seen. The model fits exp(goal)
where x″ falls, and puts the mass that is left where it never falls, at no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw
from scipy.stats import norm

from linear_gaussian import LinearGaussian

Density = Callable[[np.ndarray, float, float], np.ndarray]
"""log μ̄(grid|x′, a′) as an array over the grid."""


@dataclass(frozen=True, eq=False)
class LL2TDBias:
    """Densities over a grid of x″, and what they come to."""

    grid: np.ndarray
    correct: np.ndarray
    """(T^π_β μ̄)(·|x, a), what CETD aims at; μ itself when μ̄ is."""
    goal: np.ndarray
    """exp E[log g | x″]: the minimiser when mass is free."""
    minimiser: np.ndarray
    """The minimiser among densities; where x″ falls, when the goal has mass below 1."""

    @property
    def mass(self) -> float:
        """∫ exp(goal): above 1 when p is the true one-step density."""
        return float(np.trapezoid(self.goal, self.grid))

    def moments(self, density: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of a density on the grid, whatever its mass."""
        density = density / np.trapezoid(density, self.grid)
        mean = np.trapezoid(self.grid * density, self.grid)
        second = np.trapezoid((self.grid - mean) ** 2 * density, self.grid)
        return float(mean), float(np.sqrt(second))


def ll2td_bias(
    system: LinearGaussian,
    state: float,
    action: float,
    beta: float,
    *,
    sigma: float | None = None,
    target: Density | None = None,
    size: int = 301,
) -> LL2TDBias:
    """The minimiser of the LL2TD loss at (x, a) for a fixed target model, by default the exact μ; β > 0.

    `sigma` is the standard deviation of the one-step density around x′; None is the true density P(·|x, a).
    """
    if system.B.shape != (1, 1):
        raise ValueError(f"the integrals are over one dimension, this system has B {system.B.shape}")
    ask = target or _exact(system, beta)
    first, _ = system.components([state], [action], 1)
    spread = np.sqrt(system.covariance([state], [action], beta)[0, 0])
    middle = system.mean([state], [action], beta)[0]
    grid = np.linspace(min(middle, first[0, 0]) - 9 * spread, max(middle, first[0, 0]) + 9 * spread, size)
    true = norm.logpdf(grid, first[0, 0], np.sqrt(system.noise[0, 0]))
    drawn, product, average = np.zeros((3, size))
    for weight, x, a in _nodes(system, first[0, 0]):
        p = true if sigma is None else norm.logpdf(grid, x, sigma)
        u = ask(grid, x, a)
        g = np.logaddexp(np.log1p(-beta) + p, np.log(beta) + u)
        drawn += weight * np.exp(u)
        product += weight * np.exp(u) * g
        average += weight * np.exp(g)
    goal = np.exp(product / drawn)
    correct = average if sigma is None else (1 - beta) * np.exp(true) + beta * drawn
    return LL2TDBias(grid, correct, goal, _normalised(goal, drawn, grid))


def _nodes(system: LinearGaussian, mean: float) -> list[tuple[float, float, float]]:
    """Weights, x′ and a′: a grid over x′ ∼ N(mean, W), Gauss–Hermite nodes over a′ ∼ π(·|x′)."""
    width = np.sqrt(system.noise[0, 0])
    z = np.linspace(-6, 6, 121)
    noisy = system.action_std[0] > 0
    e, e_weights = np.polynomial.hermite_e.hermegauss(9 if noisy else 1)
    weights = np.outer(norm.pdf(z) / norm.pdf(z).sum(), e_weights / e_weights.sum())
    x = mean + width * z
    a = system.gain[0, 0] * x[:, None] + system.bias[0] + system.action_std[0] * e
    rows = np.broadcast_to(x[:, None], a.shape)
    return [(float(w), float(s), float(t)) for w, s, t in zip(weights.flat, rows.flat, a.flat, strict=True)]


def _exact(system: LinearGaussian, beta: float, tail: float = 1e-9) -> Density:
    """log μ_β(grid|x′, a′): means of the mixture are linear in the first, spreads do not depend on it."""
    times = np.arange(max(1, int(np.ceil(np.log(tail) / np.log(beta)))))
    offsets, covariances = system.components([0.0], [0.0], len(times))
    powers = system.closed_loop[0, 0] ** times
    spreads = np.sqrt(covariances[:, 0, 0])
    weights = (1 - beta) * beta**times / spreads

    def log_density(grid: np.ndarray, x: float, a: float) -> np.ndarray:
        first = system.A[0, 0] * x + system.B[0, 0] * a
        z = (grid[:, None] - powers * first - offsets[:, 0]) / spreads
        return np.log(norm.pdf(z) @ weights + 1e-300)

    return log_density


def _normalised(goal: np.ndarray, drawn: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The density nearest to `goal` in squared logarithms, weighted by the density of x″."""

    def density(kappa: float) -> Any:
        return goal if kappa == 0 else drawn / kappa * lambertw(kappa * goal / drawn).real

    def excess(kappa: float) -> float:
        return float(np.trapezoid(density(kappa), grid) - 1)

    if excess(0.0) <= 0:
        return goal
    high = 1.0
    while excess(high) > 0:
        high *= 2
    root: Any = brentq(excess, 0.0, high, xtol=1e-12)
    return density(root)
