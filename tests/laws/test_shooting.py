"""Plans that are drawn, against exact values: unbiased returns, unequal α's, first actions, suffixes, the best plan."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from chance import are_frequencies, error_of_estimate, error_of_mean
from ggpi import planning, rewards
from ggpi.planning import BeamSearch, CrossEntropy, Exhaustive, RandomShooting
from ggpi.planning.cross_entropy import fitted
from ggpi.planning.planning import posed
from ggpi.planning.sequences import Sequences, sequence_returns
from ggpi.planning.shooting import tried
from ggpi.switching import GSP, gsp_set, missing_suffixes
from worlds import bellman_q_gsp

GAMMA, ALPHAS, STATES, POLICIES = 0.9, (0.2, 0.6, 1.0), 6, 3
WIDTH = 1 / (1 - GAMMA)
KEY = jax.random.key(0)


def world(alphas=ALPHAS, terminal=False):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(STATES, 0.3), (STATES, 2))
    flags = np.zeros(STATES, bool)
    if terminal:
        P[-1], flags[-1] = np.eye(STATES)[-1], True
    pis = rng.dirichlet(np.full(2, 0.5), (POLICIES, STATES))
    return ggpi.exact_ghms(ggpi.TabularMDP(P, flags), list(pis), GAMMA, alphas), pis, rng


def reward_of(form, rng):
    return rewards.Reward(form, rng.random((STATES, 2) if form == "state_action" else STATES))


def gsps_of(plans, alphas):
    """Rows as objects: NumPy's nearest α's, GSP's own rule for repeats."""
    exact = np.array(alphas)[np.abs(np.asarray(plans.alphas)[..., None] - np.array(alphas)).argmin(-1)]
    rows = zip(np.asarray(plans.policies).tolist(), exact.tolist(), strict=True)
    return [GSP(tuple(policies), tuple(switches)) for policies, switches in rows]


def decided(planner, ghms, reward, key=KEY):
    """One compiled decision in state 0."""
    return jax.jit(lambda key: planning.plan(planner, ghms, reward, 0, key=key))(key)


def sampled(problem, plans, n, key=KEY):
    """Returns [N, n], compiled."""
    return np.asarray(jax.jit(lambda plans, key: sequence_returns(problem, plans, n, key=key))(plans, key))


def problem_of(planner, ghms, reward, state=0):
    return posed(planner, ghms, rewards.as_reward(reward), state)


@pytest.mark.parametrize("form", ["state", "state_action", "arrival"])
def test_means_are_the_exact_values(form):
    """Random plans with an α of their own at each switch, with terminals: Bernstein with the range of returns."""
    ghms, _, rng = world(terminal=True)
    reward, n = reward_of(form, rng), 20_000
    problem = problem_of(RandomShooting(depth=3), ghms, reward)
    plans = problem.choices.draw(24, key=KEY)
    gsps = gsps_of(plans, ALPHAS)
    assert len({gsp.alphas for gsp in gsps}) > 5
    found = sampled(problem, plans, n).mean(axis=1)
    exact = ggpi.evaluate(ggpi.suffix_closure(gsps), ghms, reward)
    v = dict(zip(exact.gsps, exact.v[:, 0], strict=True))
    bound = error_of_mean(WIDTH / 2, n, WIDTH, comparisons=3 * len(gsps))
    np.testing.assert_allclose(found, [v[gsp] for gsp in gsps], atol=bound + 1e-4)


def test_first_actions_have_the_exact_q():
    """Q of the GSP's own Bellman equation, for every action that was tried; equal heads try equal actions.

    Actions matter more than in a random world, so that those of a wrong segment would be seen: each leads to its state.
    """
    P, pis = np.stack([np.eye(2)] * 2), [np.tile([p, 1 - p], (2, 1)) for p in (0.9, 0.5, 0.1)]
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), pis, GAMMA, ALPHAS)
    reward, n = rewards.state_action(np.array([[0.0, 0.4], [0.6, 1.0]])), 20_000
    problem = problem_of(RandomShooting(depth=2), ghms, reward)
    plans = tried(problem, problem.choices.draw(12, key=KEY), 8, key=jax.random.key(2))
    actions, heads = np.asarray(plans.first), np.asarray(plans.policies)[:, 0]
    assert actions.shape == (96,) and set(actions.tolist()) == {0, 1}
    for k in set(heads.tolist()):
        assert len(np.unique(actions.reshape(12, 8)[heads[::8] == k], axis=0)) == 1
    found = sampled(problem, plans, n)
    gsps = gsps_of(plans, ALPHAS)
    tables = {gsp: bellman_q_gsp(ghms.mdp.P, pis, gsp, reward.table, GAMMA) for gsp in set(gsps)}
    exact = [tables[gsp][0, a] for gsp, a in zip(gsps, actions, strict=True)]
    assert np.ptp(exact) > 0.3
    bound = error_of_estimate(found.std(axis=1) / np.sqrt(n), n, WIDTH, comparisons=96)
    assert (np.abs(found.mean(axis=1) - exact) <= bound + 1e-4).all()


