"""Objects that threads share give each of them the numbers that a single thread gets."""

from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.sparse

import corridor
import ggpi
import ggpi.ghm.vae
from ggpi._jax.batching import stack
from ggpi.envs import GymVectorEnv
from ggpi.ghm.coordinates import fit_frame
from ggpi.learning.flow_losses import TD2CFM
from ggpi.mdp import resolvent
from ggpi.policies.linear import direction_policies, linear_policy

NUM_THREADS = 8


def in_threads(function, arguments):
    """The function of each argument, by threads that take turns as the interpreter pleases."""
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        return list(pool.map(function, arguments))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)


def random_mdp(num_states, is_sparse):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(num_states), size=(num_states, 2))
    if is_sparse:
        P = scipy.sparse.csr_array(P.reshape(-1, num_states))
    pis = rng.dirichlet(np.ones(2), size=(2, num_states))
    return ggpi.TabularMDP(P), [ggpi.TabularPolicy(pi) for pi in pis], rng


@pytest.mark.parametrize("method", ["dense", "sparse", "krylov"])
def test_threads_share_exact_models(method, monkeypatch):
    """2,000 evaluations; the models have not been used before, so the threads also race to factorise them."""
    if method == "krylov":
        monkeypatch.setattr(resolvent, "DIRECT_LIMIT", 0)
        monkeypatch.setattr(resolvent, "NARROW", 0.0)
    mdp, policies, rng = random_mdp(100 if method == "dense" else 20, method != "dense")
    gsps = ggpi.compositions(num_policies=2, depth=1, alpha=0.2)
    rewards = rng.normal(size=(2000 if method == "dense" else 100, mdp.num_states))
    shared, own = (ggpi.exact_ghms(mdp, policies, gamma=0.9, alpha=0.2) for _ in range(2))
    found = in_threads(lambda r: np.asarray(ggpi.evaluate(gsps, shared, r)), rewards)
    assert_same(found, [np.asarray(ggpi.evaluate(gsps, own, r)) for r in rewards])


def test_threads_share_an_mdp():
    mdp, _, rng = random_mdp(50, is_sparse=False)
    rewards = rng.normal(size=(16, mdp.num_states))
    seeds = range(len(rewards))

    def numbers(seed):
        states = np.arange(mdp.num_states)
        drawn = mdp.step(states, 0 * states, np.random.default_rng(seed))
        return drawn, np.asarray(ggpi.q_star(mdp, rewards[seed], 0.9))

    assert_same(in_threads(numbers, seeds), map(numbers, seeds))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exact", "learned"])
def test_threads_share_an_agent(kind):
    """A new agent, so that the threads also race to compile; rewards of one kind share its programs."""
    if kind == "exact":
        mdp, policies, rng = random_mdp(12, is_sparse=False)
        ghms = ggpi.exact_ghms(mdp, policies, gamma=0.9, alpha=0.2)
        states, reward = rng.integers(12, size=16), rng.normal(size=12)
    else:
        ghms = learned_models()
        states = np.random.default_rng(0).normal(size=(16, 2)).astype(np.float32)
        reward = ggpi.rewards.target([0.5, 0.5], 1.0)
    agent = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=20)

    def numbers(i):
        key = jax.random.key(i)
        plan = agent.plan(states[i], key=key)
        return plan.value, plan.action, agent.act(states[i], key=key)

    assert_same(in_threads(numbers, range(16)), map(numbers, range(16)))


