"""Shooting with one network for all horizons: α from a range, codes of a family, proposals that depend on the state."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi import planning, rewards
from ggpi.agent import UnfamiliarCodeWarning
from ggpi.data import StateSpec
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import conditioned
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.network_sampler import network_sampler
from ggpi.planning import BeamSearch, CrossEntropy, RandomShooting, future_codes
from ggpi.planning.beam_search import extended, extensions
from ggpi.planning.choices import Choices, Sequences
from ggpi.planning.cross_entropy import NARROWEST, fitted
from ggpi.planning.planning import posed
from ggpi.planning.sequences import sequence_returns
from ggpi.policies.linear import linear_policy

pytestmark = pytest.mark.slow

KEY, STATE, GAMMA = jax.random.key(0), jnp.array([0.3, -1.0]), 0.95
CODES = np.array([[0.0, 1.0], [1.0, -1.0], [0.5, 2.0]], np.float32)
REWARD = rewards.arrival(lambda x: jnp.tanh(x[0]))


def toward(state, code):
    return code[:1] - state[:1]


FAMILY = ggpi.policy_family(toward, CODES, ([-3.0], [3.0]))
APART = tuple(linear_policy([[gain, 0.0]], [0.0], 0.3, name) for gain, name in ((1, "a"), (2, "b"), (3, "c")))


def models(policies=FAMILY, codes=CODES):
    """A network whose field is not 0 everywhere, as that of fresh weights."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    frame = fit_frame(states, actions, states + 1, StateSpec(("x", "y")), None)
    model = ggpi.FlowMatchingConfig(width=16, depth=2).build(frame, key=KEY)
    model = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(KEY, leaf.shape), model)
    network = conditioned(model, jnp.asarray(codes), GAMMA, 6, key=KEY)
    return GHMs(policies, GAMMA, (), (network.at_horizon(GAMMA),)).with_alpha((0.1, 0.5))


def problem_of(planner, ghms, reward=REWARD):
    return posed(planner, ghms, rewards.as_reward(reward), STATE)


def sampled(problem, plans):
    return np.asarray(jax.jit(lambda plans: sequence_returns(problem, plans, 20, key=KEY))(plans))


@pytest.mark.parametrize("form", ["arrival", "state_action"])
def test_a_network_is_the_models_that_it_has(form):
    """Random numbers are those of stacks of models at the listed horizons, so returns agree sample by sample."""
    reward = rewards.Reward(
        form, (lambda x, a: jnp.tanh(x[0]) + a[0]) if form == "state_action" else REWARD.values
    )
    shared = models(APART, np.eye(3, dtype=np.float32))
    apart = dataclasses.replace(shared, models=tuple(one.stacked() for one in shared.models))
    assert apart.network is None and shared.network is not None
    one, other = (problem_of(RandomShooting(depth=3), ghms, reward) for ghms in (shared, apart))
    plans = one.choices.draw(6, key=KEY)
    assert len(np.unique(plans.alphas)) == 2
    np.testing.assert_allclose(sampled(one, plans), sampled(other, plans), rtol=1e-3, atol=1e-3)


def test_codes_of_policies_are_the_policies():
    """Plans by index and by code have equal samples; other codes have others."""
    ghms = models()
    by_index = problem_of(RandomShooting(depth=2, alpha_range=(0.05, 0.5)), ghms)
    by_code = problem_of(RandomShooting(depth=2, alpha_range=(0.05, 0.5), proposals=CODES), ghms)
    plans = by_index.choices.draw(5, key=KEY)
    assert np.asarray(plans.alphas).min() >= 0.05 and np.asarray(plans.alphas).max() <= 0.5
    coded = Sequences(jnp.asarray(CODES)[plans.policies], plans.alphas)
    found = sampled(by_code, coded)
    np.testing.assert_allclose(found, sampled(by_index, plans), rtol=1e-4, atol=1e-4)
    longer = Sequences(coded.policies, coded.alphas / 2)
    assert np.abs(sampled(by_code, longer) - found).max() > 1e-3


def test_a_network_sampler_is_a_sampler():
    """Its jumps are those of the models of one policy at one horizon."""
    ghms = models()
    sampler, states = network_sampler(ghms), jnp.broadcast_to(STATE, (2, 4, 2))
    actions = sampler.act((2, 0), states, key=KEY)
    np.testing.assert_allclose(actions[:, :, 0], np.array([[0.2] * 4, [-0.3] * 4]), atol=1e-6)
    ends = sampler.jump((2, 0), ghms.horizon(0.5), states, actions, key=KEY)
    noise = jax.random.normal(jax.random.split(KEY, 2)[1], (4, 2))
    expected = jax.vmap(ghms.segment(0, 0.5).push)(states[1], actions[1], noise)
    np.testing.assert_allclose(ends[1], expected, atol=1e-5)
    onward = sampler.onward((2, 0), ghms.horizon(0.5), states, key=KEY)
    assert onward.shape == ends.shape and sampler.working_size > 0


