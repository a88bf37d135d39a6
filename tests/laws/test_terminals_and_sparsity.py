"""Terminal states absorb and are paid once; dense and sparse worlds agree."""

import jax
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

from ggpi import TabularMDP, compositions, evaluate, exact_ghms, improve, rewards
from ggpi.evaluation import evaluate_pairs_sampled
from ggpi.ghm import ExactGHM
from ggpi.mdp import resolvent as solving
from worlds import ALPHAS, switching_policies, worlds


def test_an_arrival_reward_at_a_terminal_state_is_paid_once():
    """0 → end in one step: Q = ρ(end) from 0, and nothing from the end on."""
    P = np.zeros((2, 1, 2))
    P[:, 0, 1] = 1
    mdp = TabularMDP(P, [False, True])
    ghms = exact_ghms(mdp, [np.ones((2, 1))], 0.9, 0.5)
    reward = rewards.arrival([0.0, 7.0])
    assert evaluate(compositions(1, 1, 0.5), ghms, reward)[0].tolist() == [[7.0], [0.0]]
    sampled = evaluate_pairs_sampled(
        compositions(1, 1, 0.5), ghms, reward, num_samples=3, key=jax.random.key(0)
    )
    np.testing.assert_allclose(sampled[0], [[7.0], [0.0]], rtol=1e-6)
    assert evaluate(compositions(1, 1, 0.5), ghms, rewards.state([1.0, 5.0]))[0].tolist() == [[1.0], [0.0]]


@given(worlds(terminal=True))
def test_the_mass_of_mu_at_a_terminal_state_is_the_discounted_chance_to_enter(world):
    """μ(end|x, a) = Σ γᵗ P(enter at t + 1), so E_μ[ρ̃]/(1−γ) pays ρ(end) once."""
    pi, gamma = world.pis[1], world.gamma
    mu = ExactGHM(world.mdp, pi, gamma).dense()
    counted = world.r_state * np.where(world.mdp.terminal, 1 - gamma, 1.0)
    q = mu @ counted / (1 - gamma)
    expected = world.mdp.q(pi, rewards.arrival(world.r_state), gamma)
    np.testing.assert_allclose(q[:-1], expected[:-1], atol=1e-9)


@pytest.mark.slow
@given(worlds(terminal=True), switching_policies())
def test_composition_stays_at_a_terminal_state(world, gsp):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, ALPHAS)
    assert (evaluate([gsp], ghms, world.r_action)[0][-1] == 0).all()
    for models in ghms.models:
        for ghm in models:
            np.testing.assert_allclose(ghm.dense()[-1, :, -1], 1.0)


@pytest.mark.parametrize("method", ["direct", "krylov"])
@given(world=worlds(terminal=True), gsp=switching_policies())
def test_dense_and_sparse_agree(method, world, gsp):
    with pytest.MonkeyPatch.context() as patch:
        if method == "krylov":
            patch.setattr(solving, "DIRECT_LIMIT", 0)
            patch.setattr(solving, "NARROW", -1.0)
        kernel = scipy.sparse.csr_array(world.P.reshape(-1, world.S))
        sparse = TabularMDP(kernel, world.mdp.terminal)
        one, other = (
            evaluate([gsp], exact_ghms(mdp, list(world.pis), world.gamma, ALPHAS), world.r_action)[0]
            for mdp in (world.mdp, sparse)
        )
    np.testing.assert_allclose(one, other, atol=1e-7)
    np.testing.assert_array_equal(improve(one).pi, improve(one).pi)
