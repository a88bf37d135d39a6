"""Numbers of every type at the boundary: float64 inside, or an error that says what was expected."""

from decimal import Decimal
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import ggpi
from ggpi import GSP, TabularMDP, TabularPolicy, rewards
from ggpi.mdp.optimal import q_star
from ggpi.mdp.tabular import check_gamma
from ggpi.switching import beta_of, check_alpha, composition_weights
from ggpi.types import real, reals, whole

GAMMA = 0.75
MDP = TabularMDP(np.random.default_rng(0).dirichlet(np.ones(4), (4, 2)))
SPARSE = TabularMDP(scipy.sparse.csr_array(MDP.kernel))
R = np.random.default_rng(1).normal(size=4)
UNIFORM = TabularPolicy.uniform(MDP)
TYPES = [
    np.float32,
    np.float16,
    np.float64,
    np.longdouble,
    jnp.float32,
    jnp.bfloat16,
    np.array,
    jnp.array,
    Fraction,
]


@pytest.mark.parametrize("kind", TYPES)
def test_every_real_type_computes_in_double_precision(kind):
    """γ = ¾ and α = ½ are exact in each type, so every answer is that of Python floats, bit for bit."""
    gamma, alpha = kind(GAMMA), kind(0.5)
    assert type(check_gamma(gamma)) is type(check_alpha(alpha)) is float
    assert beta_of(gamma, alpha) == beta_of(GAMMA, 0.5)
    np.testing.assert_array_equal(composition_weights(gamma, [alpha]), composition_weights(GAMMA, [0.5]))
    for mdp in (MDP, SPARSE):
        np.testing.assert_array_equal(mdp.q(UNIFORM, R, gamma), mdp.q(UNIFORM, R, GAMMA))
        np.testing.assert_array_equal(q_star(mdp, R, gamma), q_star(mdp, R, GAMMA))
        ghms = ggpi.exact_ghms(mdp, [UNIFORM], gamma, alpha)
        assert type(ghms.gamma) is float
        assert ghms.alphas == (0.5,)
        q = ggpi.evaluate([GSP((0,))], ghms, R)
        assert q.array.dtype == np.float64
        np.testing.assert_array_equal(
            q[0], ggpi.evaluate([GSP((0,))], ggpi.exact_ghms(mdp, [UNIFORM], GAMMA, 0.5), R)[0]
        )


def test_a_single_precision_gamma_is_not_rounded_further():
    gamma = np.float32(0.9)
    expected = MDP.q(UNIFORM, R, float(gamma))
    np.testing.assert_array_equal(MDP.q(UNIFORM, R, gamma), expected)
    assert np.abs(expected - MDP.q(UNIFORM, R, 0.9)).max() > 1e-9


@pytest.mark.parametrize(
    "given", ["x", "0.5", 0.5 + 0j, np.complex64(0.5), None, [0.5], np.array([0.5]), {}, b"1", object()]
)
def test_what_is_no_real_number(given):
    for check in (check_gamma, check_alpha):
        with pytest.raises(TypeError, match="is one real number, got"):
            check(given)
    with pytest.raises((TypeError, ValueError), match="whole number, got"):
        whole(given, "n")


@pytest.mark.parametrize(
    "given", [np.nan, np.inf, -np.inf, -1e-300, 1.0, 2, True, Fraction(-1, 3), Decimal("NaN")]
)
def test_gammas_out_of_range(given):
    if isinstance(given, Decimal):
        with pytest.raises(TypeError, match="γ is one real number"):
            check_gamma(given)
    else:
        with pytest.raises(ValueError, match=r"γ lies in \[0, 1\), got"):
            check_gamma(given)


