"""Objects that threads share give each of them the numbers that a single thread gets."""

from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.sparse

import ggpi
import ggpi.ghm.vae
from ggpi._jax.batching import stack
from ggpi.ghm.coordinates import fit_frame
from ggpi.mdp import resolvent
from ggpi.policies.linear import linear_policy

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
