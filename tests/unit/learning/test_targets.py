"""Targets of CEMC and CETD: with the true model in the place of μ̄ they are samples of μ, terminals included."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chance import are_frequencies, error_of_mean, is_share
from ggpi import TabularMDP, TabularPolicy, Transitions
from ggpi.data import StateSpec
from ggpi.ghm import ExactGHM
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.coordinates import fit_frame
from ggpi.learning.losses import CEMC, CETD, Batch, Problem, sample_ahead
from ggpi.learning.targets import (
    draw_rows,
    far_rows,
    follow,
    followed_steps,
    geometric,
    n_step_dataset,
    trajectory_dataset,
    warn_if_loose,
)

BETAS = (0.8, 0.5)


def absorbing_chain():
    """0 → 1 → 2 (the end) with chances to stay; two actions of different haste."""
    P = np.zeros((3, 2, 3))
    P[0, :, 0], P[0, :, 1] = [0.6, 0.2], [0.4, 0.8]
    P[1, :, 1], P[1, :, 2] = [0.7, 0.3], [0.3, 0.7]
    P[2, :, 2] = 1
    return TabularMDP(P, [False, False, True])


MDP = absorbing_chain()
PIS = [np.array([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]]), np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]])]


class OnALine(eqx.Module):
    """A tabular policy that sees its state as a vector of one number."""

    cumulative: jax.Array

    def sample(self, state, *, key):
        row = self.cumulative[state[0].astype(int)]
        return jnp.minimum((jax.random.uniform(key) >= row).sum(), row.shape[0] - 1)


class Truth(AbstractGHM):
    """μ itself, as a model of vectors of one number."""

    frame: Any
    cumulative: jax.Array

    @property
    def noise_size(self):
        return 1

    @property
    def loss_noise_size(self):
        return 0

    def push(self, state, action, noise):
        row = self.cumulative[state[0].astype(int), action]
        return jnp.minimum((jax.scipy.stats.norm.cdf(noise[0]) >= row).sum(), 2).astype(jnp.float32)[None]

    def loss(self, state, action, target, noise):
        return jnp.zeros(len(state))


def simulated(num_episodes, num_steps, switch, seed=0):
    """Episodes whose policy may change at every step; those not ended are truncated."""
    rng = np.random.default_rng(seed)
    x, k = np.zeros(num_episodes, int), rng.integers(2, size=num_episodes)
    columns = []
    for t in range(num_steps):
        if t:
            k = np.where(rng.random(num_episodes) < switch, 1 - k, k)
        a = (rng.random(num_episodes) >= np.stack(PIS)[k, x, 0]).astype(int)
        y = MDP.step(x, a, rng)
        columns.append(
            (x, a, y, y == 2, (t == num_steps - 1) & (y != 2), k, np.arange(num_episodes), np.full_like(x, t))
        )
        x = y
    rows = [np.stack(column, axis=1).ravel() for column in zip(*columns, strict=True)]
    alive = rows[0] != 2
    parts = [row[alive] for row in rows]
    vectors = [part.astype(np.float32)[:, None] if i in (0, 2) else part for i, part in enumerate(parts)]
    return Transitions(*vectors)


def true_models():
    tables = [ExactGHM(MDP, pi, beta).dense() for beta in BETAS for pi in PIS]
    frame = fit_frame(np.zeros((2, 1)), np.zeros(2, int), np.ones((2, 1)), StateSpec(("x",)), 2)
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), frame)
    return Truth(stacked, jnp.asarray(np.cumsum(tables, axis=-1), jnp.float32)), np.stack(tables)


def frequencies(batch: Batch):
    """Counts [M, S, A, S] of targets by pair."""
    x, y = (np.asarray(part)[..., 0].astype(int) for part in (batch.state, batch.target))
    counts = np.zeros((4, 3, 2, 3))
    for m in range(4):
        np.add.at(counts[m], (x[m], np.asarray(batch.action)[m], y[m]), 1)
    return counts


def episodes_of_pairs(data):
    """How many episodes visit each pair, [S, A, 1]."""
    visits = np.zeros((data.episode.max() + 1, 3, 2), bool)
    visits[data.episode, data.state[:, 0].astype(int), data.action] = True
    return visits.sum(axis=0)[..., None]


def assert_samples_of(counts, mu, data):
    """Draws are independent given the data, and the data's episodes are independent of each other.

    Both lead to errors, each of which is beyond its bound with a probability below ½e-6. An episode stays at a pair
    for geometric times, which at most doubles the variance of its share.
    """
    seen, episodes, comparisons = counts.sum(axis=-1, keepdims=True), episodes_of_pairs(data), 2 * counts.size
    assert (seen[:, :2] > 1000).all(), "every pair is seen often enough for this to mean something"
    deviation = np.sqrt(mu * (1 - mu))
    bound = error_of_mean(deviation, np.maximum(seen, 1), 1.0, comparisons)
    bound += error_of_mean(np.sqrt(2) * deviation, np.maximum(episodes, 1), 1.0, comparisons)
    assert (np.abs(counts / np.maximum(seen, 1) - mu) <= bound)[:, :2].all()


@pytest.mark.parametrize("n_step", [1, 2, 20])
@pytest.mark.parametrize("num_steps", [3, 60])
def test_targets_of_the_true_model_are_samples_of_mu(n_step, num_steps):
    """Short episodes are truncated, long ones terminate: both bootstrap, or stay, as they should."""
    data = simulated(40_000, num_steps, switch=0.3)
    assert data.terminated.any() and (num_steps > 10 or data.truncated.any())
    bank_policies = [OnALine(jnp.asarray(np.cumsum(pi, axis=1), jnp.float32)) for pi in PIS]
    from ggpi.policies.bank import PolicyBank

    models, mu = true_models()
    betas = jnp.repeat(jnp.asarray(BETAS), 2)
    loss = CETD(n_step=n_step)
    problem = Problem(loss.dataset(data, 2, BETAS), PolicyBank(bank_policies), betas)
    batch = loss.draw(models, problem, 40_000, key=jax.random.key(0))
    assert_samples_of(frequencies(batch), mu, data)


def test_cemc_targets_are_samples_of_mu():
    data = simulated(40_000, 60, switch=0.0)
    dataset = CEMC().dataset(data, 2, BETAS)
    betas = jnp.repeat(jnp.asarray(BETAS), 2)
    rows = draw_rows(dataset, 2, 40_000, key=jax.random.key(1))
    reached, _ = follow(dataset, rows, betas, key=jax.random.key(2))
    _, mu = true_models()
    assert_samples_of(frequencies(Batch(dataset.state[rows], dataset.action[rows], reached)), mu, data)


def test_cemc_says_what_it_needs():
    with pytest.raises(
        ValueError, match=r"trajectories of policy 0 of at least 31 steps.*longest here has 1"
    ):
        trajectory_dataset(simulated(50, 1, switch=0.0), 2, BETAS)


def test_followed_steps():
    """Own step always; then while the same episode goes on and the policy acts."""
    episode = np.array([0, 0, 0, 0, 1, 1])
    behaviour = np.array([0, 1, 1, 0, 1, 1])
    step = np.array([0, 1, 2, 3, 0, 1])
    zeros = np.zeros(6)
    data = Transitions(zeros[:, None], zeros, zeros[:, None], zeros > 0, zeros > 0, behaviour, episode, step)
    assert followed_steps(data, 1).tolist() == [3, 2, 1, 1, 2, 1]
    assert followed_steps(data, 0).tolist() == [1, 1, 2, 1, 1, 1]
    unknown = Transitions(
        zeros[:, None], zeros, zeros[:, None], zeros > 0, zeros > 0, -np.ones(6, int), episode, step
    )
    assert followed_steps(unknown, 0).tolist() == [1] * 6
    assert n_step_dataset(unknown, 1, 20).num_starts.tolist() == [6]
    assert n_step_dataset(unknown, 1, 20).length.tolist() == [[1] * 6]
    loose = Transitions(
        zeros[:, None], zeros, zeros[:, None], zeros > 0, zeros == 0, 0 * step, np.arange(6), 0 * step
    )
    assert followed_steps(loose, 0).tolist() == [1] * 6
    ended = replace(data, terminated=np.arange(6) == 1, truncated=np.arange(6) == 4)
    assert followed_steps(ended, 1).tolist() == [2, 1, 1, 1, 1, 1], "nothing follows an end"
    assert n_step_dataset(data, 2, 20).starts[0].tolist() == [
        *range(6),
        *[0, 3] * 9,
    ]  # all, own, and first of a turn
    assert n_step_dataset(data, 2, 1).num_starts.tolist() == [6, 6]


def test_a_policy_that_was_alone_has_no_turns():
    """Its first rows are no more than others: half of all draws would fall on the few beginnings of long episodes."""
    zeros, behaviour = np.zeros(20), np.repeat([0, 1], 10)
    data = Transitions(
        zeros[:, None],
        zeros,
        zeros[:, None],
        zeros > 0,
        zeros > 0,
        behaviour,
        behaviour,
        np.tile(np.arange(10), 2),
    )
    first, second = n_step_dataset(data, 2, 20).starts
    assert first.tolist() == [*range(20), *range(10), *range(10)]
    assert second.tolist() == [*range(20), *range(10, 20), *range(10, 20)]


def test_it_is_said_when_there_is_nothing_to_follow():
    data = simulated(50, 10, switch=0.3)
    n = len(data)
    warn_if_loose(data, 2, 20)
    unknown = replace(data, behaviour=np.full(n, -1))
    warn_if_loose(unknown, 2, 1)
    with pytest.warns(UserWarning, match=r"n_step is 20, .* behaviour is −1.*one-step CETD"):
        warn_if_loose(unknown, 2, 20)
    with pytest.warns(UserWarning, match="the transitions are loose"):
        warn_if_loose(replace(data, episode=np.arange(n), step=np.zeros(n, int)), 2, 20)
    with pytest.raises(
        ValueError, match=r"CEMC needs trajectories .* has 1 \(the behaviour policy is unknown"
    ):
        trajectory_dataset(unknown, 2, BETAS)


def test_targets_are_samples_of_mu_when_nobody_knows_who_acted():
    """Unknown behaviour with n_step = 20 is one-step CETD: nothing of another policy's future gets in."""
    from ggpi.policies.bank import PolicyBank

    data = simulated(40_000, 60, switch=0.3)
    unknown, loss = replace(data, behaviour=np.full(len(data), -1)), CETD(n_step=20)
    models, mu = true_models()
    bank = PolicyBank([OnALine(jnp.asarray(np.cumsum(pi, axis=1), jnp.float32)) for pi in PIS])
    betas = jnp.repeat(jnp.asarray(BETAS), 2)
    dataset = loss.dataset(unknown, 2, BETAS)
    batch = loss.draw(models, Problem(dataset, bank, betas), 40_000, key=jax.random.key(0))
    assert_samples_of(frequencies(batch), mu, data)


