"""Ties are judged relative to a state's own values: scaling rewards changes no policy, and distance hides no reward."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings

import ggpi
import ggpi.improvement
from ggpi import GSP, TabularMDP, TabularPolicy, rewards
from ggpi.mdp import optimal, resolvent
from ggpi.mdp.ties import RESOLUTION, is_best
from worlds import worlds

SCALES = (1e-12, 2.0**-40, 1e-5, 1 / 3, 7.0, 2.0**40, 1e12)


def corridor(length, sparse, terminal=False):
    """Cells in a row, left and right; the last one is the end."""
    place = np.arange(length)
    landing = np.stack([np.maximum(place - 1, 0), np.minimum(place + 1, length - 1)], axis=1)
    flags = np.zeros(length, bool)
    if terminal:
        landing[-1], flags[-1] = length - 1, True
    rows = scipy.sparse.csr_array(
        (np.ones(2 * length), (np.arange(2 * length), landing.ravel())), shape=(2 * length, length)
    )
    return TabularMDP(rows if sparse else rows.toarray().reshape(length, 2, length), flags)


def at_the_end(length, size=1.0):
    return size * (np.arange(length) == length - 1)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("terminal", [False, True], ids=["for ever", "once"])
@pytest.mark.parametrize(("length", "gamma"), [(60, 0.5), (300, 0.5), (60, 0.9), (300, 0.9), (60, 1 - 1e-9)])
def test_every_cell_of_a_corridor_goes_to_its_end(length, gamma, terminal, sparse):
    mdp = corridor(length, sparse, terminal)
    reward = rewards.arrival(at_the_end(length))
    going = slice(0, length - 1)
    found = ggpi.policy_iteration(mdp, reward, gamma, 0.25, newest_last=True, max_iterations=length + 2)
    assert found.stopped == "stable"
    np.testing.assert_array_equal(found.policy.pi[going, 1], 1.0)
    howard = optimal.howard(mdp, reward, gamma, policy=np.full((length, 2), 0.5))
    assert howard.stopped == "stable policy"
    np.testing.assert_array_equal(howard.pi[going, 1], 1.0)
    best = optimal.optimal_actions(howard.q, tolerance=RESOLUTION)
    assert best[going].tolist() == [[False, True]] * (length - 1)


def test_values_far_from_the_reward_are_exact_to_their_own_digits():
    mdp, gamma = corridor(300, sparse=True), 0.5
    policy = TabularPolicy.constant(mdp, 1)
    expected = gamma ** (299.0 - np.arange(300)) / (1 - gamma)
    np.testing.assert_allclose(mdp.v(policy, at_the_end(300), gamma), expected, rtol=RESOLUTION / 8)


@pytest.mark.parametrize("scale", SCALES)
@settings(max_examples=8)
@given(worlds(num_policies=2, max_states=4))
def test_scaled_rewards_have_the_same_policies(scale, world):
    gsps = ggpi.compositions(2, 2, 0.5)
    ghms = ggpi.exact_ghms(world.mdp, list(world.pis[:2]), world.gamma, 0.5)
    for r in (world.r_state, np.abs(world.r_state), world.r_action):
        q, scaled = ggpi.evaluate(gsps, ghms, r), ggpi.evaluate(gsps, ghms, scale * r)
        np.testing.assert_array_equal(ggpi.improve(q).pi, ggpi.improve(scaled).pi)
        np.testing.assert_array_equal(
            ggpi.improvement.improve_head(q).pi, ggpi.improvement.improve_head(scaled).pi
        )
        if np.log2(scale) % 1 == 0:
            np.testing.assert_array_equal(scale * q.array, scaled.array)
        found = [ggpi.policy_iteration(world.mdp, s * r, world.gamma, 0.5) for s in (1.0, scale)]
        assert found[0].stopped == found[1].stopped == "stable"
        np.testing.assert_array_equal(found[0].policy.pi, found[1].policy.pi)
        howard = [optimal.howard(world.mdp, s * r, world.gamma) for s in (1.0, scale)]
        np.testing.assert_array_equal(howard[0].pi, howard[1].pi)


def open_room(size, sparse, slip=0.1):
    """A slippery room with two pairs of actions that are mirror images: down and right, up and left."""
    moves = ((1, 0), (0, 1), (-1, 0), (0, -1))
    cells = np.indices((size, size)).reshape(2, -1)
    landing = [np.clip(cells + np.array(move)[:, None], 0, size - 1) for move in moves]
    one_hot = np.stack([np.eye(size**2)[rows * size + columns] for rows, columns in landing], axis=1)
    P = (1 - slip) * one_hot + slip * one_hot.mean(axis=1, keepdims=True)
    return TabularMDP(scipy.sparse.csr_array(P.reshape(-1, size**2)) if sparse else P)


@pytest.mark.parametrize("kind", ["dense", "sparse", "krylov"])
@pytest.mark.parametrize("gamma", [0.3, 0.9, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("mixed", [False, True])
def test_mirror_images_are_tied(mixed, gamma, kind, monkeypatch):
    size = 9
    if kind == "krylov":
        monkeypatch.setattr(resolvent, "DIRECT_LIMIT", 0)
        monkeypatch.setattr(resolvent, "NARROW", 0.0)
    mdp = open_room(size, sparse=kind != "dense")
    r = np.zeros((size, size))
    r[-1, -1] = 1.0
    if mixed:
        noise = np.random.default_rng(0).normal(size=(size, size))
        r += noise + noise.T
    found = ggpi.policy_iteration(mdp, r.ravel(), gamma, 0.25, newest_last=True)
    assert found.stopped == "stable"
    pi = found.policy.pi.reshape(size, size, 4)
    mirrored = pi.transpose(1, 0, 2)[..., [1, 0, 3, 2]]
    np.testing.assert_array_equal(pi, mirrored)
    if not mixed and kind != "krylov":
        np.testing.assert_array_equal(pi[:-1, :-1, :2].diagonal().T, 0.5)


def test_a_small_gain_counts_beside_large_values_and_a_tie_of_large_values_is_one():
    values, sizes = np.array([[1.0, 1.0 + 1e-10], [0.3 - 0.1 * 3, 0.0]]), np.array([[1.0, 1.0], [0.6, 0.0]])
    tied = is_best(values, sizes, axis=1, tolerance=RESOLUTION)
    np.testing.assert_array_equal(tied, [[False, True], [True, True]])
    assert is_best(values, np.abs(values), axis=1, tolerance=1e-9).tolist() == [[True, True], [False, True]]


def test_what_cancels_is_tied_by_the_sum_of_absolute_rewards():
    """Two ways to 0 = Σ γᵗ r: rounding errors of one are far larger than the value itself."""
    gamma = 0.9
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 3] = P[2, :, 3] = P[3, :, 3] = 1.0
    r = np.array([0.0, 0.7, 0.7 * (1 + 2**-52), -0.7 / gamma * (1 - gamma)])
    ghms = ggpi.exact_ghms(TabularMDP(P), [np.full((4, 2), 0.5)], gamma, 0.5)
    q = ggpi.evaluate([GSP((0,))], ghms, r)
    assert np.abs(q.array[0, 0]).max() < 1e-15 < q.sizes[0, 0].min()
    np.testing.assert_array_equal(ggpi.improve(q).pi[0], [0.5, 0.5])


def test_krylov_says_how_far_values_can_be_told_apart(monkeypatch):
    """Its errors are bounded for all states together: values far below the bound are tied, nothing is claimed."""
    monkeypatch.setattr(resolvent, "DIRECT_LIMIT", 0)
    monkeypatch.setattr(resolvent, "NARROW", 0.0)
    mdp, gamma = corridor(60, sparse=True), 0.5
    policies = [TabularPolicy.uniform(mdp)]
    q = ggpi.evaluate([GSP((0,))], ggpi.exact_ghms(mdp, policies, gamma, 0.5), at_the_end(60))
    monkeypatch.undo()
    exact = ggpi.evaluate([GSP((0,))], ggpi.exact_ghms(mdp, policies, gamma, 0.5), at_the_end(60))
    assert exact.accuracy.error == 0.0 < q.accuracy.error < 1e-10
    assert np.abs(q.array - exact.array).max() <= q.accuracy.error
    pi = ggpi.improve(q).pi
    np.testing.assert_array_equal(pi[:10], 0.5)
    np.testing.assert_array_equal(pi[-11:-1, 1], 1.0)
