"""Planners against exact values: unbiased returns, counted draws, prefix bounds, certificates; jit, vmap and scan."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import ggpi
from chance import FAILURE, error_of_estimate, error_of_mean
from ggpi import planning, rewards
from ggpi.planning import BranchAndBound, Exhaustive, SequentialHalving, all_plans
from ggpi.planning.chains import problem_of, returns
from ggpi.planning.plans import plans_of
from ggpi.planning.search import moments

GAMMA, ALPHA, STATES = 0.9, 0.3, 6
KEY = jax.random.key(0)


def world(seed=0, num_policies=3, terminal=False, alphas=ALPHA):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(STATES, 0.3), (STATES, 2))
    flags = np.zeros(STATES, bool)
    if terminal:
        P[-1], flags[-1] = np.eye(STATES)[-1], True
    mdp = ggpi.TabularMDP(P, flags)
    policies = list(rng.dirichlet(np.full(2, 0.5), (num_policies, STATES)))
    return mdp, ggpi.exact_ghms(mdp, policies, GAMMA, alphas), rng


def reward_of(form, rng):
    return rewards.Reward(form, rng.random((STATES, 2) if form == "state_action" else STATES))


@pytest.mark.parametrize("alphas", [ALPHA, (0.2, 0.6)])
@pytest.mark.parametrize("form", ["state", "state_action", "arrival"])
def test_means_are_the_exact_values(form, alphas):
    """All forms of rewards, with terminals and with unequal α: Bernstein with the range of returns, 1/(1−γ)."""
    _, ghms, rng = world(terminal=True, alphas=alphas)
    reward, gsps = reward_of(form, rng), ggpi.compositions(3, 3, alphas)
    exact = ggpi.evaluate(gsps, ghms, reward).v
    n, width = 20_000, 1 / (1 - GAMMA)
    found = planning.plan(Exhaustive(gsps, num_samples=n), ghms, reward, 0, key=jax.random.key(3))
    bound = error_of_mean(width / 2, n, width, comparisons=6 * len(gsps))
    np.testing.assert_allclose(found.mean, exact[:, 0], atol=bound + 1e-4)
    assert found.best == np.argmax(found.mean) and found.head == gsps[int(found.best)].head


@pytest.mark.slow
def test_moments_are_sums_over_the_returns():
    """Of rewards of both signs, so that the positive part is neither everything nor nothing."""
    _, ghms, rng = world()
    reward = rewards.state(rng.normal(size=STATES))
    problem = problem_of(
        plans_of(ggpi.compositions(3, 2, ALPHA)),
        ghms.sampler(),
        ggpi.rewards.as_reward(reward),
        jnp.asarray(0),
    )
    rows = jnp.arange(len(problem.plans))
    g = np.asarray(returns(problem, rows, 2, 50, key=KEY), float)
    found = moments(problem, rows, 2, 50, key=KEY)
    assert (g < 0).any() and (g > 0).any()
    np.testing.assert_allclose(found.total, g.sum(axis=1), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.positive, np.maximum(g, 0).sum(axis=1), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.square, (g**2).sum(axis=1), rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_nothing_is_earned_in_a_terminal_state():
    _, ghms, rng = world(terminal=True)
    gsps = ggpi.compositions(3, 2, ALPHA)
    for form in ("state", "state_action", "arrival"):
        planner = Exhaustive(gsps, num_samples=3)
        found = planning.plan(planner, ghms, reward_of(form, rng), STATES - 1, key=jax.random.key(0))
        assert (np.asarray(found.mean) == 0).all() and found.value == 0


@pytest.mark.slow
def test_plans_with_a_common_prefix_share_its_samples():
    """Plans that differ after the first segment have equal G of it, sample by sample; common noise is shared too."""
    _, ghms, rng = world()
    plans = plans_of(ggpi.compositions(3, 2, ALPHA))
    problem = problem_of(plans, ghms.sampler(), reward_of("arrival", rng), 0)
    rows = jnp.arange(len(plans))
    first = np.asarray(returns(problem, rows, 1, 50, key=jax.random.key(0)))
    heads = np.asarray(plans.policies)[:, 0]
    for k in range(3):
        assert (first[heads == k] == first[heads == k][0]).all()
    alone = returns(problem, jnp.array([4]), 2, 50, key=jax.random.key(0))
    together = returns(problem, rows, 2, 50, key=jax.random.key(0))
    np.testing.assert_array_equal(alone[0], together[4])


@pytest.mark.parametrize(
    "form", ["arrival", *(pytest.param(form, marks=pytest.mark.slow) for form in ("state", "state_action"))]
)
def test_every_completion_lies_within_the_bounds_of_its_prefix(form):
    """E[G_j] + rest_j·[lo, hi] holds V of every plan below, and the weights of a plan sum to 1/(1−γ)."""
    _, ghms, rng = world(5)
    reward, gsps = reward_of(form, rng), ggpi.compositions(3, 3, ALPHA)
    plans = plans_of(gsps)
    problem = problem_of(plans, ghms.sampler(), reward, 0)
    rows = jnp.arange(len(plans))
    start, end, rest = map(np.asarray, problem.weights(rows))
    np.testing.assert_allclose((start + end).sum(axis=1), 1 / (1 - GAMMA), rtol=1e-5)
    v = ggpi.evaluate(gsps, ghms, reward).v[:, 0][np.asarray(plans.place)]
    n, lo, hi = 4000, reward.table.min(), reward.table.max()
    noise = error_of_mean((hi - lo) / (1 - GAMMA) / 2, n, (hi - lo) / (1 - GAMMA), comparisons=3 * 27 * 3)
    for level in (1, 2, 3):
        g = np.asarray(returns(problem, rows, level, n, key=jax.random.key(level))).mean(axis=1)
        assert (v <= g + rest[:, level - 1] * hi + noise).all()
        assert (v >= g + rest[:, level - 1] * lo - noise).all()
    ratio = (1 - GAMMA) / (1 - GAMMA * (1 - ALPHA))
    if form == "arrival":
        np.testing.assert_allclose(rest[:, 0], (1 - ratio) / (1 - GAMMA), rtol=1e-5)


@pytest.mark.slow
def test_draws_are_counted_over_distinct_prefixes():
    _, ghms, rng = world()
    gsps, reward = ggpi.compositions(3, 3, ALPHA), reward_of("arrival", rng)
    nodes = 3 + 9 + 27
    found = planning.plan(Exhaustive(gsps, 7, value_samples=5), ghms, reward, 0, key=jax.random.key(0))
    assert found.draws == 7 * nodes + 5 * 3
    halving = SequentialHalving(2000, gsps, value_samples=10)
    found = planning.plan(halving, ghms, reward, 0, key=jax.random.key(0))
    assert found.survivors.tolist() == [14, 7, 4, 2, 1]
    samples = halving.samples(plans_of(gsps), False)
    assert samples[0] == (2000 - 30) // 5 // nodes
    least = samples[0] * nodes + sum(n * (3 + k - 1) for n, k in zip(samples[1:], (14, 7, 4, 2), strict=True))
    assert least <= found.draws - 30 <= 2000 - 30
    assert sorted(set(np.asarray(found.samples).tolist())) == np.cumsum(samples).tolist()


@pytest.mark.slow
def test_the_reported_value_is_unbiased():
    """The mean of reported values of many decisions is V of the chosen plans; the search's own maximum is above it."""
    _, ghms, rng = world(1)
    gsps, reward = ggpi.compositions(3, 2, ALPHA), reward_of("arrival", rng)
    exact = ggpi.evaluate(gsps, ghms, reward).v[:, 0]
    planner = SequentialHalving(260, gsps, value_samples=8)
    keys = jax.random.split(jax.random.key(2), 4000)
    found = jax.jit(jax.vmap(lambda key: planning.plan(planner, ghms, reward, 0, key=key)))(keys)
    apart = np.asarray(found.value) - exact[np.asarray(found.best)]
    width = 1 / (1 - GAMMA)
    assert abs(apart.mean()) <= error_of_mean(width / 2 / np.sqrt(8), len(keys), width, comparisons=1)
    searched = np.asarray(found.mean)[np.arange(len(keys)), np.asarray(found.best)]
    assert np.mean(np.asarray(found.value) == searched) < 0.5, "samples of the search were used again"
    own = np.asarray(found.mean).max(axis=1)
    assert own.mean() - exact.max() > 0