def test_plans_share_their_random_numbers_and_large_batches_are_split(monkeypatch):
    """Samples of a plan do not depend on what is sampled beside it, nor on how much fits into memory."""
    ghms, _, rng = world()
    problem = problem_of(RandomShooting(depth=2), ghms, reward_of("arrival", rng))
    plans = problem.choices.draw(7, key=KEY)
    whole = sampled(problem, plans, 5)
    np.testing.assert_allclose(sampled(problem, plans.at(jnp.array([4])), 5)[0], whole[4], rtol=1e-5)
    monkeypatch.setattr("ggpi.planning.sequences.width_of", lambda *_: 3)
    np.testing.assert_allclose(sampled(problem, plans, 5), whole, rtol=1e-5)


def test_suffixes_close_a_set():
    choices = problem_of(RandomShooting(depth=4), *world()[:1], np.zeros(STATES)).choices
    plans = choices.draw(20, key=KEY)
    closed = plans.with_suffixes()
    assert len(closed) == 80
    assert missing_suffixes(gsps_of(closed, ALPHAS)) == ()
    suffixes = {gsp.suffix for gsp in gsps_of(plans, ALPHAS)} - {None}
    assert suffixes <= set(gsps_of(closed, ALPHAS))
    assert set(gsps_of(closed.at(jnp.arange(20)), ALPHAS)) == set(gsps_of(plans, ALPHAS))


@pytest.mark.slow
def test_with_all_plans_proposed_the_choice_is_that_of_exhaustive_search():
    """200 draws miss one of 9 plans with probability 9 (8/9)²⁰⁰ < 1e-9; both take the largest of unbiased means."""
    ghms, _, rng = world(0.3)
    reward, gsps, n = reward_of("arrival", rng), ggpi.compositions(3, 2, 0.3), 4000
    planner = RandomShooting(200, depth=2, num_samples=n, num_kept=9, value_samples=n)
    found = decided(planner, ghms, reward)
    listed = decided(Exhaustive(gsps, n, n), ghms, reward, jax.random.key(1))
    kept = gsps_of(found.plans, (0.3,))
    assert set(kept) == set(gsps) and set(kept[:9]) == set(gsps)
    exact = ggpi.evaluate(gsps, ghms, reward).v[:, 0]
    v = dict(zip(gsps, exact, strict=True))
    bound = error_of_mean(WIDTH / 2, n, WIDTH, comparisons=20)
    np.testing.assert_allclose(found.mean, [v[gsp] for gsp in kept], atol=bound + 1e-4)
    assert found.mean[found.best] == found.mean.max() and found.head == kept[int(found.best)].head
    assert abs(v[kept[int(found.best)]] - v[gsps[int(listed.best)]]) <= 2 * bound
    assert abs(found.value - v[kept[int(found.best)]]) <= bound and found.value != found.mean[found.best]
    assert found.draws == (200 + 9 * 2 + 1) * 2 * n and found.survivors.tolist() == [9]
    assert found.gap == np.inf