def test_gamma_close_to_one():
    """1 − γ = 2⁻⁴⁰ is the least: both solvers are right there within ε/(1−γ), and say no beyond."""
    gamma = 1 - 2.0**-40
    ring = np.roll(np.eye(4), 1, axis=1)[:, None, :]
    for P in (ring, scipy.sparse.csr_array(ring[:, 0])):
        mdp = TabularMDP(P)
        v = mdp.v(np.ones((4, 1)), np.ones(4), gamma)
        np.testing.assert_allclose(v, 2.0**40, rtol=1e-3)
        for closer in (np.nextafter(1, 0), 1 - 2.0**-41):
            with pytest.raises(ValueError, match=r"γ is at most 1 − 9\.1e-13.*got 1 − [14]"):
                mdp.v(np.ones((4, 1)), np.ones(4), closer)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([1j, 0]), "r: real numbers are expected, got .*dtype complex128"),
        (np.array(["a", "b"]), "r: real numbers are expected"),
        (np.array([None, 1.0]), "r: real numbers are expected"),
        (np.array([{}, 1.0]), "r: real numbers are expected"),
        (np.zeros(2, [("a", float)]), "r: real numbers are expected"),
        (np.zeros(2, "datetime64[s]"), "r: real numbers are expected"),
        ([[1.0], [1.0, 2.0]], "r cannot be read as an array"),
    ],
)
def test_arrays_that_are_not_real(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        reals(given, "r")


@pytest.mark.parametrize(
    "given", [[True, False], [1, 0], np.float32([1, 0]), jnp.bfloat16([1, 0]), [Fraction(1), 0]]
)
def test_arrays_that_are(given):
    array = reals(given, "r")
    assert array.dtype == np.float64
    assert array.tolist() == [1.0, 0.0]


def test_complex_parts_are_named():
    P = MDP.P.astype(complex)
    for given in (P, scipy.sparse.csr_array(P.reshape(8, 4))):
        with pytest.raises(TypeError, match=r"P: real numbers are expected, got .*complex128"):
            TabularMDP(given)
    for make in (rewards.state, rewards.arrival, ggpi.rewards.as_reward):
        with pytest.raises(TypeError, match="a reward: real numbers"):
            make(np.ones(4, complex))
    with pytest.raises(TypeError, match="policy π: real numbers"):
        TabularPolicy(np.full((4, 2), 0.5 + 0j))
    with pytest.raises(TypeError, match="policy: real numbers"):
        MDP.checked_policy(np.full((4, 2), 0.5 + 0j))
    with pytest.raises(TypeError, match="states are whole numbers"):
        MDP.step(np.zeros(1, complex), np.zeros(1, int), np.random.default_rng(0))
    with pytest.raises(TypeError, match="Q-values: real numbers"):
        ggpi.improve(np.ones((4, 2), complex))
    with pytest.raises(TypeError, match="terminal: real numbers"):
        TabularMDP(MDP.P, np.array(["a"] * 4))
    with pytest.raises(ValueError, match="terminal is true or false"):
        TabularMDP(MDP.P, np.full(4, 0.5))


def test_a_single_precision_kernel_is_renormalised():
    """Its rows sum to 1 within 1e-7 only; they are made to, in double precision."""
    P = MDP.P.astype(np.float32)
    for mdp in (TabularMDP(P), TabularMDP(scipy.sparse.csr_array(P.reshape(8, 4)))):
        assert mdp.P.dtype == np.float64
        np.testing.assert_allclose(np.asarray(mdp.kernel.sum(axis=1)).ravel(), 1.0, rtol=0, atol=4e-16)
    with pytest.raises(ValueError, match="rows are not probability distributions"):
        TabularMDP(MDP.P.astype(np.float16))


@pytest.mark.parametrize("given", [1.0, "1", None, 1j, [1]])
def test_counts_are_whole_numbers(given):
    with pytest.raises(TypeError, match="depth is a whole number, got"):
        whole(given, "depth")
    assert whole(np.int32(3), "depth") == 3
    with pytest.raises(ValueError, match="depth is at least 1, got 0"):
        whole(0, "depth")
    assert real(np.array(1), "x") == 1.0


def test_values_that_would_overflow():
    for mdp in (MDP, SPARSE):
        with pytest.raises(
            ValueError, match=r"rewards up to 1\.0e\+300 give values beyond .*multiply the rewards"
        ):
            mdp.v(UNIFORM, np.full(4, 1e300), 0.9)
        with pytest.raises(ValueError, match="give values beyond"):
            q_star(mdp, np.full(4, 1e300), 0.9)
        with pytest.raises(ValueError, match="give values beyond"):
            ggpi.evaluate([GSP((0,))], ggpi.exact_ghms(mdp, [UNIFORM], 0.9, 0.5), np.full(4, 1e300))
        np.testing.assert_allclose(mdp.v(UNIFORM, np.full(4, 1e298), 0.9), 1e299, rtol=1e-12)


def test_rewards_for_entering_what_is_never_entered():
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[1, 0, 2] = P[2, 0, 2] = 1.0
    for kernel in (P, scipy.sparse.csr_array(P[:, 0])):
        mdp = TabularMDP(kernel, [False, False, True])
        policy = TabularPolicy.uniform(mdp)
        for never in (np.inf, -np.inf, np.nan):
            reward = rewards.arrival([never, 2.0, 1.0])
            np.testing.assert_allclose(mdp.q(policy, reward, 0.5)[:, 0], [2.5, 1.0, 0.0])
            np.testing.assert_allclose(q_star(mdp, reward, 0.5)[:, 0], [2.5, 1.0, 0.0])
        for place in (1, 2):
            with pytest.raises(
                ValueError, match=f"can be entered are not finite, the first at index {place}"
            ):
                mdp.r(rewards.arrival(np.where(np.arange(3) == place, np.inf, 0.0)))
    with pytest.raises(ValueError, match="not finite"):
        rewards.state([np.inf, 0.0, 0.0])
