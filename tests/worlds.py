"""Random small worlds for the laws, and computations that share no code with the library."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ggpi.mdp.tabular import TabularMDP
from ggpi.switching import GSP


@dataclass(frozen=True)
class World:
    """A random MDP with policies, rewards of every form, γ and a seed for whatever else is random."""

    mdp: TabularMDP
    pis: np.ndarray
    r_state: np.ndarray
    r_action: np.ndarray
    gamma: float
    rng: np.random.Generator

    @property
    def P(self):
        return self.mdp.P

    @property
    def S(self):
        return self.mdp.num_states

    @property
    def A(self):
        return self.mdp.num_actions


@st.composite
def worlds(draw, num_policies=3, terminal=False, max_states=6, size=None):
    """MDPs with some impossible transitions, stochastic and deterministic policies; `size` fixes S and A."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S, A = size or (draw(st.integers(1 + terminal, max_states)), draw(st.integers(1, 3)))
    gamma = draw(st.sampled_from([0.0, 0.3, 0.9, 0.99]))
    P = rng.dirichlet(np.full(S, draw(st.sampled_from([0.2, 1.0]))), (S, A))
    flags = np.zeros(S, bool)
    if terminal:
        flags[-1] = True
        P[-1] = np.eye(S)[-1]
    pis = rng.dirichlet(np.ones(A), (num_policies, S))
    pis[0] = np.eye(A)[rng.integers(A, size=S)]
    return World(TabularMDP(P, flags), pis, rng.normal(size=S), rng.normal(size=(S, A)), gamma, rng)


@st.composite
def switching_policies(draw, num_policies=3, max_length=4):
    """GSPs with unequal α's, α = 1 among them."""
    length = draw(st.integers(1, max_length))
    policies = draw(st.lists(st.integers(0, num_policies - 1), min_size=length, max_size=length))
    alphas = draw(st.lists(st.sampled_from([0.1, 1 / 9, 0.5, 1.0]), min_size=length - 1, max_size=length - 1))
    return GSP(tuple(policies), tuple(alphas))


ALPHAS = (0.1, 1 / 9, 0.5, 1.0)


def pair_kernel(P, pi):
    """(x, a) → (x′, a′) under P and π, as a matrix [S·A, S·A]."""
    S, A, _ = P.shape
    return np.einsum("xay,yb->xayb", P, pi).reshape(S * A, S * A)


def bellman_q(P, pi, r, gamma):
    """Q^π by the Bellman equation on pairs."""
    S, A, _ = P.shape
    return np.linalg.solve(np.eye(S * A) - gamma * pair_kernel(P, pi), r.ravel()).reshape(S, A)


def bellman_q_gsp(P, pis, gsp, r, gamma):
    """Q^ν by the GSP's own Bellman equation: Q^ν = r + γ P [(1−α) π₁ Q^ν + α π₂ Q^ν′]."""
    S, A, _ = P.shape
    if len(gsp.policies) == 1:
        return bellman_q(P, pis[gsp.policies[0]], r, gamma)
    alpha = gsp.alphas[0]
    suffix = bellman_q_gsp(P, pis, GSP(gsp.policies[1:], gsp.alphas[1:]), r, gamma)
    stay = gamma * (1 - alpha) * pair_kernel(P, pis[gsp.policies[0]])
    switch = gamma * alpha * pair_kernel(P, pis[gsp.policies[1]])
    return np.linalg.solve(np.eye(S * A) - stay, r.ravel() + switch @ suffix.ravel()).reshape(S, A)


def return_moments(P, pis, gsp, r, gamma):
    """E[G] and E[G²] of the return G of a GSP: G = r + γ G′, so that E[G²] = r² + 2 r γ E[G′] + γ² E[G′²]."""
    S, A, _ = P.shape
    mean = bellman_q_gsp(P, pis, gsp, r, gamma)
    paid = 2 * r * mean - r**2  # = r² + 2 r γ E[G′]
    if len(gsp.policies) == 1:
        return mean, bellman_q(P, pis[gsp.policies[0]], paid, gamma**2)
    alpha = gsp.alphas[0]
    _, suffix = return_moments(P, pis, GSP(gsp.policies[1:], gsp.alphas[1:]), r, gamma)
    stay = gamma**2 * (1 - alpha) * pair_kernel(P, pis[gsp.policies[0]])
    switch = gamma**2 * alpha * pair_kernel(P, pis[gsp.policies[1]])
    square = np.linalg.solve(np.eye(S * A) - stay, paid.ravel() + switch @ suffix.ravel())
    return mean, square.reshape(S, A)


def bellman_q_star(P, r, gamma):
    """Q* by enumerating deterministic policies: the one that is best everywhere."""
    S, A, _ = P.shape
    best = np.full((S, A), -np.inf)
    for code in range(A**S):
        actions = (code // A ** np.arange(S)) % A
        best = np.maximum(best, bellman_q(P, np.eye(A)[actions], r, gamma))
    return best


def visitation_series(P, pi, horizon, terms=4000):
    """μ = (1−β) Σ βᵏ P (P^π)ᵏ, summed term by term."""
    P_pi = np.einsum("xa,xay->xy", pi, P)
    mu, ahead, weight = np.zeros_like(P), P, 1 - horizon
    for _ in range(terms):
        mu += weight * ahead
        ahead, weight = ahead @ P_pi, weight * horizon
        if weight < 1e-18:
            break
    return mu