def test_threads_share_a_graph():
    """New ones, so that the threads race to make the parts that are made lazily; each builds and extends some, too."""
    ghms, data = corridor.models(), corridor.states(count=2_000)
    goals = np.linspace(0, corridor.LENGTH, 16)

    def made():
        return ggpi.jumpy_graph(
            ghms, data, num_landmarks=30, num_jumps=4, num_neighbours=2, key=jax.random.key(0)
        )

    def numbers_of(graph):
        def numbers(goal):
            reward = ggpi.rewards.target([goal], 5.0, (0,))
            agent = ggpi.GGPIAgent(ghms, reward, depth="inf", graph=graph, num_samples=8)
            plan = agent.plan(data[0], key=jax.random.key(int(goal)))
            parts = plan.value, plan.best, plan.action, graph.solve(reward), graph.distance(data[:50])
            return *parts, graph.diagnose().ends

        return numbers

    shared, own = made(), made()
    assert_same(in_threads(numbers_of(shared), goals), map(numbers_of(own), goals))
    assert_same([graph.jumps.end for graph in in_threads(lambda _: made(), range(4))], [own.jumps.end] * 4)


@pytest.mark.slow
def test_threads_share_planners():
    ghms = learned_models()
    planner = ggpi.planning.SequentialHalving(400, ggpi.compositions(2, 3, 0.5), value_samples=5)
    shooting = ggpi.planning.CrossEntropy(9, rounds=2, depth=2, num_samples=4, value_samples=5)
    states = np.random.default_rng(0).normal(size=(16, 2)).astype(np.float32)
    reward = ggpi.rewards.target([0.5, 0.5], 1.0)

    def numbers(i):
        key = jax.random.key(i)
        plans = (ggpi.planning.plan(one, ghms, reward, states[i], key=key) for one in (planner, shooting))
        return [(plan.value, plan.action, plan.mean) for plan in plans]

    assert_same(in_threads(numbers, range(16)), map(numbers, range(16)))


@pytest.mark.slow
def test_threads_collect_diagnose_and_distil(tmp_path):
    """Each with an environment and a directory of its own."""
    policies = direction_policies()[:2]
    shape, loss = ggpi.FlowMatchingConfig(width=8, depth=1), TD2CFM(n_step=5)
    recipe = ggpi.Recipe(shape, loss, batch_size=16, steps=2)
    data = ggpi.collect(GymVectorEnv(ggpi.envs.PointMass(), 4, 20), policies, 200, switch_every=10, seed=9)
    ghms = ggpi.fit(policies, data, gamma=0.9, alpha=0.5, recipe=recipe, key=jax.random.key(0))

    def numbers(i, place):
        key = jax.random.key(i)
        own = ggpi.collect(GymVectorEnv(ggpi.envs.PointMass(), 4, 20), policies, 200, switch_every=10, seed=i)
        student = ggpi.distil(
            ghms, own, steps=2, recipe=ggpi.Recipe(batch_size=16), out=place / str(i), key=key
        )
        about = ggpi.diagnose(student, None, own, num_pairs=2, num_samples=4, key=key)
        leaves = jax.tree.leaves(eqx.filter(student.models, eqx.is_array))
        return own.state, own.action, leaves, [list(one.values()) for one in about[policies[0].name].values()]

    found = in_threads(lambda i: numbers(i, tmp_path / "threads"), range(8))
    assert_same(found, [numbers(i, tmp_path / "alone") for i in range(8)])


def test_threads_share_a_learned_model():
    model = learned_models().segment(0, None)
    sample = eqx.filter_jit(lambda model, key: model.sample(np.zeros(2), np.zeros(1), key=key))
    keys = jax.random.split(jax.random.key(0), 200)
    assert_same(in_threads(lambda key: sample(model, key), keys), [sample(model, key) for key in keys])


def learned_models():
    """μ of two policies at two horizons, as `fit` gives them before its first step."""
    states, spec = np.random.default_rng(0).normal(size=(50, 2)), ggpi.StateSpec(("x", "y"))
    frame = fit_frame(states, states[:, :1], states, spec, None)
    models = [ggpi.ghm.vae.VAEConfig(width=8, depth=1).build(frame, key=jax.random.key(i)) for i in range(2)]
    policies = tuple(linear_policy([[gain, 0.0]], 0.0, 0.1, f"gain {gain}") for gain in (-1.0, 1.0))
    return ggpi.GHMs(policies, 0.8, (0.5,), (stack(models), stack(models)))