@pytest.mark.parametrize(("goal", "alpha"), [(1, 1.0), (5, 0.2)])
def test_the_probability_of_a_switch_is_chosen_at_plan_time(goal, alpha):
    """One policy walks right, the other stays, which is rewarded at the goal: near goals need an early switch.

    400 draws miss one of 12 plans with probability 12 (11/12)⁴⁰⁰ < 1e-13.
    """
    P, n = np.zeros((STATES, 2, STATES)), 4000
    P[:, 0], P[:, 1] = np.eye(STATES, k=1), np.eye(STATES)
    P[-1, 0, -1] = 1
    stays = [np.eye(2)[[a] * STATES] for a in range(2)]
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), stays, GAMMA, ALPHAS)
    reward = rewards.state_action(np.outer(np.arange(STATES) == goal, [0.0, 1.0]))
    gsps = gsp_set(dict.fromkeys(gsp for each in ALPHAS for gsp in ggpi.compositions(2, 2, each)))
    v = dict(zip(gsps, ggpi.evaluate(gsps, ghms, reward).v[:, 0], strict=True))
    best = GSP((0, 1), (alpha,))
    bound = error_of_mean(WIDTH / 2, n, WIDTH, comparisons=20)
    assert v[best] > 2 * bound + max(value for gsp, value in v.items() if gsp != best)
    found = decided(RandomShooting(400, depth=2, num_samples=n, num_kept=12, value_samples=n), ghms, reward)
    assert gsps_of(found.plans, ALPHAS)[int(found.best)] == best
    fixed = decided(
        RandomShooting(400, depth=2, num_samples=n, num_kept=12, alphas=0.6, value_samples=n), ghms, reward
    )
    assert fixed.value < found.value


CODE = (2, 0, 1, 1)
"""Only these policies, one after the other, open the lock."""


def lock():
    """State i leads to i + 1 by the right action and to a state without reward by others; one step per segment."""
    last = len(CODE) + 1
    P = np.zeros((last + 1, 3, last + 1))
    P[:, :, last] = 1
    P[last - 1] = np.eye(last + 1)[last - 1]
    for i, action in enumerate(CODE):
        P[i, action] = np.eye(last + 1)[i + 1]
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), [np.eye(3)[[a] * (last + 1)] for a in range(3)], GAMMA, 1.0)
    return ghms, rewards.state([0.0, 1.0, 2.0, 4.0, 8.0, 0.0])


@pytest.mark.slow
def test_a_narrow_beam_finds_the_only_good_plan():
    """Nothing is random: with α = 1 every segment but the last is one step, and a right one has a larger reward."""
    ghms, reward = lock()
    planner = BeamSearch(2, depth=4, num_samples=20)
    found = decided(planner, ghms, reward)
    exact = ggpi.evaluate(ggpi.compositions(3, 4, 1.0), ghms, reward)
    best = exact.gsps[int(exact.v[:, 0].argmax())]
    assert np.diff(np.sort(exact.v[:, 0]))[-1] > 5 and best == GSP(CODE, (1.0,) * 3)
    assert gsps_of(found.plans, (1.0,))[int(found.best)] == best
    np.testing.assert_allclose([found.value, found.stderr], [exact.v[:, 0].max(), 0], rtol=1e-5, atol=1e-4)
    assert found.draws == (4 * 6 + 2 * 4) * 4 * 20 + 100 * 4
    assert found.survivors.tolist() == [2] * 4


def test_a_beam_begins_with_different_policies():
    """The best plan begins with the second best policy; a plan of one policy is one plan, whatever the α's are."""
    P = np.zeros((3, 3, 3))
    P[:, :, 2] = 1
    P[0, 1] = np.eye(3)[1]
    r = np.zeros((3, 3))
    r[0], r[1, 2] = [1.0, 0.5, 0.0], 8.0
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(P), [np.eye(3)[[a] * 3] for a in range(3)], GAMMA, (0.5, 1.0))
    found = decided(BeamSearch(2, depth=2, num_samples=4), ghms, rewards.state_action(r))
    assert gsps_of(found.plans, (0.5, 1.0))[int(found.best)] == GSP((1, 2), (1.0,))
    np.testing.assert_allclose(found.value, 0.5 + GAMMA * 8.0, rtol=1e-5)