@pytest.mark.parametrize(
    "name",
    [
        "Exhaustive",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("SequentialHalving", "BranchAndBound")),
    ],
)
def test_jit_vmap_and_scan(name):
    _, ghms, rng = world()
    gsps, reward = ggpi.compositions(3, 2, ALPHA), reward_of("arrival", rng)
    planner = {
        "Exhaustive": Exhaustive(gsps, 8),
        "SequentialHalving": SequentialHalving(400, gsps),
        "BranchAndBound": BranchAndBound(2000, gsps=gsps, batch=4),
    }[name]

    def decide(state, key):
        return planning.plan(planner, ghms, reward, state, key=key)

    keys = jax.random.split(jax.random.key(0), 3)
    compiled = jax.jit(decide)
    single = [compiled(x, key) for x, key in enumerate(keys)]
    batch = jax.jit(jax.vmap(decide))(jnp.arange(3), keys)
    _, scanned = jax.jit(lambda: jax.lax.scan(lambda x, key: (x + 1, decide(x, key)), 0, keys))()
    for i, one in enumerate(single):
        for field, value in one._asdict().items():
            for other in (batch, scanned) if value is not None else ():
                np.testing.assert_allclose(
                    getattr(other, field)[i], value, rtol=1e-4, atol=1e-4, err_msg=field
                )


