"""A linear system with Gaussian noise under a linear policy with Gaussian noise: μ in closed form.

    X′ = A X + B a + w,  w ∼ N(0, W);     a = K x + k + e,  e ∼ N(0, diag(s²))
    X_t | x, a ∼ N(m_t, S_t):   m₁ = A x + B a,       m_{t+1} = F m_t + B k,            F = A + B K
                                S₁ = W,               S_{t+1} = F S_t Fᵀ + N,           N = B diag(s²) Bᵀ + W
    μ_β(·|x, a) = (1−β) Σ_{t≥1} β^{t−1} N(m_t, S_t)
    mean:   M = (1−β) (I − βF)⁻¹ (m₁ + β/(1−β) B k)
    second moment:   R = (1−β) (S₁ + m₁m₁ᵀ) + β (F R Fᵀ + F M cᵀ + c Mᵀ Fᵀ + c cᵀ + N),   c = B k

The mixture is infinite; densities leave out components beyond a mass of 1e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from gymnasium.spaces import Box
from scipy.special import logsumexp

import ggpi
from ggpi.data import StateSpec
from ggpi.mdp.tabular import check_gamma
from ggpi.types import Scalar

TAIL = 1e-12
"""Mass of the mixture that densities leave out."""


@ggpi.savable("linear-gaussian/1")
@dataclass(frozen=True, eq=False)
class LinearGaussian:
    """The system and its policy, as a world and as the exact law of its futures.

    `linear_policy(system.gain, system.bias, system.action_std, low=−∞, high=∞)` is the policy that acts.
    """

    A: Any
    B: Any
    noise: Any
    """W, the covariance of the system's noise [D, D]."""
    gain: Any
    """K [A, D]."""
    bias: Any
    """k [A]."""
    action_std: Any
    """s [A]."""
    start_std: float = 1.0
    """Episodes start at N(0, start_std² I)."""

    def __post_init__(self):
        for name in ("A", "B", "noise", "gain"):
            object.__setattr__(self, name, np.atleast_2d(np.asarray(getattr(self, name), float)))
        D, A = self.B.shape
        for name in ("bias", "action_std"):
            values = np.broadcast_to(np.asarray(getattr(self, name), float), (A,))
            object.__setattr__(self, name, values)
        if self.A.shape != (D, D) or self.noise.shape != (D, D) or self.gain.shape != (A, D):
            raise ValueError(f"B {self.B.shape} asks for A, W [{D}, {D}] and K [{A}, {D}]")

    @cached_property
    def spec(self) -> StateSpec:
        return StateSpec(tuple(f"x{i}" for i in range(len(self.A))))

    @cached_property
    def observation_space(self) -> Box:
        return Box(-np.inf, np.inf, (len(self.A),), np.float32)

    @cached_property
    def action_space(self) -> Box:
        return Box(-np.inf, np.inf, (self.B.shape[1],), np.float32)

    @property
    def closed_loop(self) -> np.ndarray:
        """F = A + B K."""
        return self.A + self.B @ self.gain

    @property
    def loop_noise(self) -> np.ndarray:
        """N, the covariance that a step under the policy adds."""
        return (self.B * self.action_std**2) @ self.B.T + self.noise

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """First states of n episodes."""
        return self.start_std * rng.normal(size=(n, len(self.A)))

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> np.ndarray:
        """One step of each state [n, D]."""
        drift = np.asarray(states) @ self.A.T + np.asarray(actions) @ self.B.T
        return drift + rng.normal(size=drift.shape) @ _root(self.noise).T

    def components(self, state: Any, action: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
        """m_t [count, D] and S_t [count, D, D] for t = 1 … count."""
        F, push = self.closed_loop, self.B @ self.bias
        means = [self.A @ np.asarray(state, float) + self.B @ np.asarray(action, float)]
        covariances = [self.noise]
        for _ in range(count - 1):
            means.append(F @ means[-1] + push)
            covariances.append(F @ covariances[-1] @ F.T + self.loop_noise)
        return np.array(means), np.array(covariances)

    def mean(self, state: Any, action: Any, beta: Scalar) -> np.ndarray:
        """E[X] under μ_β(·|x, a), exact."""
        beta = check_gamma(beta, "β")
        first, _ = self.components(state, action, 1)
        rest = beta / (1 - beta) * self.B @ self.bias
        return (1 - beta) * np.linalg.solve(np.eye(len(self.A)) - beta * self.closed_loop, first[0] + rest)

    def covariance(self, state: Any, action: Any, beta: Scalar) -> np.ndarray:
        """Cov[X] under μ_β(·|x, a), exact: from the second moment, which solves a Lyapunov equation."""
        beta = check_gamma(beta, "β")
        means, covariances = self.components(state, action, 1)
        average, F, push = self.mean(state, action, beta), self.closed_loop, self.B @ self.bias
        cross = np.outer(F @ average, push)
        constant = (1 - beta) * (covariances[0] + np.outer(means[0], means[0]))
        constant += beta * (cross + cross.T + np.outer(push, push) + self.loop_noise)
        second = scipy.linalg.solve_discrete_lyapunov(math.sqrt(beta) * F, constant)
        return second - np.outer(average, average)

    def log_prob(self, targets: Any, state: Any, action: Any, beta: Scalar, tail: float = TAIL) -> np.ndarray:
        """log μ_β(target|x, a) of targets [n, D], up to components of mass `tail`."""
        beta = check_gamma(beta, "β")
        count = max(1, math.ceil(math.log(tail) / math.log(beta))) if beta > 0 else 1
        means, covariances = self.components(state, action, count)
        roots = np.linalg.cholesky(covariances)
        difference = np.asarray(targets, float)[None] - means[:, None]
        whitened = np.linalg.solve(roots, difference.swapaxes(1, 2))
        log_volumes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constant = -log_volumes - 0.5 * len(self.A) * math.log(2 * math.pi)
        weights = np.log1p(-beta) + np.arange(count) * (math.log(beta) if beta > 0 else 0.0)
        terms = (weights + constant)[:, None] - 0.5 * (whitened**2).sum(axis=1)
        return np.asarray(logsumexp(terms, axis=0))

    def sample_future(
        self, state: Any, action: Any, beta: Scalar, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        """n samples of μ_β(·|x, a), each from its component T ∼ Geometric(1−β)."""
        beta = check_gamma(beta, "β")
        times = rng.geometric(1 - beta, n) - 1
        means, covariances = self.components(state, action, int(times.max()) + 1)
        roots = np.array([_root(covariance) for covariance in covariances])
        return means[times] + np.einsum("nij,nj->ni", roots[times], rng.normal(size=(n, len(self.A))))


def _root(covariance: np.ndarray) -> np.ndarray:
    """A square root of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
