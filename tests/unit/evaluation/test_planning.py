"""Planning and choosing, in worlds where a mix-up of heads, rewards, rows or keys is seen at once."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi import rewards
from ggpi._jax.batching import stack
from ggpi.agent.agent import choose
from ggpi.evaluation import queries
from ggpi.evaluation.queries import pooled
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.coordinates import Frame, fit_frame
from ggpi.policies import PolicyBank

GAMMA = 0.9
KEY = jax.random.key(0)


def always(num_states, num_actions=2):
    """The policies that always take action 0, 1, …"""
    return [
        ggpi.TabularPolicy(np.eye(num_actions)[np.full(num_states, a)], f"always {a}")
        for a in range(num_actions)
    ]


def detour():
    """0 → 1 → goal by the actions 0, then 1; the other actions lead into a trap."""
    following = np.array([[1, 3], [3, 2], [2, 2], [3, 3]])
    mdp = ggpi.TabularMDP(np.eye(4)[following])
    return ggpi.exact_ghms(mdp, always(4), GAMMA, 1.0)


@pytest.mark.parametrize("first_actions", ["head", "all", "step", 2])
def test_the_head_of_the_best_plan_acts(first_actions):
    """0 →(1) 1 is the only way to the goal; in the set it is number 1, which is no reason to act with policy 1."""
    goal = rewards.arrival([0.0, 0.0, 1.0, 0.0])
    agent = ggpi.GGPIAgent(detour(), goal, depth=2, num_samples=4, first_actions=first_actions)
    plan = agent.plan(np.array([0, 1, 0]), key=KEY)
    if first_actions in ("head", 2):
        assert [agent.gsps[i] for i in plan.best[[0, 2]]] == [ggpi.GSP((0, 1), (1.0,))] * 2
    assert plan.action.tolist() == [0, 1, 0]
    assert agent.act(np.array([0, 1, 0]), key=KEY).tolist() == [0, 1, 0]


def test_the_action_is_the_one_that_was_scored():
    """The best score [GSP, state, try] names the head, the state and the try of its action."""
    mean = np.zeros((4, 2, 3))
    mean[2, 0, 1] = mean[1, 1, 2] = 1.0
    first = jnp.arange(3 * 2 * 3).reshape(3, 2, 3)
    bank = PolicyBank(always(4, 3))
    best, action = choose(bank, np.array([0, 1, 2, 1]), mean, jnp.array([0, 1]), first, KEY)
    assert best.tolist() == [2, 1]
    assert action.tolist() == [first[2, 0, 1], first[1, 1, 2]]


@pytest.mark.parametrize("largest", [2**28, 8, 4], ids=["one part", "two parts", "three parts"])
def test_candidates_are_each_heads_own_in_each_state(monkeypatch, largest):
    """Policy k takes action (x + k) mod 3 in state x, and with γ = 0 nothing but r(x, a) counts."""
    monkeypatch.setattr(queries, "LARGEST", largest)
    policies = [ggpi.TabularPolicy(np.eye(3)[(np.arange(3) + k) % 3], f"π{k}") for k in range(2)]
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(np.full((3, 3, 3), 1 / 3)), policies, 0.0, ())
    reward = np.arange(9.0).reshape(3, 3)
    agent = ggpi.GGPIAgent(ghms, reward, depth=1, num_samples=1, first_actions=2)
    value = agent.plan(np.array([2, 0, 1]), key=KEY).value
    expected = [[[reward[x, (x + k) % 3]] * 2 for k in range(2)] for x in (2, 0, 1)]
    np.testing.assert_array_equal(value, expected)


class At(eqx.Module):
    """`height` in one state, 0 in others."""

    place: jax.Array
    height: jax.Array

    def __call__(self, state):
        return jnp.where(state == self.place, self.height, 0.0)


def sinks(num_starts, num_actions):
    """From every start action a leads into sink a for ever, so that every sample of the future is certain."""
    following = np.tile(num_starts + np.arange(num_actions), (num_starts + num_actions, 1))
    following[num_starts:] = num_starts + np.arange(num_actions)[:, None]
    mdp = ggpi.TabularMDP(np.eye(num_starts + num_actions)[following])
    return ggpi.exact_ghms(mdp, always(num_starts + num_actions, num_actions), GAMMA, ())


@pytest.mark.parametrize("first_actions", ["head", "all", "step"])
@pytest.mark.parametrize("largest", [2**28, 12, 4], ids=["one call", "two calls", "three calls"])
def test_every_state_of_a_batch_has_its_own_reward(monkeypatch, first_actions, largest):
    """Three states, three rewards, two actions: state i has its reward in sink i mod 2, of height i + 1."""
    monkeypatch.setattr(queries, "LARGEST", largest)
    places = [3, 4, 3]
    own = [rewards.arrival(At(jnp.array(place), jnp.array(i + 1.0))) for i, place in enumerate(places)]
    options = {"depth": 1, "num_samples": 2, "first_actions": first_actions}
    agent = ggpi.GGPIAgent(sinks(3, 2), rewards.each(own), **options)
    plan = agent.plan(np.arange(3), key=KEY)
    expected = np.zeros((3, 2))  # [state, action]
    expected[np.arange(3), np.array(places) - 3] = (np.arange(3) + 1) / (1 - GAMMA)
    if first_actions != "head":  # [state, GSP, action]; what follows the first action changes nothing
        expected = np.repeat(expected[:, None], 2, axis=1)
    np.testing.assert_allclose(plan.value, expected, rtol=1e-5)
    assert plan.action.tolist() == [0, 1, 0]


def test_rewards_of_a_batch_may_look_at_actions():
    class Paid(eqx.Module):
        action: jax.Array

        def __call__(self, state, action):
            return jnp.where(action == self.action, 1.0, 0.0)

    own = rewards.each([rewards.state_action(Paid(jnp.array(a))) for a in (1, 0, 1)])
    agent = ggpi.GGPIAgent(sinks(3, 2), own, depth=1, num_samples=2)
    assert agent.act(np.arange(3), key=KEY).tolist() == [1, 0, 1]


def test_pooled_calls_are_one_sample():
    """Mean and standard error over all calls are those of all samples together, with Bessel's correction."""
    samples = np.random.default_rng(0).normal(size=(3, 4, 5, 2, 1)) + np.arange(3).reshape(3, 1, 1, 1, 1)
    mean, stderr = pooled([(part.mean(axis=0), part.var(axis=0)) for part in samples], 4)
    together = samples.reshape(12, 5, 2, 1)
    np.testing.assert_allclose(mean, together.mean(axis=0))
    np.testing.assert_allclose(stderr, together.std(axis=0, ddof=1) / 12**0.5)


