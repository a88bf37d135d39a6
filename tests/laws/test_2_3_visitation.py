"""Def 2.2, Prop 2.3: μ starts at X₁, and is the distribution of X_T for T ∼ Geometric(1−γ)."""

import jax
import numpy as np
from hypothesis import given, settings

from chance import are_frequencies
from ggpi import GSP, TabularMDP, TabularPolicy
from ggpi.ghm import ExactGHM
from ggpi.ghm.exact import Simulator
from ggpi.rollout.execution import rollout
from worlds import visitation_series, worlds


@given(worlds())
def test_mu_is_its_series(world):
    ghm = ExactGHM(world.mdp, world.pis[1], world.gamma)
    np.testing.assert_allclose(ghm.dense(), visitation_series(world.P, world.pis[1], world.gamma), atol=1e-10)


@given(worlds())
def test_expectation_is_the_sum_over_mu(world):
    ghm = ExactGHM(world.mdp, world.pis[2], world.gamma)
    f = world.rng.normal(size=(world.S, 2))
    np.testing.assert_allclose(ghm.expect(f), ghm.dense() @ f, atol=1e-10)
    np.testing.assert_allclose(ghm.expect(f[:, 0]), ghm.dense() @ f[:, 0], atol=1e-10)


def test_the_present_does_not_count():
    """From a state that is left for ever, μ has no mass on it."""
    P = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    assert ExactGHM(TabularMDP(P), np.ones((2, 1)), 0.9).dense()[0, 0, 0] == 0.0


@settings(max_examples=15)
@given(worlds())
def test_trajectories_at_geometric_times_are_samples_of_mu(world):
    gamma, n = min(world.gamma, 0.9), 4000
    mu = visitation_series(world.P, world.pis[1], gamma)
    times = world.rng.geometric(1 - gamma, n)
    pi = TabularPolicy(world.pis[1])
    run = rollout(
        GSP((0,)),
        [pi],
        world.mdp,
        num_steps=int(times.max()),
        num_episodes=n,
        start=0,
        first_action=0,
        seed=1,
    )
    reached = run.next_state[run.step + 1 == times[run.episode]]
    assert len(reached) == n
    assert are_frequencies(np.bincount(reached, minlength=world.S), mu[0, 0], comparisons=15 * 6)


@settings(max_examples=5)
@given(worlds(size=(4, 2)))
def test_both_samplers_draw_from_mu(world):
    ghm = ExactGHM(world.mdp, world.pis[1], min(world.gamma, 0.9))
    x, a = np.indices((world.S, world.A))
    for sampler in (ghm.sampler, Simulator.of(ghm)):
        wide = [np.broadcast_to(part[..., None], (world.S, world.A, 2000)) for part in (x, a)]
        drawn = np.asarray(sampler.sample(*wide, key=jax.random.key(0)))
        counts = (drawn[..., None] == np.arange(world.S)).sum(axis=2)
        assert are_frequencies(counts, ghm.dense(), comparisons=5 * 2 * counts.size)