def test_geometric_times():
    n = 100_000
    times = np.asarray(geometric(jnp.array([[0.0], [0.5], [0.9]]), (3, n), key=jax.random.key(0)))
    assert (times[0] == 1).all() and times.min() == 1
    mean, deviation = np.array([2, 10]), np.array([2, 90]) ** 0.5
    assert (abs(times[1:].mean(axis=1) - mean) < error_of_mean(deviation, n, 1.5 * mean, comparisons=3)).all()
    assert is_share(times[1] == 2, 0.25, comparisons=3)


def test_sampling_ahead_uses_each_models_own_policy():
    from ggpi.policies.bank import PolicyBank

    models, mu = true_models()
    bank = PolicyBank([OnALine(jnp.asarray(np.cumsum(pi, axis=1), jnp.float32)) for pi in PIS])
    drawn = np.asarray(sample_ahead(models, bank, jnp.zeros((4, 50_000, 1)), key=jax.random.key(0)))[..., 0]
    for m in range(4):
        expected = PIS[m % 2][0] @ mu[m, 0]
        assert are_frequencies(np.bincount(drawn[m].astype(int), minlength=3), expected, comparisons=12)
    assert TabularPolicy(PIS[0]).pi.shape == (3, 2)


def test_rows_start_near_where_the_record_leads_far():
    """A zone of 1% of a line, from which half of the steps lead one unit ahead and half lead twelve.

    Steps elsewhere are short, so nearly all chosen rows begin in the zone. Their ends are as the record's: weights are
    those of other rows, whose outcomes are independent.
    """
    rng = np.random.default_rng(0)
    n = 200_000
    place, far = rng.uniform(size=n), rng.integers(2, size=n)
    inside = (place > 0.5) & (place < 0.51)
    moved = place + np.where(inside, np.where(far, 12.0, 1.0), 0.001)
    state, other = np.stack([place, rng.normal(size=n)], axis=1), rng.normal(size=n)
    zeros = np.zeros(n)
    data = Transitions(
        state,
        zeros,
        np.stack([moved, other], axis=1),
        zeros > 0,
        zeros == 0,
        zeros.astype(int),
        np.arange(n),
        zeros.astype(int),
    )
    rows = far_rows(data, (0,))
    assert len(rows) == n and inside[rows].mean() > 0.99
    chosen = np.unique(rows[inside[rows]])
    assert is_share(far[chosen], far[inside].mean(), comparisons=1)
    assert abs(far[rows[inside[rows]]].mean() - far[inside].mean()) < 0.1
    starts = n_step_dataset(data, 1, 1, far=(0,)).starts[0]
    np.testing.assert_array_equal(starts, np.append(np.arange(n), rows))


def test_rows_lead_far_within_their_episode_only():
    """Copies of two episodes of five steps; in the first the last step is long, and three rows lead through it."""
    copies = 50
    one = np.append(np.arange(5) / 10, 50 + np.arange(5) / 10)
    state = (one + np.random.default_rng(0).uniform(-1e-3, 1e-3, (copies, 10))).reshape(-1, 1)
    long, zeros = np.tile(np.arange(10) == 4, copies), np.zeros(10 * copies)
    after = state + np.where(long, 9.0, 0.1)[:, None]
    step, episode = np.tile(np.arange(5), 2 * copies), np.repeat(np.arange(2 * copies), 5)
    data = Transitions(state, zeros, after, zeros > 0, step == 4, zeros.astype(int), episode, step)
    share = np.bincount(far_rows(data, (0,)) % 10, minlength=10) / len(data)
    assert (share[2:5] > 0.25).all() and share[[0, 1, *range(5, 10)]].max() < 0.01