def random_world(alpha=(0.5,)):
    rng = np.random.default_rng(0)
    mdp = ggpi.TabularMDP(rng.dirichlet(np.ones(5), (5, 3)))
    policies = [ggpi.TabularPolicy(rng.dirichlet(np.ones(3), 5)) for _ in range(2)]
    return ggpi.exact_ghms(mdp, policies, GAMMA, alpha)


def test_standard_errors_are_those_of_the_samples():
    reward = np.arange(5.0) ** 2
    agent = ggpi.GGPIAgent(random_world(()), rewards.arrival(reward), depth=1, num_samples=7)
    plan = agent.plan(np.arange(2), key=KEY)
    for i in range(len(agent.gsps)):
        earned = reward[plan.samples(i)[0]] / (1 - GAMMA)
        np.testing.assert_allclose(plan.value[:, i], earned.mean(axis=-1), rtol=1e-5)
        np.testing.assert_allclose(plan.stderr[:, i], earned.std(axis=-1, ddof=1) / 7**0.5, rtol=1e-4)


def test_no_two_calls_and_no_two_rows_share_noise(monkeypatch):
    """One sample a call: calls that share their key have no spread, rows that share theirs have equal values."""
    monkeypatch.setattr(queries, "LARGEST", 2)
    reward = rewards.arrival(lambda state: state[0])
    agent = ggpi.GGPIAgent(noisy(1), reward, depth=1, num_samples=3)
    plan = agent.plan(np.zeros((3, SIZE)), key=KEY)
    assert (plan.stderr > 0).all()
    assert len(np.unique(plan.value)) == 3