def test_shooting_over_codes():
    """Heads are among the proposals, actions are those of the head's policy, α's are within their range."""
    ghms = models()
    pool = np.array([[0.2, 0.0], [0.8, 1.0]])
    settings = {"proposals": pool, "alpha_range": (0.05, 0.5), "num_samples": 3, "value_samples": 3}
    planner = RandomShooting(12, num_kept=3, **settings)
    found = jax.jit(lambda key: planning.plan(planner, ghms, REWARD, STATE, key=key))(KEY)
    assert np.abs(np.asarray(found.head) - pool).max(axis=1).min() < 1e-6
    np.testing.assert_allclose(found.action, found.head[:1] - STATE[:1], atol=1e-5)
    alphas = np.asarray(found.plans.alphas)
    assert alphas.min() >= 0.05 and alphas.max() <= 0.5 and len(np.unique(alphas)) == 3
    agent = ggpi.GGPIAgent(ghms, REWARD, planner=CrossEntropy(8, 2, num_elites=2, **settings))
    plan = agent.plan(np.stack([STATE, STATE + 1]), key=KEY)
    assert plan.search.head.shape == (2, 2) and plan.action.shape == (2, 1)
    assert plan.gsps[int(plan.best[1])].policies == (2, 3)
    codes = np.asarray(plan.search.plans.policies)
    assert (codes >= CODES.min(axis=0) - 1e-6).all() and (codes <= CODES.max(axis=0) + 1e-6).all()


def choices_of(**changes):
    bounds = jnp.array([0.0, -1.0]), jnp.array([1.0, 2.0])
    return dataclasses.replace(Choices(jnp.asarray(CODES), bounds, 3, (), (0.05, 0.5), 3), **changes)


def test_gaussians_have_the_moments_of_their_elites():
    rng = np.random.default_rng(1)
    codes, alphas = rng.uniform(0.2, 0.7, (40, 3, 2)), rng.uniform(0.1, 0.4, (40, 2))
    codes[:, 1] = [0.5, 0.0]
    found = fitted(choices_of(), Sequences(jnp.asarray(codes), jnp.asarray(alphas)))
    np.testing.assert_allclose(found.policies[0], codes.mean(axis=0), rtol=1e-4)
    expected = np.maximum(codes.std(axis=0), NARROWEST * np.array([1.0, 3.0]))
    np.testing.assert_allclose(found.policies[1], expected, rtol=1e-4)
    np.testing.assert_allclose(
        found.alphas, [np.log(alphas).mean(axis=0), np.log(alphas).std(axis=0)], rtol=1e-3
    )
    wide = jax.tree.map(lambda leaf: 10 * leaf, found)
    drawn = wide.draw(choices_of(), 50, key=KEY)
    low, high = map(np.asarray, choices_of().bounds)
    policies = np.asarray(drawn.policies)
    assert ((policies >= low) & (policies <= high)).all() and (policies == low).any()
    assert np.asarray(drawn.alphas).min() >= 0.05 and np.asarray(drawn.alphas).max() <= 0.5


def test_extensions_of_a_beam():
    """All pairs of a policy and an α, or some without repetition; what is there stays, what follows is the new one."""
    listed = choices_of(codes=None, bounds=None, alphas=(0.1, 0.5), alpha_range=None)
    every = extensions(listed, None, key=KEY)
    pairs = list(
        zip(every.policies.tolist(), [round(alpha, 3) for alpha in every.alphas.tolist()], strict=True)
    )
    assert pairs == [(k, alpha) for k in range(3) for alpha in (0.1, 0.5)]
    assert every.is_new.tolist() == [True, False] * 3
    some = extensions(listed, 4, key=KEY)
    assert len({(k, a) for k, a in zip(some.policies.tolist(), some.alphas.tolist(), strict=True)}) == 4
    ranged = extensions(choices_of(), 5, key=KEY)
    assert ranged.policies.shape == (5, 2) and len(np.unique(np.asarray(ranged.alphas))) == 5
    assert sorted(np.unique(np.asarray(ranged.policies)[:3], axis=0).tolist()) == sorted(CODES.tolist())
    assert ranged.is_new.tolist() == [True] * 3 + [False] * 2
    beam = Sequences(jnp.array([[0, 1, 1], [2, 2, 2]]), jnp.array([[0.1, 0.1], [0.5, 0.5]]))
    found = extended(beam, every, jnp.asarray(2))
    assert found.policies.shape == (12, 3) and (np.asarray(found.policies)[:6, :2] == [0, 1]).all()
    assert found.policies[:6, 2].tolist() == every.policies.tolist()
    np.testing.assert_array_equal(found.alphas[:6, 0], np.float32(0.1))
    np.testing.assert_array_equal(found.alphas[6:, 1], every.alphas)
    first = extended(beam, every, jnp.asarray(0))
    assert (np.asarray(first.policies) == np.tile(np.asarray(every.policies), 2)[:, None]).all()


