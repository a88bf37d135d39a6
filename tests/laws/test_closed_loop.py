"""The closed loop dominates every depth: Q^{π′} ≥ Q̄ ≥ max_ν Q^ν, and its values solve the augmented MDP."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import ggpi
from chance import error_of_mean
from ggpi import TabularMDP, compositions, evaluate, evaluate_closed_loop, exact_ghms, improve, rewards
from ggpi.improvement import improve_head
from ggpi.mdp import resolvent as solving
from ggpi.mdp.optimal import optimal_actions
from ggpi.planning.closed_loop_sampled import evaluate_closed_loop_sampled
from worlds import ALPHAS, bellman_q, bellman_q_star, worlds

alphas = st.sampled_from([*ALPHAS, 0.9])
forms = st.sampled_from(["state", "state_action", "arrival"])


def augmented(world, r, alpha):
    """U [K, S] by value iteration over states (x, k), where a switch may choose: shares no code with the library."""
    P_pi = np.einsum("kxa,xay->kxy", world.pis, world.P)
    r_pi = np.einsum("kxa,xa->kx", world.pis, r)
    u = np.zeros((len(world.pis), world.S))
    for _ in range(200_000):
        carried = (1 - alpha) * u + alpha * u.max(axis=0)
        following = r_pi + world.gamma * np.einsum("kxy,ky->kx", P_pi, carried)
        if np.abs(following - u).max() < 1e-13 * (1 - world.gamma):
            break
        u = following
    return u


def reward_of(world, form):
    table = world.r_action if form == "state_action" else world.r_state
    return rewards.Reward(form, table)


def leaving(world, form):
    """r(x, a) of a reward, 0 in terminal states."""
    r = {
        "state": np.repeat(world.r_state[:, None], world.A, axis=1),
        "state_action": world.r_action.copy(),
        "arrival": world.P @ world.r_state,
    }[form]
    r[world.mdp.terminal] = 0
    return r


def values(world, alpha, reward=None, pis=None):
    pis = world.pis if pis is None else pis
    reward = world.r_action if reward is None else reward
    return evaluate_closed_loop(exact_ghms(world.mdp, list(pis), world.gamma, alpha), reward)


@given(worlds(terminal=True), alphas, forms)
def test_equal_to_value_iteration_on_the_augmented_mdp(world, alpha, form):
    q = values(world, alpha, reward_of(world, form))
    r, u = leaving(world, form), augmented(world, leaving(world, form), alpha)
    np.testing.assert_allclose(q.v, u, atol=1e-8)
    carried = (1 - alpha) * u + alpha * u.max(axis=0)
    expected = r + world.gamma * np.einsum("xay,ky->kxa", world.P, carried)
    np.testing.assert_allclose(q.array, expected, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.15])
@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_worlds_that_turn_in_circles(alpha, gamma):
    """The eigenvalues of P lie on the whole unit circle: the hardest case for momentum."""
    size = 7
    P = np.stack([np.roll(np.eye(size), shift, axis=1) for shift in (1, -1, 3)], axis=1)
    world = SimpleNamespace(P=P, pis=np.eye(3)[:, None].repeat(size, axis=1), S=size, gamma=gamma)
    r = np.zeros((size, 3))
    r[0] = [1.0, -2.0, 0.5]
    mdp = TabularMDP(P)
    q = evaluate_closed_loop(exact_ghms(mdp, list(world.pis), gamma, alpha), r)
    np.testing.assert_allclose(q.v, augmented(world, r, alpha), atol=1e-11)


@given(worlds(), alphas)
def test_the_jump_form(world, alpha):
    """Q_k = r + γ/(1−β) E_μ[(1−α) r^{π_k} + α V], with μ at β."""
    q, gamma = values(world, alpha), world.gamma
    ghms = exact_ghms(world.mdp, list(world.pis), gamma, alpha)
    for k, pi in enumerate(world.pis):
        r_pi = (pi * world.r_action).sum(axis=1)
        inside = (1 - alpha) * r_pi + alpha * q.v.max(axis=0)
        jumped = ghms.segment(k, alpha).dense() @ inside
        scale = gamma / (1 - gamma * (1 - alpha))
        np.testing.assert_allclose(q[k], world.r_action + scale * jumped, atol=1e-9)


@given(worlds(), alphas, st.integers(1, 4))
def test_no_depth_promises_more(world, alpha, depth):
    """U_k ≥ V^ν and Q_k ≥ Q^ν for every ν with head k."""
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, alpha)
    closed, blind = values(world, alpha), evaluate(compositions(3, depth, alpha), ghms, world.r_action)
    for i, gsp in enumerate(blind.gsps):
        assert (closed[gsp.head] >= blind[i] - 1e-8).all()
        assert (closed.v[gsp.head] >= blind.v[i] - 1e-8).all()


@given(worlds(terminal=True), alphas, forms)
def test_the_improved_policy_keeps_the_promise(world, alpha, form):
    q = values(world, alpha, reward_of(world, form))
    improved = bellman_q(world.P, improve(q).pi, leaving(world, form), world.gamma)
    assert (improved >= q.array.max(axis=0) - 1e-8).all()


@given(worlds(), alphas)
def test_the_head_rule_keeps_its_promise_too(world, alpha):
    """Acting in x as the policy of the largest U_k(x): V ≥ max_k U_k."""
    q = values(world, alpha)
    pi = improve_head(q).pi
    v = (pi * bellman_q(world.P, pi, world.r_action, world.gamma)).sum(axis=1)
    assert (v >= q.v.max(axis=0) - 1e-8).all()


@given(worlds(), alphas)
def test_promises_rise_with_the_set(world, alpha):
    fewer, more = (values(world, alpha, pis=world.pis[:count]).array for count in (2, 3))
    assert (more[:2] >= fewer - 1e-8).all()


@given(worlds(max_states=4), alphas)
def test_equality_everywhere_means_optimal(world, alpha):
    """Q^{π′} = Q̄ if and only if Q̄ = Q*; adding π′ again and again ends there."""
    optimal, pis = bellman_q_star(world.P, world.r_action, world.gamma), list(world.pis)
    gap, promised = np.inf, optimal
    for _ in range(20):
        q = values(world, alpha, pis=pis)
        promised, improved = q.array.max(axis=0), improve(q).pi
        now = bellman_q(world.P, improved, world.r_action, world.gamma)
        gap, distance = np.abs(now - promised).max(), np.abs(optimal - promised).max()
        # T^{π′}Q̄ = TQ̄ ≥ Q̄: a distance of d from Q* means a gap of at least (1−γ)d.
        assert gap >= (1 - world.gamma) * distance - 1e-8
        assert gap <= distance + 1e-8, "Q^{π′} lies between Q̄ and Q*"
        if gap < 1e-10:
            break
        pis.append(improved)
    assert gap < 1e-10
    np.testing.assert_allclose(promised, optimal, atol=1e-6)


@given(worlds(), forms)
def test_a_choice_after_every_step_among_all_actions_is_optimal_control(world, form):
    constant = [np.eye(world.A)[np.full(world.S, a)] for a in range(world.A)]
    q = values(world, 1.0, reward_of(world, form), pis=constant)
    r = leaving(world, form)
    v = np.zeros(world.S)
    for _ in range(5000):
        v = (r + world.gamma * world.P @ v).max(axis=1)
    np.testing.assert_allclose(q.array.max(axis=0), r + world.gamma * world.P @ v, atol=1e-7)
    np.testing.assert_allclose(q.v.max(axis=0), v, atol=1e-7)


@given(worlds(terminal=True), alphas, st.sampled_from(["direct", "krylov"]))
def test_sparse_worlds_agree(world, alpha, solver):
    with pytest.MonkeyPatch.context() as patch:
        if solver == "krylov":
            patch.setattr(solving, "DIRECT_LIMIT", 0)
            patch.setattr(solving, "NARROW", 0.0)
        P = scipy.sparse.csr_array(world.P.reshape(-1, world.S))
        mdp = TabularMDP(P, world.mdp.terminal)
        ghms = exact_ghms(mdp, list(world.pis), world.gamma, alpha)
        q = evaluate_closed_loop(ghms, world.r_action)
    np.testing.assert_allclose(q.array, values(world, alpha).array, atol=1e-7)


@given(worlds(), alphas)
def test_policy_iteration_at_infinite_depth_ends_at_an_optimum(world, alpha):
    found = ggpi.policy_iteration(
        world.mdp, world.r_action, world.gamma, alpha, depth="inf", start=world.pis[1]
    )
    assert found.stopped == "stable" and found.ghm_samples == 0
    q = bellman_q(world.P, found.policy.pi, world.r_action, world.gamma)
    np.testing.assert_allclose(q, ggpi.q_star(world.mdp, world.r_action, world.gamma), atol=1e-6)


def corridor(length):
    """Left, right; the only reward is at the right end, hundreds of steps away."""
    following = np.clip(np.arange(length)[:, None] + [-1, 1], 0, length - 1)
    P = scipy.sparse.csr_array((np.ones(2 * length), (np.arange(2 * length), following.ravel())))
    policies = [np.eye(2)[np.full(length, a)] for a in (0, 1)]
    half = np.eye(2)[(np.arange(length) % 2)]
    return TabularMDP(P), [*policies, half], np.eye(length)[-1]


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_small_values_are_exact_relative_to_themselves(alpha):
    """γ^300 ≈ 1e-14 of the largest value: going right is still seen to be best, in every cell."""
    mdp, policies, reward = corridor(300)
    q = evaluate_closed_loop(exact_ghms(mdp, policies, 0.9, alpha), reward)
    exact = 10 * 0.9 ** np.arange(299, -1, -1.0)
    np.testing.assert_allclose(q.v.max(axis=0), exact, rtol=1e-11)
    assert (improve(q).pi[:-1] == [0, 1]).all()


def test_a_policy_more_may_lower_what_the_improved_policy_gets():
    mdp, reward, policies = ggpi.envs.more_is_worse()
    gamma, promised, v = 0.8, [], []
    for count in (1, 2):
        q = evaluate_closed_loop(exact_ghms(mdp, policies[:count], gamma, 0.5), reward)
        best = np.sort(q.array.max(axis=0), axis=1)
        assert (best[:, -1] - best[:, -2] > 0.1).all(), "no ties are involved"
        promised.append(q.array.max(axis=0))
        v.append(mdp.v(improve(q), reward, gamma))
        assert (mdp.q(improve(q), reward, gamma) >= promised[-1] - 1e-12).all()
    np.testing.assert_allclose(promised[0], [[-10, -8, -5], [-6.4, -6, -8]])
    np.testing.assert_allclose(promised[1], [[-10, -8, -5], [0, -6, -8]], atol=1e-12)
    np.testing.assert_allclose(v, [[15, 14], [15, 0]], atol=1e-12)


def assert_sampled_is_near_exact(ghms, alpha, reward, n=20_000):
    """The sampled backup T̂ contracts by c, too: |V̂ − V| ≤ c |V̂ − V| + |T̂V − TV|, whatever the maximum chooses.

    One backup of the exact V errs at every pair, for every policy, by no more than Bernstein's inequality says.
    """
    gamma, gone, pis = ghms.gamma, ghms.mdp.terminal, [np.asarray(policy) for policy in ghms.policies]
    exact, beta = evaluate_closed_loop(ghms, reward), gamma * (1 - alpha)
    c, errors = gamma * alpha / (1 - beta), []
    for k, pi in enumerate(pis):
        if reward.form == "arrival":
            ends = reward.table * np.where(gone, 1, 1 / (1 - beta))
        else:
            r = np.where(gone, 0, (pi * reward.table.reshape(len(pi), -1)).sum(axis=1))
            ends = gamma * (1 - alpha) / (1 - beta) * r
        jump = ends + c * np.where(gone, 0, exact.v.max(axis=0))
        mu = ghms.segment(k, alpha).dense()
        deviation = np.sqrt(np.maximum(mu @ jump**2 - (mu @ jump) ** 2, 0)).max()
        errors.append(error_of_mean(deviation, n, np.ptp(jump), comparisons=exact.array.size * 9))
    sampled = evaluate_closed_loop_sampled(ghms, reward, num_samples=n, key=jax.random.key(0))
    allowed = max(errors) / (1 - c) + 1e-4 * (1 + np.abs(exact.array).max())
    np.testing.assert_allclose(sampled.array, exact.array, atol=allowed)
    return allowed, exact


@settings(max_examples=9)
@given(worlds(terminal=True, size=(4, 2)), st.sampled_from([0.2, 0.5, 1.0]), forms)
def test_sampled_values_are_near_the_exact_ones(world, alpha, form):
    ghms = exact_ghms(world.mdp, list(world.pis), world.gamma, alpha)
    assert_sampled_is_near_exact(ghms, alpha, reward_of(world, form))


def test_sampled_values_of_policies_that_differ():
    """Left and right in a corridor: the bound tells the jumps of one policy from those of the other."""
    mdp, policies, reward = corridor(5)
    allowed, exact = assert_sampled_is_near_exact(
        exact_ghms(mdp, policies, 0.9, 0.3), 0.3, rewards.arrival(reward)
    )
    assert np.abs(exact[0] - exact[1]).max() > 3 * allowed


@pytest.mark.parametrize("form", ["state", "state_action", "arrival"])
@pytest.mark.parametrize("terminal", [False, True])
def test_sampled_values_are_exact_where_nothing_is_random(form, terminal):
    """State 0 leads to state 1, which is never left: every jump ends there."""
    P = np.zeros((2, 2, 2))
    P[..., 1] = 1
    mdp, table = TabularMDP(P, [False, terminal]), np.array([[0.3, 0.7], [0.5, 0.2]])
    reward = rewards.Reward(form, table if form == "state_action" else table[:, 0])
    policies = [np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([[0.2, 0.8], [0.6, 0.4]])]
    ghms = exact_ghms(mdp, policies, 0.9, 0.3)
    sampled = evaluate_closed_loop_sampled(ghms, reward, num_samples=3, key=jax.random.key(0))
    np.testing.assert_allclose(sampled.array, evaluate_closed_loop(ghms, reward).array, rtol=1e-6)


def test_sampled_policy_iteration_reaches_the_optimum():
    """A corridor of five cells: with 200 jumps per pair the values of left and right differ by far more than noise."""
    mdp, _, reward = corridor(5)
    found = ggpi.policy_iteration_sampled(
        mdp,
        reward,
        0.9,
        0.3,
        depth="inf",
        num_samples=200,
        max_iterations=20,
        key=jax.random.key(0),
        optimal=optimal_actions(ggpi.q_star(mdp, reward, 0.9)),
    )
    assert found.stopped == "optimal"
    assert found.ghm_samples == found.ghm_draws == sum(range(1, found.iterations + 1)) * 10 * 200