@pytest.mark.slow
def test_terminal_states_are_entered_once_and_never_left():
    """0 → end: ρ(end) = 7 is paid once, r(0) = 1 once, and nothing from the end on, at any depth."""
    mdp = ggpi.TabularMDP(np.eye(2)[np.ones((2, 1), int)], [False, True])
    ghms = ggpi.exact_ghms(mdp, [np.ones((2, 1))] * 2, GAMMA, 0.5)
    agent = ggpi.GGPIAgent(ghms, rewards.arrival([3.0, 7.0]), depth=2, num_samples=2)
    np.testing.assert_allclose(
        agent.plan(np.arange(2), key=KEY).value[..., 0], [[7.0] * 4, [0.0] * 4], rtol=1e-6
    )
    leaving = agent.with_reward(rewards.state([1.0, 5.0])).plan(np.arange(2), key=KEY).value[..., 0]
    np.testing.assert_allclose(leaving, [[1.0] * 4, [0.0] * 4], rtol=1e-6)
    fresh = ggpi.GGPIAgent(ghms, rewards.state_action([[1.0], [5.0]]), depth=2, num_samples=2)
    np.testing.assert_allclose(fresh.plan(np.arange(2), key=KEY).value[..., 0], leaving, rtol=1e-6)


def test_a_set_may_leave_policies_out():
    """0 → 1, then action a leads into sink 2 + a: sink 2 of policy 0 is bad, the others are good.

    A plan with the model of another policy has the wrong sign, unless all 64 samples stop in state 1 (10⁻⁶⁴).
    """
    following = np.array([[1, 1, 1], [2, 3, 4], [2, 2, 2], [3, 3, 3], [4, 4, 4]])
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(np.eye(5)[following]), always(5, 3), GAMMA, ())
    reward = rewards.arrival([0.0, 0.0, -1.0, 1.0, 1.0])
    gsps = [ggpi.GSP((2,)), ggpi.GSP((1,))]
    plan = ggpi.GGPIAgent(ghms, reward, gsps=gsps, num_samples=64, first_actions="head").plan(0, key=KEY)
    assert (plan.value > 0).all()


def test_equal_policies_have_noise_of_their_own():
    """64 samples of five states would have to coincide."""
    mdp = ggpi.TabularMDP(np.full((5, 2, 5), 1 / 5))
    ghms = ggpi.exact_ghms(mdp, [np.full((5, 2), 0.5)] * 2, GAMMA, ())
    agent = ggpi.GGPIAgent(ghms, np.arange(5.0), depth=1, num_samples=64, first_actions="head")
    plan = agent.plan(0, key=KEY)
    assert not np.array_equal(plan.samples(0)[0], plan.samples(1)[0])


def test_at_least_as_many_samples_as_asked_for(monkeypatch):
    """Two samples a call: three need two calls. A reward on the host sees each."""
    monkeypatch.setattr(queries, "LARGEST", 4 * SIZE)
    seen = []

    def reward(state):
        seen.append(float(state[0]))
        return seen[-1]

    ggpi.GGPIAgent(noisy(1), rewards.arrival(reward), depth=1, num_samples=3).act(np.zeros(SIZE), key=KEY)
    assert len({number for number in seen if number}) == 4


def test_states_that_a_function_calls_terminal_are_not_left():
    """Where the first number is above 2 all is over; elsewhere a sample is somewhere else."""
    options = {"depth": 1, "num_samples": 2, "terminal": lambda state: state[0] > 2}
    agent = ggpi.GGPIAgent(noisy(1), rewards.arrival(lambda state: 1.0), **options)
    states = np.zeros((2, SIZE))
    states[0, 0] = 3.0
    plan = agent.plan(states, key=KEY)
    assert plan.value[0] == 0 and plan.value[1] > 0
    (ends,) = plan.samples(0)
    assert (ends[0] == states[0]).all() and (ends[1] != states[1]).any()


SIZE = 6