@pytest.mark.slow
def test_cross_entropy_finds_the_only_good_plan_and_moves_to_it():
    """1200 draws miss the best of 81 plans with probability (80/81)¹²⁰⁰ < 4e-7. One elite: the proposal is known."""
    ghms, reward = lock()
    planner = CrossEntropy(1200, 3, depth=4, num_samples=2, num_elites=1, smoothing=0.2)
    problem = problem_of(planner, ghms, reward)
    advance = jax.jit(lambda search, i, key: planner.advance(problem, search, i, False, key=key))
    search = planner.begin(problem, None)
    for i in range(3):
        search = advance(search, jnp.asarray(i), jax.random.key(i))
    assert gsps_of(search.kept.plans, (1.0,)) == [GSP(CODE, (1.0,) * 3)]
    expected = 0.2**3 / 3 + (1 - 0.2**3) * np.eye(3)[list(CODE)]
    np.testing.assert_allclose(search.kept.proposal.policies[0], expected, atol=1e-5)
    drawn = search.kept.proposal.draw(problem.choices, 4000, key=KEY)
    counts = np.stack([np.bincount(column, minlength=3) for column in np.asarray(drawn.policies).T])
    assert are_frequencies(counts, expected, comparisons=counts.size)
    found = jax.jit(lambda search: planner.finish(problem, search, key=KEY))(search)
    assert gsps_of(found.plans, (1.0,))[int(found.best)] == GSP(CODE, (1.0,) * 3)
    few = dataclasses.replace(planner, num_plans=2)
    warm = jax.jit(lambda last: few.advance(problem, few.begin(problem, last), 0, True, key=KEY))(found)
    assert gsps_of(warm.kept.plans, (1.0,)) == [GSP(CODE, (1.0,) * 3)], (
        "the last plan was among two that were tried"
    )


def test_a_proposal_is_the_shares_of_its_elites():
    choices = problem_of(CrossEntropy(depth=3), *world()[:1], np.zeros(STATES)).choices
    policies = jnp.array([[0, 1, 2], [0, 0, 2], [1, 0, 2], [0, 2, 2]])
    alphas = jnp.array([[0.2, 1.0], [0.6, 1.0], [0.2, 1.0], [1.0, 0.2]])
    found = fitted(choices, Sequences(policies, alphas))
    np.testing.assert_allclose(found.policies[0], [[0.75, 0.25, 0], [0.5, 0.25, 0.25], [0, 0, 1]])
    np.testing.assert_allclose(found.alphas[0], [[0.5, 0.25, 0.25], [0.25, 0, 0.75]])


