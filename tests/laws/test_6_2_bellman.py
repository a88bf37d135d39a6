"""Def 6.1, Prop 6.2, proof of Thm 6.3: μ is the only fixed point of a contraction."""

import numpy as np
from hypothesis import given

from ggpi.ghm import ExactGHM, bellman, compose
from worlds import pair_kernel, worlds


@given(worlds())
def test_composition_is_the_sum_over_states_and_actions(world):
    mu_1, mu_2 = (world.rng.dirichlet(np.ones(world.S), (world.S, world.A)) for _ in range(2))
    expected = np.einsum("xay,yb,ybz->xaz", mu_1, world.pis[1], mu_2)
    np.testing.assert_allclose(compose(mu_2, mu_1, world.pis[1]), expected, atol=1e-12)


@given(worlds())
def test_mu_is_the_fixed_point(world):
    mu = ExactGHM(world.mdp, world.pis[1], world.gamma).dense()
    np.testing.assert_allclose(bellman(mu, world.mdp, world.pis[1], world.gamma), mu, atol=1e-11)


@given(worlds())
def test_contraction_in_the_sup_norm(world):
    one, other = (world.rng.dirichlet(np.ones(world.S), (world.S, world.A)) for _ in range(2))
    gap = bellman(one, world.mdp, world.pis[1], world.gamma) - bellman(
        other, world.mdp, world.pis[1], world.gamma
    )
    assert np.abs(gap).max() <= world.gamma * np.abs(one - other).max() + 1e-12


@given(worlds())
def test_contraction_in_the_norm_weighted_by_a_stationary_distribution(world):
    kernel = pair_kernel(world.P, world.pis[1])
    size = len(kernel)
    equations = np.vstack([kernel.T - np.eye(size), np.ones(size)])
    xi = np.linalg.lstsq(equations, np.eye(size + 1)[-1], rcond=None)[0]
    np.testing.assert_allclose(xi @ kernel, xi, atol=1e-9)
    assert (xi > -1e-9).all()

    def norm(mu):
        return np.sqrt(np.maximum(xi, 0) @ (mu.reshape(size, -1) ** 2).sum(axis=1))

    one, other = (world.rng.dirichlet(np.ones(world.S), (world.S, world.A)) for _ in range(2))
    gap = bellman(one, world.mdp, world.pis[1], world.gamma) - bellman(
        other, world.mdp, world.pis[1], world.gamma
    )
    assert norm(gap) <= world.gamma * norm(one - other) + 1e-7
