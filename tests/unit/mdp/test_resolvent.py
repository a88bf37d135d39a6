"""(I − βP)⁻¹ by every method, on graphs that suit it and on graphs that do not."""

import numpy as np
import pytest
import scipy.sparse

from ggpi.mdp.resolvent import _bandwidth, _Dense, _Krylov, _SparseDirect, resolvent

RNG = np.random.default_rng(0)


def random_graph(num_states, degree):
    columns = RNG.integers(0, num_states, num_states * degree)
    starts = np.arange(0, num_states * degree + 1, degree)
    P = scipy.sparse.csr_array((np.full(len(columns), 1 / degree), columns, starts), shape=(num_states,) * 2)
    P.sum_duplicates()
    return P


def ring(num_states):
    return scipy.sparse.csr_array(np.roll(np.eye(num_states), 1, axis=1))


@pytest.mark.parametrize("method", [_SparseDirect, _Krylov])
@pytest.mark.parametrize("P", [random_graph(80, 3), ring(80)], ids=["random", "ring"])
@pytest.mark.parametrize("beta", [0.0, 0.5, 0.99, 0.9999])
def test_every_method_solves_the_system(method, P, beta):
    f = RNG.normal(size=(80, 2))
    v = _Dense(P.toarray(), beta).solve(f)
    np.testing.assert_allclose(v - beta * (P @ v), f, atol=1e-9)
    np.testing.assert_allclose(method(P, beta).solve(f), v, atol=1e-8 / (1 - beta) ** 0.5)


def test_krylov_takes_a_guess_and_zeros():
    P = random_graph(50, 3)
    f = RNG.normal(size=50)
    v = _Krylov(P, 0.9).solve(f)
    np.testing.assert_array_equal(_Krylov(P, 0.9).solve(f, guess=v), v)
    np.testing.assert_array_equal(_Krylov(P, 0.9).solve(0 * f, guess=v), 0.0)
    other = np.nextafter(v, np.inf)
    np.testing.assert_array_equal(_Krylov(P, 0.9).solve(f, guess=other), other)


def test_wide_graphs_are_not_factorised():
    assert isinstance(resolvent(random_graph(5_000, 4), 0.9), _Krylov)
    assert isinstance(resolvent(random_graph(500, 4), 0.9), _SparseDirect)
    chain = scipy.sparse.diags_array([np.ones(4_999), [1.0]], offsets=[1, -4_999], shape=(5_000, 5_000))
    assert isinstance(resolvent(chain.tocsr(), 0.9), _SparseDirect)


def test_bandwidth_does_not_depend_on_the_numbering():
    order = RNG.permutation(400)
    assert _bandwidth(ring(400)[order][:, order]) <= 2