def test_codes_of_futures_are_those_of_the_model_that_does_not_know_its_policy():
    ghms = models()
    propose = future_codes(ghms, lambda x: x, 6, alpha=0.5)
    codes = propose(STATE, key=KEY)
    assert codes.shape == (6, 2) and len(np.unique(np.asarray(codes)[:, 0])) == 6
    assert not np.array_equal(codes, future_codes(ghms, lambda x: x, 6)(STATE, key=KEY))
    planner = BeamSearch(2, alphas=0.5, num_samples=2, value_samples=2, proposals=propose, num_extensions=3)
    problem = problem_of(planner, ghms)
    pool = np.asarray(planner.pooled(problem, key=KEY).codes)
    np.testing.assert_allclose(pool, np.clip(codes, CODES.min(axis=0), CODES.max(axis=0)), atol=1e-6)
    found = jax.jit(lambda key: planning.plan(planner, ghms, REWARD, STATE, key=key))(KEY)
    assert found.head.shape == (2,) and np.isfinite(found.value)


def test_an_agent_warns_once_of_proposals_that_are_moved():
    """Those within a tenth of the range of the codes that models know, [0, 1] × [−1, 2], are not worth a word."""
    ghms = models()

    def agent(codes):
        proposals = lambda state, *, key: jnp.asarray(codes)  # noqa: E731
        planner = RandomShooting(4, num_kept=2, proposals=proposals, num_samples=2, value_samples=2)
        return ggpi.GGPIAgent(ghms, REWARD, planner=planner)

    near = [[-0.09, 2.2], [1.09, -1.2]]
    agent(near).act(STATE, key=KEY)
    moved = agent([*near, [0.5, 2.4], [np.nan, 0.0]])
    said = r"2 of 4 proposals lie outside .*\[ ?0\. +-1\. *\] to \[1\. +2\. *\].*such as \[0\.5 2\.4\]"
    with pytest.warns(UnfamiliarCodeWarning, match=said):
        moved.act(STATE, key=KEY)
    moved.act(STATE, key=KEY)


def codes_of_the_state(state, *, key):
    """Outside of those that models know where the first coordinate is large."""
    return jnp.stack([jnp.array([0.5, 0.0]), jnp.array([state[0], 0.0])])


def test_an_agent_checks_the_proposals_in_every_state_until_one_has_to_be_moved():
    planner = RandomShooting(4, num_kept=2, proposals=codes_of_the_state, num_samples=2, value_samples=2)
    agent = ggpi.GGPIAgent(models(), REWARD, planner=planner)
    agent.act(STATE, key=KEY)
    with pytest.warns(UnfamiliarCodeWarning, match=r"1 of 4 proposals .* such as \[3\. 0\.\]"):
        agent.act(jnp.array([[0.3, -1.0], [3.0, -1.0]]), key=KEY)
    agent.act(jnp.array([3.0, -1.0]), key=KEY)


def test_a_plan_warns_of_proposals_that_it_moves_unless_jax_traces_it():
    planner = RandomShooting(4, num_kept=2, proposals=codes_of_the_state, num_samples=2, value_samples=2)
    ghms, far = models(), jnp.array([3.0, -1.0])
    inside = planning.plan(planner, ghms, REWARD, STATE, key=KEY)
    assert np.isfinite(inside.value)
    with pytest.warns(UnfamiliarCodeWarning, match=r"1 of 2 proposals .* such as \[3\. 0\.\]"):
        found = planning.plan(planner, ghms, REWARD, far, key=KEY)
    traced = jax.jit(lambda x: planning.plan(planner, ghms, REWARD, x, key=KEY))(far)
    np.testing.assert_allclose(traced.value, found.value, rtol=1e-4)


def test_bad_proposals_say_what_is_wrong():
    ghms = models()
    for proposals, said in (
        (np.zeros((0, 2)), "at least one, got shape"),
        (np.zeros(2), r"codes \[C, 2\]"),
        (np.zeros((3, 5)), "codes of size 2, got codes of size 5"),
        (np.array([[0.5, 0.0], [4.0, 0.0]]), r"1 of 2 proposals lie outside .* such as \[4\. 0\.\]"),
        (np.array([[np.nan, 0.0]]), "outside of the codes"),
        (lambda state, *, key: jnp.zeros((4, 3)), "got codes of size 3"),
        (lambda state, *, key: state, r"codes \[C, 2\]"),
    ):
        with pytest.raises(ValueError, match=said):
            problem_of(RandomShooting(proposals=proposals), ghms)
    unlisted = models(APART, np.eye(3, dtype=np.float32))
    with pytest.raises(ValueError, match="tells its 3 policies apart by their numbers"):
        problem_of(RandomShooting(proposals=np.zeros((1, 3))), unlisted)
    with pytest.raises(ValueError, match="which a NetworkSampler does not know"):
        problem_of(RandomShooting(proposals=CODES, alphas=0.5), network_sampler(ghms))
    with pytest.raises(ValueError, match="give num_extensions="):
        problem_of(BeamSearch(alpha_range=(0.1, 0.5)), ghms)
    with pytest.raises(ValueError, match="no α to switch with"):
        problem_of(RandomShooting(), dataclasses.replace(ghms, alphas=(), models=ghms.models[:1]))
    assert problem_of(RandomShooting(alphas=0.3), ghms).choices.alphas == (0.3,)