@pytest.mark.slow
def test_certified_gaps_are_right():
    """The true gap exceeds the certified one in at most δ of all runs: binomial tail at δ for 200 runs."""
    _, ghms, _ = world(2)
    gsps, delta = ggpi.compositions(3, 2, ALPHA), 0.2
    reward = rewards.arrival(np.eye(STATES)[0])
    exact = ggpi.evaluate(gsps, ghms, reward).v[:, 0]
    planner = BranchAndBound(60_000, delta=delta, epsilon=0.02, gsps=gsps)
    keys = jax.random.split(jax.random.key(1), 200)
    found = jax.jit(jax.vmap(lambda key: planning.plan(planner, ghms, reward, 0, key=key)))(keys)
    wrong = exact.max() - exact[np.asarray(found.best)] > np.asarray(found.gap) + 1e-6
    assert stats.binom.sf(wrong.sum() - 1, len(keys), delta) > FAILURE
    assert (np.asarray(found.draws) <= 60_000).all()
    survivors = np.asarray(found.survivors)
    assert (np.diff(survivors, axis=1) <= 0).all() and (survivors[:, -1] < len(gsps)).any()


@pytest.mark.slow
def test_an_easy_choice_is_certified_early():
    """One policy reaches the reward at once, the other never: few draws and a gap of 0."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 1] = P[2, :, 2] = 1
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), [np.eye(2)[[a] * 3] for a in (0, 1)], 0.9, 0.5)
    gsps = ggpi.compositions(2, 2, 0.5)
    planner = BranchAndBound(20_000, gsps=gsps)
    reward = rewards.arrival([0.0, 1.0, 0.0])
    halved = planning.plan(SequentialHalving(400, gsps), ghms, reward, 0, key=jax.random.key(0))
    assert halved.head == 0
    found = planning.plan(planner, ghms, reward, 0, key=jax.random.key(0))
    assert found.head == 0 and found.gap <= 0.05 * 10 and found.draws < 15_000
    assert found.survivors[-1] == 2, "both plans with this head are equally good"
    np.testing.assert_allclose([found.value, found.stderr], [10, 0], atol=1e-3)


@pytest.mark.slow
def test_a_warm_start_keeps_what_survived():
    _, ghms, rng = world()
    gsps, reward = ggpi.compositions(3, 3, ALPHA), reward_of("arrival", rng)
    planner = SequentialHalving(4000, gsps)
    cold = planning.plan(planner, ghms, reward, 0, key=jax.random.key(0))
    warm = planning.plan(planner, ghms, reward, 0, warm=cold, key=jax.random.key(1))
    assert warm.survivors.tolist() == [4, 2, 1]
    assert (np.asarray(warm.samples) > 0).sum() == 7
    kept = np.asarray(warm.samples) > 0
    assert np.asarray(cold.samples)[kept].min() >= np.asarray(cold.samples)[~kept].max()


@pytest.mark.slow
def test_memory_counts_samples_of_the_last_decision():
    """Means are over new samples and a share of the old ones; the new ones are those of a decision without memory."""
    _, ghms, rng = world()
    gsps, reward = ggpi.compositions(3, 2, ALPHA), reward_of("arrival", rng)
    fresh, memory = SequentialHalving(500, gsps), SequentialHalving(500, gsps, memory=0.5)
    last = planning.plan(fresh, ghms, reward, 0, key=jax.random.key(0))
    cold = planning.plan(fresh, ghms, reward, 0, key=jax.random.key(1))
    warm = planning.plan(memory, ghms, reward, 0, warm=last, key=jax.random.key(1))
    assert warm.survivors.tolist() == cold.survivors.tolist()
    kept = np.floor(0.5 * np.asarray(last.samples))
    new = np.asarray(warm.samples) - kept
    assert set(new.tolist()) == set(np.asarray(cold.samples).tolist())
    first = np.asarray(cold.samples).min()
    both = (new == first) & (np.asarray(cold.samples) == first)
    assert both.any()
    expected = (kept * np.asarray(last.mean) + first * np.asarray(cold.mean)) / (kept + first)
    np.testing.assert_allclose(np.asarray(warm.mean)[both], expected[both], rtol=1e-5)


def test_the_smallest_budget_samples_every_survivor_once():
    _, ghms, rng = world()
    gsps, reward = ggpi.compositions(3, 2, ALPHA), reward_of("arrival", rng)
    plans = plans_of(gsps)
    nodes = [3 + 9, 3 + 5, 3 + 3, 2 + 2]
    halving = SequentialHalving(sum(nodes) + 2, gsps, value_samples=1)
    assert halving.least(plans) == halving.budget and halving.samples(plans, False) == [1, 1, 1, 1]
    found = planning.plan(halving, ghms, reward, 0, key=jax.random.key(0))
    assert found.draws <= halving.budget
    assert dataclasses.replace(halving, factor=4).survivors(plans, False) == [9, 3]
    for budget in (50, 77, 500, 5001):
        samples = dataclasses.replace(halving, budget=budget).samples(plans, False)
        spent = np.dot(samples, nodes)
        assert budget - 2 - sum(nodes) < spent <= budget - 2


def test_sets_as_arrays_are_those_of_objects():
    _, ghms, rng = world()
    reward = reward_of("arrival", rng)
    one, other = all_plans(3, 3, ALPHA), plans_of(ggpi.compositions(3, 3, ALPHA))
    np.testing.assert_array_equal(one.policies, other.policies)
    np.testing.assert_array_equal(one.prefix, other.prefix)
    assert one.sizes == other.sizes == (3, 9, 27)
    rows = [tuple(row) for row in np.asarray(one.policies).tolist()]
    assert rows == list(itertools.product(range(3), repeat=3))
    found = planning.plan(Exhaustive(one, 3), ghms, reward, 0, key=jax.random.key(0))
    assert found.mean.shape == (27,)


@pytest.mark.slow
def test_halving_finds_the_best():
    _, ghms, rng = world(3)
    gsps, reward = ggpi.compositions(3, 3, ALPHA), reward_of("arrival", rng)
    found = planning.plan(SequentialHalving(200_000, gsps), ghms, reward, 0, key=jax.random.key(0))
    exact = ggpi.evaluate(gsps, ghms, reward).v[:, 0]
    n = int(found.samples[int(found.best)])
    noise = error_of_estimate(1 / (1 - GAMMA) / np.sqrt(n), n, 1 / (1 - GAMMA), comparisons=27)
    assert exact.max() - exact[int(found.best)] <= 4 * noise


def test_bad_settings_say_what_is_wrong():
    _, ghms, rng = world()
    gsps, reward = ggpi.compositions(3, 2, ALPHA), reward_of("arrival", rng)

    def planned(planner, what=reward):
        return planning.plan(planner, ghms, what, 0, key=jax.random.key(0))

    with pytest.raises(ValueError, match="budget of at least"):
        planned(SequentialHalving(20, gsps))
    with pytest.raises(ValueError, match="budget of at least"):
        planned(BranchAndBound(50, gsps=gsps))
    for name, value in itertools.product(("delta", "epsilon"), (0.0, 1.0, -1.0, float("nan"))):
        with pytest.raises(ValueError, match=rf"{name} lies in \(0, 1\)"):
            planned(dataclasses.replace(BranchAndBound(5000, gsps=gsps), **{name: value}))
    with pytest.raises(ValueError, match="factor is at least 2"):
        planned(SequentialHalving(5000, gsps, factor=1))
    for memory in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="memory lies in"):
            planned(SequentialHalving(5000, gsps, memory=memory))
    with pytest.raises(ValueError, match="SequentialHalving"):
        planned(BranchAndBound(5000, gsps=gsps), rewards.arrival(lambda x: x * 1.0))
    with pytest.raises(ValueError, match="no set of switching policies"):
        planned(Exhaustive())
    with pytest.raises(ValueError, match="none for α"):
        planned(Exhaustive(ggpi.compositions(3, 2, 0.77)))
    with pytest.raises(ValueError, match="num_samples is at least 1"):
        planned(Exhaustive(gsps, num_samples=0))
