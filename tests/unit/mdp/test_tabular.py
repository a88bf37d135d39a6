"""TabularMDP: shapes, labels, readers, and what it refuses."""

import gymnasium
import numpy as np
import pytest
import scipy.sparse

import ggpi
from chance import are_frequencies
from ggpi import TabularMDP, TabularPolicy, rewards
from ggpi.switching import beta_of, composition_weights

STAY = np.eye(3)[:, None, :]


def kernel(**changes):
    P = np.full((3, 2, 3), 1 / 3)
    for where, value in changes.items():
        P[tuple(int(c) for c in where[1:])] = value
    return P


def test_rows_off_by_little_are_renormalised():
    P = kernel() * (1 + 5e-7)
    assert np.abs(TabularMDP(P).P.sum(axis=2) - 1).max() < 1e-15
    sparse = TabularMDP(scipy.sparse.csr_array(P.reshape(6, 3)))
    assert np.abs(sparse.P.sum(axis=1) - 1).max() < 1e-15


def test_the_given_array_is_not_changed():
    P = kernel() * (1 + 5e-7)
    before = P.copy()
    sparse = scipy.sparse.csr_array(P.reshape(6, 3))
    data = sparse.data.copy()
    TabularMDP(P), TabularMDP(sparse)
    np.testing.assert_array_equal(P, before)
    np.testing.assert_array_equal(sparse.data, data)


@pytest.mark.parametrize(
    ("P", "message"),
    [
        (kernel(x110=0.5), r"1 of 6 rows.*state 1, action 1, with sum 1.16"),
        (kernel(x012=np.nan), r"state 0, action 1"),
        (kernel(x200=-0.1, x201=0.766666), r"state 2, action 0.*smallest entry -0.1"),
        (np.ones((3, 3)), r"\[S, A, S\].*got \(3, 3\)"),
        (np.ones((3, 2, 4)), r"got \(3, 2, 4\)"),
        (np.ones((0, 2, 0)), "got"),
        (scipy.sparse.csr_array(kernel(x110=0.5).reshape(6, 3)), "state 1, action 1, with sum 1.16"),
        (scipy.sparse.csr_array(kernel(x110=np.nan).reshape(6, 3)), "state 1, action 1"),
        (scipy.sparse.csr_array(np.full((5, 3), 1 / 3)), r"multiple of its columns; got \(5, 3\)"),
    ],
)
def test_kernels_that_are_none(P, message):
    with pytest.raises(ValueError, match=message):
        TabularMDP(P)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("num_columns", [0, 1, 5])
def test_ahead_of_columns(order, num_columns):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), (4, 3))
    f = np.asarray(rng.normal(size=(4, num_columns)), order=order)
    for mdp in (TabularMDP(P), TabularMDP(scipy.sparse.csr_array(P.reshape(12, 4)))):
        np.testing.assert_allclose(mdp.ahead(f), np.einsum("xay,yn->xan", P, f), atol=1e-15)


def test_terminal_states_must_absorb():
    with pytest.raises(ValueError, match="terminal state 1 is not absorbing"):
        TabularMDP(kernel(), [False, True, False])
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(2,\)"):
        TabularMDP(STAY, [False, True])
    assert TabularMDP(scipy.sparse.csr_array(STAY[:, 0]), [True] * 3).terminal.all()


