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