class Exposed(AbstractGHM):
    """Two numbers of noise, then the action: samples tell what they were made of."""

    frame: Frame

    @property
    def noise_size(self) -> int:
        return 2

    @property
    def loss_noise_size(self) -> int:
        return 0

    def push(self, state: Any, action: Any, noise: Any) -> Any:
        return jnp.concatenate([noise, action])

    def loss(self, state: Any, action: Any, target: Any, noise: Any) -> Any:
        raise NotImplementedError


class Marked(Exposed):
    """Every sample is the model's mark."""

    mark: jax.Array

    def push(self, state: Any, action: Any, noise: Any) -> Any:
        return jnp.full(SIZE, self.mark)


def test_learned_models_are_those_of_the_policies_asked_for():
    """Policies 2 and 0, in this order, of three."""
    ghms = noisy(3)
    marks = stack([Marked(ghms.segment(0, None).frame, jnp.array(10.0 + k)) for k in range(3)])
    ghms = dataclasses.replace(ghms, models=(marks, marks))
    agent = ggpi.GGPIAgent(
        ghms, rewards.arrival(lambda state: state[0]), gsps=[ggpi.GSP((2,)), ggpi.GSP((0,))], num_samples=2
    )
    plan = agent.plan(np.zeros(SIZE), key=KEY)
    np.testing.assert_allclose(plan.value, [120.0, 100.0], rtol=1e-5)
    assert [(plan.samples(i)[0] == mark).all() for i, mark in enumerate((12, 10))] == [True, True]


class OpenKey(eqx.Module):
    """A policy whose action is the key that it was given, in four parts that single precision holds exactly."""

    name: str

    def sample(self, state, *, key):
        words = jax.random.key_data(key)
        return jnp.concatenate([words >> 16, words & 0xFFFF]).astype(jnp.float32)


def noisy(num_policies):
    spec = ggpi.StateSpec(tuple("abcdef"))
    states = np.outer([-9.0, 9.0], np.ones(SIZE))
    frame = fit_frame(states, np.ones((2, 4)), states, spec, None)
    models = stack([Exposed(frame)] * num_policies)
    policies = tuple(OpenKey(str(i)) for i in range(num_policies))
    return ggpi.GHMs(policies, GAMMA, (0.5,), (models, models))


def keys_in(actions):
    """The keys of actions of `OpenKey`."""
    high, low = np.split(np.asarray(actions, np.uint32).reshape(-1, 4), 2, axis=1)
    return jax.random.wrap_key_data(jnp.asarray(high << 16 | low))


def descendants(keys, generations, children=3):
    """All keys that can be split off these (folding in a number is the same as splitting)."""
    found = [keys]
    for _ in range(generations):
        found.append(jax.vmap(lambda key: jax.random.split(key, children))(found[-1]).ravel())
    return jnp.concatenate(found)


@pytest.mark.parametrize("first_actions", ["head", 2])
def test_no_key_of_a_policy_leads_to_a_models_noise(monkeypatch, first_actions):
    """What a policy makes of its key is its own affair; nobody else may draw from that key or what it yields.

    Noise is compared in pairs of numbers of 23 bits: by chance two are equal with a probability below 1e-7 in all.
    """
    agent = ggpi.GGPIAgent(
        noisy(2), rewards.arrival(lambda state: state[0]), depth=2, num_samples=2, first_actions=first_actions
    )
    monkeypatch.setattr(queries, "LARGEST", 1)  # two states in two parts, a sample a call
    plan = agent.plan(np.zeros((2, SIZE)), key=KEY)
    ends = np.concatenate([end.reshape(-1, SIZE) for i in range(len(agent.gsps)) for end in plan.samples(i)])
    noise = {pair.tobytes() for pair in np.asarray(ends[:, :2], np.float32)}
    actions = np.concatenate([ends[:, 2:], plan.action])
    keys = np.unique(np.asarray(jax.random.key_data(keys_in(actions))), axis=0)
    spread = descendants(jax.random.wrap_key_data(jnp.asarray(keys)), 4)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: jax.random.normal(key, (8,))))(spread))
    assert not noise & {pair.tobytes() for pair in drawn.reshape(-1, 2)}
