"""The agent estimates what the exact evaluation computes, in one program for any reward."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from chance import error_of_estimate
from ggpi import rewards
from ggpi.evaluation import queries
from ggpi.evaluation.queries import call_size
from ggpi.evaluation.tree import build_tree
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.switching import composition_weights, segments

GAMMA = 0.9


def sizes(agent, states):
    """How many states, and samples of each, one call takes."""
    query = agent._query(jnp.asarray(states), agent._first_actions(jnp.asarray(states), jax.random.key(0)))
    return call_size(query, agent.num_samples, agent._largest)


def random_world(seed=0, num_states=8, num_actions=3, terminal=False, alphas=(1 / 9,)):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(num_states, 0.5), size=(num_states, num_actions))
    if terminal:
        P[-1] = np.eye(num_states)[-1]
    mdp = (
        ggpi.TabularMDP(P, terminal=np.arange(num_states) == num_states - 1)
        if terminal
        else ggpi.TabularMDP(P)
    )
    policies = [ggpi.TabularPolicy(rng.dirichlet(np.ones(num_actions), size=num_states)) for _ in range(2)]
    return mdp, ggpi.exact_ghms(mdp, policies, gamma=GAMMA, alpha=alphas), rng


def values_of(form, rng, mdp):
    shape = (mdp.num_states, mdp.num_actions) if form == "state_action" else (mdp.num_states,)
    return getattr(rewards, form)(rng.normal(size=shape))


def agrees(plan, exact, reward, num_samples):
    """Values of a plan against exact ones; each draw lies between sums of the least and the greatest reward."""
    width = np.ptp([*np.ravel(reward.values), 0]) / (1 - GAMMA)
    bound = error_of_estimate(plan.stderr, num_samples, width, comparisons=np.size(exact))
    return (np.abs(plan.value - exact) <= bound + 1e-4).all()


@pytest.mark.parametrize(
    ("form", "first_actions", "terminal"),
    [
        ("state", "head", False),
        ("state", "all", True),
        ("state_action", "head", True),
        ("state_action", "all", False),
        ("arrival", "head", False),
        ("arrival", "all", True),
        ("state", "step", False),
        ("state_action", "step", True),
        ("arrival", "step", False),
    ],
)
def test_values_are_those_of_the_exact_evaluation(form, first_actions, terminal):
    mdp, ghms, rng = random_world(terminal=terminal)
    reward = values_of(form, rng, mdp)
    agent = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=8000, first_actions=first_actions)
    states = np.arange(mdp.num_states)
    plan = agent.plan(states, key=jax.random.key(3))
    q = ggpi.evaluate(agent.gsps, ghms, reward)
    exact = q.v.T if first_actions == "head" else np.moveaxis(np.asarray(q), 0, 1)
    assert agrees(plan, exact, reward, 8000)
    assert plan.stderr[:-1].max() > 1e-3


def test_unequal_alphas_and_explicit_sets():
    mdp, ghms, rng = random_world(alphas=(0.5, 0.1))
    gsps = ggpi.suffix_closure([ggpi.GSP((0, 1, 0), (0.5, 0.1)), ggpi.GSP((1, 0), (0.5,))])
    reward = values_of("state_action", rng, mdp)
    agent = ggpi.GGPIAgent(ghms, reward, gsps=gsps, num_samples=8000, first_actions="head")
    plan = agent.plan(np.arange(mdp.num_states), key=jax.random.key(0))
    assert agrees(plan, ggpi.evaluate(gsps, ghms, reward).v.T, reward, 8000)


def test_depth_needs_alphas_and_gpi_needs_none():
    mdp, ghms, rng = random_world(alphas=())
    reward = values_of("state", rng, mdp)
    plan = ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=8000).plan(0, key=jax.random.key(0))
    assert agrees(plan, np.asarray(ggpi.evaluate(plan.gsps, ghms, reward))[:, 0], reward, 8000)
    with pytest.raises(ValueError, match=r"depth 2 needs models of one α.* these are of \[\]"):
        ggpi.GGPIAgent(ghms, reward, depth=2)
    two = random_world(alphas=(0.5, 0.1))[1]
    assert {gsp.alphas for gsp in ggpi.GGPIAgent(two, reward, depth=3).gsps} >= {(0.5, 0.1), (0.1,), ()}
    with pytest.raises(ValueError, match="give gsps= instead"):
        ggpi.GGPIAgent(two, reward, depth=2)


def test_samples_of_a_plan_are_those_that_gave_its_value():
    mdp, ghms, rng = random_world()
    reward = values_of("state", rng, mdp)
    agent = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=50, first_actions="head")
    plan = agent.plan(0, key=jax.random.key(1))
    for i, gsp in enumerate(agent.gsps):
        ends = plan.samples(i)
        assert len(ends) == len(gsp)
        w = composition_weights(GAMMA, gsp.alphas)
        earned = sum(weight * reward.values[end] for weight, end in zip(w, ends, strict=True))
        expected = reward.values[0] + GAMMA / (1 - GAMMA) * earned.mean()
        np.testing.assert_allclose(plan.value[i], expected, rtol=1e-4)


def test_each_segment_pays_at_both_ends_with_its_own_policy():
    w = composition_weights(GAMMA, [0.5, 0.2])
    first, second, last = segments((0, 1, 0), (0.5, 0.2), GAMMA)
    np.testing.assert_allclose([first.start, first.end], [0, 0.5 * w[0]])
    np.testing.assert_allclose([second.start, second.end], [0.5 * w[0], 0.8 * w[1]])
    np.testing.assert_allclose([last.start, last.end], [0.2 * w[1], w[2]])
    assert sum(s.start + s.end for s in (first, second, last)) == pytest.approx(1)


def test_prefixes_are_shared():
    gsps = ggpi.compositions(2, 3, 1 / 9)
    chains = [gsp.segments(GAMMA) for gsp in gsps]
    tree, paths = build_tree(chains, GAMMA, "state")
    assert tree.num_nodes == len(gsps) + 2 + 4 < sum(map(len, gsps))
    assert [len(path) for path in paths] == [len(chain) for chain in chains]


def test_a_large_set_is_evaluated_in_several_calls(monkeypatch):
    mdp, ghms, rng = random_world()
    reward = values_of("arrival", rng, mdp)
    monkeypatch.setattr(queries, "LARGEST", 8000)
    agent = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=4000, first_actions="head")
    plan = agent.plan(np.arange(5), key=jax.random.key(1))
    assert agrees(plan, ggpi.evaluate(agent.gsps, ghms, reward).v.T[:5], reward, 4000)


@pytest.mark.parametrize("first_actions", ["head", "all"])
def test_a_plan_in_several_calls_keeps_its_samples(monkeypatch, first_actions):
    mdp, ghms, rng = random_world(num_actions=2)
    reward = values_of("arrival", rng, mdp)
    agent = ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=1, first_actions=first_actions)
    first = 1 if first_actions == "head" else 2
    monkeypatch.setattr(queries, "LARGEST", 2 * 2 * first)
    assert sizes(agent, np.zeros(3, int)) == (2, 1)
    plan = agent.plan(np.array([3, 1, 5]), key=jax.random.key(1))
    for i in range(2):
        (ends,) = plan.samples(i)
        assert ends.shape == ((3, 1) if first == 1 else (3, 2, 1))
        np.testing.assert_allclose(plan.value[:, i], reward.values[ends[..., 0]] / (1 - GAMMA), rtol=1e-4)


def test_ties_are_broken_at_random():
    """One of the four is never chosen in 60 draws with a probability of at most 4 · (3/4)⁶⁰ < 2e-7."""
    mdp, ghms, _ = random_world()
    agent = ggpi.GGPIAgent(ghms, np.zeros(mdp.num_states), depth=2, num_samples=2)
    best = {int(agent.plan(0, key=jax.random.key(i)).best) for i in range(60)}
    assert best == set(range(len(agent.gsps)))


class Walker(eqx.Module):
    """A policy of the plane: a step in its direction."""

    direction: jax.Array
    name: str

    def sample(self, state, *, key):
        return self.direction + 0.1 * jax.random.normal(key, (2,))

    def mode(self, state):
        return self.direction


def test_activations_count_as_memory():
    """Those of a network of width 128 take more of it than states of 35 numbers."""
    states, spec = np.ones((2, 35)), ggpi.StateSpec(tuple(f"x{i}" for i in range(35)))
    frame = fit_frame(states, np.ones((2, 2)), states, spec, None)
    model = VAEConfig().build(frame, key=jax.random.key(0))
    models = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), model)
    walkers = tuple(Walker(jnp.ones(2), str(i)) for i in range(4))
    ghms = ggpi.GHMs(walkers, 0.9, (0.5,), (models, models))
    for depth, num_samples in ((1, 400), (2, 100), (3, 25)):
        agent = ggpi.GGPIAgent(ghms, rewards.target((0.0, 0.0), 1.0), depth=depth, num_samples=num_samples)
        assert sizes(agent, np.zeros((128, 35))) == (128, num_samples), "one call"
        at_once, size = sizes(agent, np.zeros((8000, 35)))
        assert at_once * size * 256 * len(agent.gsps) <= 2**28


@pytest.fixture(scope="module")
def learned():
    """Models of two walkers, trained for a moment: enough to be asked."""
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(2, 600, 2)).astype(np.float32)
    step = np.arange(600) % 100
    data = ggpi.Transitions(
        x, a, x + a, step < 0, step == 99, np.zeros(600, int), np.arange(600) // 100, step
    )
    walkers = [Walker(jnp.array(d), n) for d, n in (([1.0, 0.0], "right"), ([0.0, 1.0], "up"))]
    spec = ggpi.StateSpec(("x", "y"), relative=(0, 1))
    return ggpi.fit(
        walkers, data, gamma=GAMMA, alpha=1 / 9, key=jax.random.key(0), steps=3, batch_size=32, spec=spec
    )


@pytest.mark.slow
def test_all_kinds_of_functions_pay_the_same(learned):
    def python(state):
        return float(np.hypot(*(state - np.array([1.0, 1.0]))) <= 2.0)

    def traced(state):
        return (jnp.linalg.norm(state - jnp.array([1.0, 1.0])) <= 2.0).astype(float)

    kinds = [rewards.target((1.0, 1.0), 2.0), rewards.arrival(traced), rewards.arrival(python)]
    plans = [
        ggpi.GGPIAgent(learned, kind, depth=2, num_samples=2).plan(np.zeros(2), key=jax.random.key(5))
        for kind in kinds
    ]
    # a draw lies so near to the circle that rounding decides with a probability of about 1e-7, and there are few
    for plan in plans[1:]:
        np.testing.assert_allclose(plan.value, plans[0].value, rtol=1e-5)


def test_another_target_compiles_nothing(learned):
    agent = ggpi.GGPIAgent(learned, rewards.target((1.0, 1.0), 0.5), depth=2, num_samples=10)
    agent.act(np.zeros(2), key=jax.random.key(0))
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        compiled = []
        patch.setattr("jax._src.interpreters.pxla.logger.log", lambda *args, **_: compiled.append(args))
        for i in range(3):
            agent.with_reward(rewards.target((float(i), 0.0), 0.7)).act(np.ones(2), key=jax.random.key(i))
    assert not compiled


@pytest.mark.slow
def test_each_state_of_a_batch_may_have_its_own_reward(learned):
    states, places = np.zeros((3, 2)), np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    many = ggpi.GGPIAgent(learned, rewards.targets(places, 1.0), depth=2, num_samples=4)
    one_by_one = rewards.each([rewards.target(place, 1.0) for place in places])
    key = jax.random.key(2)
    values = [many.plan(states, key=key).value, many.with_reward(one_by_one).plan(states, key=key).value]
    np.testing.assert_allclose(*values, rtol=1e-5)
    single = many.with_reward(rewards.target(places[0], 1.0)).plan(states, key=key).value
    np.testing.assert_allclose(single[0], values[0][0], rtol=1e-5)


def test_several_first_actions_are_scored(learned):
    reward = rewards.state_action(lambda state, action: -jnp.sum((action - jnp.array([1.2, 0.0])) ** 2))
    agent = ggpi.GGPIAgent(learned, reward, depth=1, num_samples=50, first_actions=16)
    plan = agent.plan(np.zeros((2, 2)), key=jax.random.key(0))
    assert plan.value.shape == (2, 2, 16)
    assert plan.action.shape == (2, 2)


def test_terminal_states_are_not_left(learned):
    reward = rewards.arrival(lambda state: jnp.ones(()))
    agent = ggpi.GGPIAgent(learned, reward, depth=2, num_samples=5, terminal=lambda state: jnp.ones((), bool))
    plan = agent.plan(np.zeros(2), key=jax.random.key(0))
    np.testing.assert_array_equal(plan.value, 0)
    assert all((end == 0).all() for i in range(4) for end in plan.samples(i))


def nan_elsewhere(state):
    return jnp.where(jnp.abs(state[0]) > 1e-3, jnp.nan, 0.0)


def fails_elsewhere(state):
    if abs(float(state[0])) > 1e-3:
        raise RuntimeError("too far")
    return 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "depth is at least 1"),
        ({"depth": 1, "num_samples": 0}, "num_samples is at least 1"),
        ({}, "either a depth or a set"),
        ({"gsps": [ggpi.GSP((0, 1), (1 / 9,))]}, "lacks up"),
        ({"gsps": [ggpi.GSP((0, 1), (0.3,)), ggpi.GSP((1,))]}, "none for α = 0.3"),
        ({"depth": 1, "first_actions": "all"}, "cannot all be scored"),
        ({"depth": 1, "first_actions": "step"}, "cannot all be scored"),
        ({"depth": 1, "first_actions": 0}, "at least 1"),
    ],
)
def test_bad_settings_are_refused(learned, options, words):
    with pytest.raises(ValueError, match=words):
        ggpi.GGPIAgent(learned, rewards.target((0.0, 0.0), 1.0), **options)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (nan_elsewhere, "reward is nan at sample"),
        (fails_elsewhere, "too far.*at sample"),
        (lambda state: np.array([float(state[0])] * 2), r"one number, got shape \(2,\) at sample 0"),
    ],
)
def test_a_reward_that_fails_names_its_sample(learned, function, words):
    agent = ggpi.GGPIAgent(learned, rewards.arrival(function), depth=1, num_samples=200)
    with pytest.raises(ValueError, match=words):
        agent.act(np.zeros(2), key=jax.random.key(0))


def test_a_reward_of_the_wrong_shape_is_refused_at_once(learned):
    with pytest.raises(ValueError, match=r"one number for one state, got shape \(2,\)"):
        ggpi.GGPIAgent(learned, rewards.arrival(lambda state: state), depth=1)
    with pytest.raises(TypeError, match="wrap reward functions"):
        ggpi.GGPIAgent(learned, lambda state: 0.0, depth=1)


def test_states_of_the_wrong_size_are_refused(learned):
    agent = ggpi.GGPIAgent(learned, rewards.target((0.0, 0.0), 1.0), depth=1)
    with pytest.raises(ValueError, match=r"a state has shape \[2\]"):
        agent.act(np.zeros(3), key=jax.random.key(0))


def test_models_and_policies_have_to_go_together(learned):
    three = ggpi.GHMs((*learned.policies, learned.policies[0]), learned.gamma, learned.alphas, learned.models)
    with pytest.raises(ValueError, match="3 policies need as many models"):
        ggpi.GGPIAgent(three, rewards.target((0.0, 0.0), 1.0), depth=1)
    wide = [Walker(jnp.ones(3), "wide"), Walker(jnp.ones(3), "wider")]
    with pytest.raises(ValueError, match="do not go together"):
        other = ggpi.GHMs(tuple(wide), learned.gamma, learned.alphas, learned.models)
        ggpi.GGPIAgent(other, rewards.target((0.0, 0.0), 1.0), depth=1)