def test_labels():
    mdp = ggpi.envs.four_rooms()
    assert mdp.num_states == 104 and mdp.labels[mdp.index((1, 11))] == (1, 11)
    assert mdp.indicator((1, 11), (1, 1)).sum() == 2
    with pytest.raises(KeyError, match=r"no state is called \(0, 0\)"):
        mdp.index((0, 0))
    with pytest.raises(ValueError, match="3 labels, got 2"):
        TabularMDP(STAY, labels=["a", "b"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.v(np.ones((3, 3)), np.zeros(3), 0.9), r"\[S, A\] = \(3, 2\), got \(3, 3\)"),
        (lambda m: m.v(np.ones((3, 2)), np.zeros(3), 0.9), "policy: 3 of 3 rows.*state 0, with sum 2"),
        (lambda m: m.v(np.full((3, 2), 0.5), np.zeros(4), 0.9), r"shape \(3,\), got \(4,\)"),
        (lambda m: m.v(np.full((3, 2), 0.5), np.zeros((3, 3)), 0.9), r"shape \(3, 2\), got \(3, 3\)"),
        (lambda m: m.v(np.full((3, 2), 0.5), np.zeros((3, 2, 1)), 0.9), r"\[S\] or \[S, A\]"),
        (lambda m: m.v(np.full((3, 2), 0.5), [0, np.inf, 0], 0.9), r"1 reward values are not finite.*\(1,\)"),
        (lambda m: m.v(np.full((3, 2), 0.5), np.zeros(3), 1.0), r"γ lies in \[0, 1\), got 1.0"),
        (lambda m: m.v(np.full((3, 2), 0.5), np.zeros(3), -0.1), "got -0.1"),
        (lambda m: ggpi.exact_ghms(m, [np.full((3, 2), 0.5)], 0.9, 0.0), r"α.*got 0.0"),
        (lambda m: ggpi.exact_ghms(m, [np.full((3, 2), 0.5)], 0.9, 1.1), r"α.*got 1.1"),
        (lambda m: ggpi.exact_ghms(m, [], 0.9, 0.5), "at least one policy"),
        (lambda m: ggpi.exact_ghms(m, [np.full((4, 2), 0.5)], 0.9, 0.5), r"got \(4, 2\)"),
        (lambda m: m.ahead(np.zeros(4)), r"S = 3, got \(4,\)"),
        (lambda m: m.ahead(np.zeros((2, 3))), r"S = 3, got \(2, 3\)"),
        (lambda m: m.ahead(np.zeros((3, 1, 1))), r"\[S, n\] with S = 3, got \(3, 1, 1\)"),
        (lambda m: rewards.state_action(np.zeros(3)), r"shape \[S, A\], got \(3,\)"),
        (lambda m: rewards.arrival(np.zeros((3, 2))), r"shape \[S\], got"),
        (lambda m: TabularPolicy.constant(m, 2), "actions 0 to 1"),
        (lambda m: TabularPolicy([1.0, 0.0]), r"\[S, A\], got \(2,\)"),
        (lambda m: TabularPolicy([[0.9, 0.0]], "lazy"), "policy lazy: 1 of 1 rows"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises((ValueError, IndexError), match=message):
        call(TabularMDP(kernel()))


def test_models_refuse_switching_policies_that_they_cannot_evaluate():
    mdp = TabularMDP(kernel())
    ghms = ggpi.exact_ghms(mdp, [np.full((3, 2), 0.5)] * 2, 0.9, 0.5)
    with pytest.raises(IndexError, match=r"name base policy 2, but there are 2 \(0 to 1\)"):
        ggpi.evaluate([ggpi.GSP((2,))], ghms, np.zeros(3))
    with pytest.raises(ValueError, match=r"models for α in \[0.5\], none for α = 0.25"):
        ggpi.evaluate([ggpi.GSP((0, 1), (0.25,))], ghms, np.zeros(3))
    with pytest.raises(ValueError, match="empty"):
        ggpi.evaluate([], ghms, np.zeros(3))


def test_weights():
    assert composition_weights(0.9, []).tolist() == [1.0]
    assert beta_of(0.9, 1 / 9) == pytest.approx(0.8)


def dictionary_q(table, gamma, sweeps=2000):
    """Q* straight from the dictionary, terminal flags cutting the future off."""
    q = np.zeros((len(table), len(table[0])))
    for _ in range(sweeps):
        best = q.max(axis=1)
        q = np.array(
            [
                [sum(p * (r + gamma * (not end) * best[y]) for p, y, r, end in table[x][a]) for a in table[x]]
                for x in table
            ]
        )
    return q


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_toy_text_environments(name):
    env = gymnasium.make(name)
    mdp, reward = TabularMDP.from_gymnasium(env)
    table = env.unwrapped.P
    assert mdp.is_sparse and mdp.num_states == len(table) + 1
    assert mdp.terminal.sum() == 1 and mdp.labels[-1] == "terminal"
    q = ggpi.q_star(mdp, reward, 0.9)
    np.testing.assert_allclose(q[:-1], dictionary_q(table, 0.9, sweeps=250), atol=1e-6)
    assert (q[-1] == 0).all()


def test_an_environment_without_a_dictionary():
    with pytest.raises(TypeError, match="no transition dictionary"):
        TabularMDP.from_gymnasium(gymnasium.make("CartPole-v1"))


def test_steps_follow_the_kernel():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), (4, 2))
    x, a = (part.ravel() for part in np.indices((4, 2)))
    for mdp in (TabularMDP(P), TabularMDP(scipy.sparse.csr_array(P.reshape(8, 4)))):
        drawn = np.stack([mdp.step(x, a, rng) for _ in range(4000)])
        counts = (drawn[..., None] == np.arange(4)).sum(axis=0)
        assert are_frequencies(counts, P.reshape(8, 4), comparisons=2 * 32)