PLANNERS = {
    "RandomShooting": RandomShooting(12, depth=2, num_samples=4, num_kept=3, value_samples=4),
    "CrossEntropy": CrossEntropy(
        12, 3, depth=2, num_samples=4, num_elites=3, value_samples=4, first_actions=2
    ),
    "BeamSearch": BeamSearch(3, depth=2, num_samples=4, value_samples=4, num_extensions=5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANNERS)
def test_vmap_is_a_loop(name):
    """Each decision is the same alone and in a batch; its value is from fresh samples."""
    ghms, _, rng = world()
    reward = reward_of("arrival", rng)

    def decide(state, key):
        return planning.plan(PLANNERS[name], ghms, reward, state, key=key)

    keys = jax.random.split(KEY, 3)
    one, batch = jax.jit(decide), jax.jit(jax.vmap(decide))(jnp.arange(3), keys)
    for i, key in enumerate(keys):
        for alone, other in zip(jax.tree.leaves(one(i, key)), jax.tree.leaves(batch), strict=True):
            np.testing.assert_allclose(other[i], alone, rtol=1e-4, atol=1e-4)
    assert len(np.unique(np.asarray(batch.value))) == 3
    chosen = np.take_along_axis(np.asarray(batch.mean), np.asarray(batch.best)[:, None], axis=1)[:, 0]
    assert (np.abs(np.asarray(batch.value) - chosen) > 1e-3).any(), (
        "as many samples as the choice had, but others"
    )


@pytest.mark.slow
def test_a_warm_start_considers_the_last_plan_with_its_suffixes():
    """What the proof of Thm 4.2 needs of the next decision; with first actions, the plan's action is the best tried."""
    ghms, _, rng = world()
    planner = dataclasses.replace(PLANNERS["RandomShooting"], depth=3, first_actions=2)
    problem = problem_of(planner, ghms, reward_of("arrival", rng))

    @jax.jit
    def decide(last):
        search = planner.advance(problem, planner.begin(problem, last), 0, True, key=KEY)
        return planner.finish(problem, search, key=jax.random.key(1))

    last = last_of(problem)
    found = decide(last)
    assert found.action == found.plans.first[found.best] and found.head == found.plans.policies[found.best, 0]
    chosen = gsps_of(last.plans.at(last.best[None]).with_suffixes(), ALPHAS)
    considered = set(gsps_of(found.plans, ALPHAS))
    assert set(chosen) <= considered and missing_suffixes(considered) == ()
    assert len(found.plans) == (3 + 1) * 3 * 2


def test_a_warm_start_takes_each_plan_once():
    """The last decision has each plan once for every first action: three plans are taken over, not one three times."""
    planner = RandomShooting(8, depth=3, num_kept=3, first_actions=4)
    problem = problem_of(planner, *world()[:1], np.zeros(STATES))
    last = last_of(problem)
    plans = last.plans.at(jnp.repeat(jnp.arange(10), 4))
    best, mean = jnp.array(9), np.random.default_rng(0).permutation(40).astype(np.float32)
    mean[8:12] += 40  # all first actions of the best plan are better than those of others
    tries = dataclasses.replace(plans, first=jnp.tile(jnp.array([0, 1, 1, 0]), 10))
    search = planner.begin(problem, last._replace(plans=tries, mean=jnp.asarray(mean), best=best))
    others = np.argsort(-mean.reshape(10, 4).max(axis=1))
    expected = [2, *(i for i in others.tolist() if i != 2)][:3]
    assert gsps_of(search.kept.plans, ALPHAS) == [gsps_of(last.plans, ALPHAS)[i] for i in expected]
    assert gsps_of(search.kept.last, ALPHAS) == [gsps_of(last.plans, ALPHAS)[2]]


def last_of(problem):
    """A decision with random plans."""
    plans, zero, place = problem.choices.draw(10, key=jax.random.key(7)), jnp.zeros(()), jnp.array(4)
    return planning.Plan(zero, zero, place, place, place, place, place, zero, jnp.arange(10.0), place, plans)


def test_bad_settings_say_what_is_wrong():
    ghms, _, rng = world()
    reward = reward_of("arrival", rng)

    def planned(planner, models=ghms):
        return planning.plan(planner, models, reward, 0, key=KEY)

    for planner, said in (
        (RandomShooting(depth=0), "depth is at least 1"),
        (RandomShooting(num_samples=0), "num_samples is at least 1"),
        (RandomShooting(first_actions=0), "first_actions is at least 1"),
        (RandomShooting(8, num_kept=9), "9 plans are to be kept: num_plans is at least that, got 8"),
        (CrossEntropy(8, num_elites=8), "8 elites: num_plans is at least 9, got 8"),
        (CrossEntropy(smoothing=1.0), r"smoothing lies in \[0, 1\)"),
        (BeamSearch(0), "width is at least 1"),
        (BeamSearch(num_extensions=0), "num_extensions is at least 1"),
        (RandomShooting(alphas=0.5), r"models for α in \[0\.2, 0\.6, 1\.0\], none for α = 0\.5"),
        (RandomShooting(alphas=1.5), r"lies in \(0, 1\]"),
        (RandomShooting(alphas=(0.2,), alpha_range=(0.1, 0.2)), "not both"),
        (RandomShooting(alpha_range=(0.5, 0.1)), "least, largest"),
        (RandomShooting(alpha_range=(0.2, 0.6)), r"trained apart, for α in \[0\.2, 0\.6, 1\.0\]"),
        (RandomShooting(proposals=np.zeros((3, 2))), "trained apart"),
    ):
        with pytest.raises(ValueError, match=said):
            planned(planner)
    with pytest.raises(ValueError, match="none at"):
        planned(RandomShooting(alphas=0.5), ghms.sampler())
    with pytest.raises(ValueError, match="no α to switch with"):
        planned(RandomShooting(), ghms.sampler())
    with pytest.raises(ValueError, match=r"of the same kind, depth \(and size of a code\) \[4\], got \[2\]"):
        other = last_of(problem_of(RandomShooting(), ghms, reward))
        planning.plan(RandomShooting(depth=4), ghms, reward, 0, warm=other, key=KEY)
    with pytest.raises(ValueError, match="got one of a listed set"):
        listed = last_of(problem_of(RandomShooting(), ghms, reward))._replace(plans=None)
        planning.plan(RandomShooting(), ghms, reward, 0, warm=listed, key=KEY)
