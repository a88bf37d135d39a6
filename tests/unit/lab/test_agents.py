"""Agents of the transfer experiments."""

import jax
import numpy as np
import pytest

from ggpi.lab import agents


@pytest.fixture
def asked(monkeypatch):
    """A planner that notes what each decision started from."""
    calls = []

    class Agent:
        def __init__(self, *args, **options): ...

        def with_reward(self, reward):
            return self

        def plan(self, states, *, warm, key):
            calls.append(None if warm is None else np.asarray(warm.search).tolist())
            places = np.arange(len(states)) + 10 * len(calls)
            return Plan(places, np.zeros((len(states), 2)))

    monkeypatch.setattr(agents, "GGPIAgent", Agent)
    return calls


@agents.dataclass(frozen=True)
class Plan:
    search: np.ndarray
    action: np.ndarray


def test_a_warm_planner_remembers_each_episode_and_forgets_where_one_is_new(asked, monkeypatch):
    decide = agents.WarmPlanner.__new__(agents.WarmPlanner)
    decide.agent, decide.radius, decide.places, decide.last = agents.GGPIAgent(), 1.0, {}, None
    one, two, three = np.arange(6.0).reshape(3, 2)
    for goals in ([one, two], [two], [two, one], [three]):
        decide(np.zeros((len(goals), 2)), np.array(goals), jax.random.key(0))
    assert asked == [None, [11], None, None]


def test_the_oracle_simulates_no_pair_twice(monkeypatch):
    """A batch of 40 rows of which the first 18 are pairs and the others repeat them: 32 rows are simulated."""
    seen = []

    def values(states, goals, key):
        seen.append(len(goals))
        return np.stack([states[:, 0], -states[:, 0]])

    monkeypatch.setattr(agents, "true_values", lambda *args: values)
    monkeypatch.setattr(
        agents, "sample_bank", lambda bank, heads, states, key: np.stack([heads, 10 * states[:, 0]], axis=1)
    )
    monkeypatch.setattr(agents, "PolicyBank", lambda policies: None)
    decide = agents.oracle(None, [0, 1], 0.9, 0.1, depth=1, num_samples=1, radius=1.0)
    rng = np.random.default_rng(0)
    rows = np.resize(np.arange(18), 40)
    states, goals = rng.normal(size=(18, 3))[rows], rng.normal(size=(18, 2))[rows]
    actions = decide(states, goals, jax.random.key(0))
    assert seen == [32]
    np.testing.assert_array_equal(actions[:, 0], states[:, 0] < 0)
    np.testing.assert_allclose(actions[:, 1], 10 * states[:, 0])
    decide(states[:5], goals[:5], jax.random.key(0))
    decide(states[:40], goals[[0] * 40], jax.random.key(0))
    assert seen == [32, 5, 32], "a batch may be smaller; equal goals of other states are other pairs"
