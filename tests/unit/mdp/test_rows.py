"""Draws from rows of probabilities: every row sums to 1 on its own."""

import jax
import numpy as np
import pytest
import scipy.sparse

import ggpi
import ggpi.rollout.execution
from ggpi import TabularMDP, TabularPolicy
from ggpi.ghm.exact import ExactGHM, Simulator
from ggpi.mdp.rows import draw, running_sums, sparse_running_sums


def large_mdp(num_states=200_000, num_actions=2, count=9):
    """Rows of 1/9's, and some shorter ones, over many states."""
    num_rows = num_states * num_actions
    counts = np.where(np.arange(num_rows) % 7 == 0, 3, count)
    starts = np.concatenate([[0], np.cumsum(counts)])
    row = np.repeat(np.arange(num_rows), counts)
    columns = (row // num_actions + np.arange(len(row)) - starts[row]) % num_states
    shape = (num_rows, num_states)
    return TabularMDP(scipy.sparse.csr_array((1 / counts[row], columns, starts), shape=shape))


def test_probabilities_of_a_large_sparse_mdp_do_not_drift():
    mdp = large_mdp()
    sums, P = mdp._sums, mdp.P
    implied = np.diff(sums, prepend=0.0)
    implied[P.indptr[:-1]] = sums[P.indptr[:-1]]
    np.testing.assert_allclose(implied, P.data, rtol=0, atol=1e-15)
    assert (sums[P.indptr[1:] - 1] == 1.0).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_step_lands_where_its_number_falls(sparse):
    """Compared with a search in one row at a time, for numbers at and next to every boundary."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(6, 0.3), (6, 2)) * (rng.random((6, 2, 6)) < 0.6)
    P[..., 2] += P.sum(axis=2) == 0
    P /= P.sum(axis=2, keepdims=True)
    mdp = TabularMDP(scipy.sparse.csr_array(P.reshape(12, 6)) if sparse else P)
    for x in range(6):
        for a in range(2):
            sums = np.cumsum(mdp.kernel[[2 * x + a]].toarray() if sparse else mdp.P[x, a])
            numbers = np.concatenate([[0.0, 1 - 2.0**-53], sums, np.nextafter(sums, 0), rng.random(20)])
            numbers = numbers[numbers < 1]
            landed = mdp.step(np.full(len(numbers), x), np.full(len(numbers), a), Fixed(numbers))
            assert (P[x, a, landed] > 0).all()
            inside = numbers < sums[-1]
            np.testing.assert_array_equal(
                landed[inside], np.searchsorted(sums, numbers[inside], side="right")
            )


class Fixed(np.random.Generator):
    """A generator of given numbers."""

    def __init__(self, numbers):
        super().__init__(np.random.PCG64(0))
        self.numbers = numbers

    def random(self, shape):
        return self.numbers.reshape(shape)


def test_an_impossible_last_entry_is_never_drawn():
    rows = np.array([[0.1] * 10 + [0.0, 0.0], [0.0] * 11 + [1.0]])
    sums = running_sums(rows)
    assert sums[0, 9] == sums[0, 10] == sums[0, 11] == 1.0
    assert np.cumsum(rows[0])[9] < 1  # as a plain sum would have it
    u = np.full(2, 1 - 2.0**-53)
    np.testing.assert_array_equal(draw(sums.ravel(), np.array([0, 12]), np.array([11, 23]), u) % 12, [9, 11])
    np.testing.assert_array_equal(
        sparse_running_sums(scipy.sparse.csr_array(rows)), np.append(sums[0, :10], 1.0)
    )


def test_the_simulator_shares_the_sums():
    mdp = large_mdp(20_000)
    simulator = Simulator.of(ExactGHM(mdp, TabularPolicy.uniform(mdp), 0.5))
    np.testing.assert_array_equal(np.asarray(simulator.cumulative), mdp._sums.astype(np.float32))
    ends = np.asarray(simulator.sample(np.arange(100), np.zeros(100, int), key=jax.random.key(0)))
    assert ((ends - np.arange(100)) % 20_000 < 9 * 30).all()


@pytest.mark.parametrize(
    ("state", "action", "error", "message"),
    [
        (5, 0, IndexError, "states run from 0 to 3, got 5 to 5"),
        (-1, 0, IndexError, "states run from 0 to 3, got -1"),
        (0, [0, 2], IndexError, "actions run from 0 to 1, got 0 to 2"),
        (0.5, 0, TypeError, r"states are whole numbers from 0 to 3, got 0\.5"),
        ("a", 0, TypeError, "states are whole numbers from 0 to 3, got 'a'"),
    ],
)
def test_steps_from_nowhere(state, action, error, message):
    mdp = TabularMDP(np.full((4, 2, 4), 0.25))
    with pytest.raises(error, match=message):
        mdp.step(state, action, np.random.default_rng(0))


def test_a_rollout_never_takes_an_action_of_probability_zero():
    mdp = TabularMDP(np.full((2, 11, 2), 0.5))
    pi = np.tile([0.1] * 10 + [0.0], (2, 1))
    data = ggpi.rollout.execution.rollout(
        ggpi.GSP((0,)), [TabularPolicy(pi)], mdp, num_steps=50, num_episodes=20, start=0
    )
    assert data.action.max() < 10
