"""Samplers of exact models, where a wrong row, action or step is seen in a few samples."""

import jax
import numpy as np
import pytest

import ggpi
import ggpi.ghm
from ggpi.ghm.exact import Simulator

KEY = jax.random.key(0)
KINDS = {"table": lambda ghm: ghm.sampler, "simulator": Simulator.of}
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@both
def test_the_first_action_is_the_given_one_or_the_policys(kind):
    """From state x action a leads into sink 2 + 2x + a for ever; the policy takes action 1 in state 0 and 0 in 1."""
    following = np.tile(np.arange(6)[:, None], 2)
    following[:2] = [[2, 3], [4, 5]]
    pi = np.eye(2)[[1, 0, 0, 0, 0, 0]]
    sampler = kind(ggpi.ghm.ExactGHM(ggpi.TabularMDP(np.eye(6)[following]), pi, 0.8))
    x, a = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert sampler.sample(x, a, key=KEY).tolist() == [2, 3, 4, 5]
    assert sampler.sample_onward(np.array([0, 1, 5]), key=KEY).tolist() == [3, 4, 5]


@both
def test_after_the_first_action_the_policy_acts(kind):
    """0 –0→ 1 –1→ 2: the policy always takes 1, so that 64 samples reach 2 unless all stop at 1 (10⁻⁶⁴)."""
    following = np.array([[1, 0], [1, 2], [2, 2]])
    sampler = kind(ggpi.ghm.ExactGHM(ggpi.TabularMDP(np.eye(3)[following]), np.eye(2)[[1, 1, 1]], 0.9))
    drawn = np.asarray(sampler.sample(np.zeros(64, int), np.zeros(64, int), key=KEY))
    assert {2} <= set(drawn) <= {1, 2}


@both
def test_without_a_horizon_one_step_is_taken(kind):
    following = np.array([[1], [2], [2]])
    sampler = kind(ggpi.ghm.ExactGHM(ggpi.TabularMDP(np.eye(3)[following]), np.ones((3, 1)), 0.0))
    assert int(sampler.sample(0, 0, key=KEY)) == 1


@both
def test_the_time_is_geometric(kind):
    """Along a line X_T = T, of mean 10: 400 samples stay below a mean of 5 with a probability below 1e-20."""
    following = np.minimum(np.arange(200) + 1, 199)[:, None]
    sampler = kind(ggpi.ghm.ExactGHM(ggpi.TabularMDP(np.eye(200)[following]), np.ones((200, 1)), 0.9))
    drawn = np.asarray(sampler.sample(np.zeros(400, int), np.zeros(400, int), key=KEY))
    assert drawn.min() == 1 and 5 < drawn.mean() < 20


@both
def test_every_step_has_noise_of_its_own(kind):
    """A walk with steps ±1 is farther than 12 with probability < .005; a straight one whenever T > 12, .28.

    Of 400 walks 40 are that far with a probability below (e · 400 · .005 / 40)⁴⁰ < 1e-34.
    """
    P = (np.eye(201, k=1) + np.eye(201, k=-1))[:, None]
    P[0, 0, 0] = P[-1, 0, -1] = 1
    sampler = kind(ggpi.ghm.ExactGHM(ggpi.TabularMDP(P / 2), np.ones((201, 1)), 0.9))
    drawn = np.asarray(sampler.sample(np.full(400, 100), np.zeros(400, int), key=KEY))
    assert (np.abs(drawn - 100) > 12).sum() < 40
    assert len(np.unique(drawn)) > 5


def test_a_sampler_jumps_at_the_horizon_that_it_is_given():
    """α = 1 makes β = 0: the next state. At γ = 0.9, 64 jumps are all of one step with probability 1e-64."""
    mdp = ggpi.TabularMDP(np.eye(50)[np.minimum(np.arange(50) + 1, 49)][:, None])
    sampler = ggpi.exact_ghms(mdp, [np.ones((50, 1))], 0.9, 1.0).sampler()
    start, key = np.zeros((1, 64), np.int32), jax.random.key(0)
    for horizon, is_next in ((0.0, True), (0.9, False)):
        for end in (
            sampler.jump((0,), horizon, start, start, key=key),
            sampler.onward((0,), horizon, start, key=key),
        ):
            assert (np.asarray(end) == 1).all() == is_next
