"""Agents whose planners draw plans: no set and no depth of the agent's own."""

import jax
import numpy as np
import pytest

import ggpi
from ggpi.planning import BeamSearch, CrossEntropy, RandomShooting

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def ghms():
    mdp = ggpi.envs.four_rooms()
    return ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.constant(mdp, a) for a in range(4)], 0.9, (1 / 9, 1.0))


@pytest.fixture(scope="module")
def reward(ghms):
    return ggpi.rewards.state(ghms.mdp.indicator((1, 11)))


def test_a_plan_of_a_batch(ghms, reward):
    """Next to the goal, right (2) or up (3) reaches it at once: every plan that starts with it beats all others by far.

    The beam tries every policy: the choice is certain.
    """
    agent = ggpi.GGPIAgent(ghms, reward, planner=BeamSearch(4, num_samples=20))
    states = np.array([ghms.mdp.index((1, 10)), ghms.mdp.index((2, 11))])
    plan = agent.plan(states, key=KEY)
    assert plan.action.tolist() == [2, 3]
    assert [plan.gsps[int(i)].head for i in plan.best] == plan.search.head.tolist() == [2, 3]
    assert {alpha for gsp in plan.gsps for alpha in gsp.alphas} <= set(ghms.alphas)
    assert plan.value.shape == (2, len(plan.gsps)) and plan.search.plans.policies.shape == (2, 8, 2)
    rows = np.arange(2)
    np.testing.assert_allclose(plan.value[rows, plan.best], plan.search.value)
    np.testing.assert_allclose(plan.stderr[rows, plan.best], plan.search.stderr)
    assert agent.with_reward(ggpi.rewards.state(ghms.mdp.indicator((1, 9)))).act(states, key=KEY)[0] == 0


@pytest.mark.slow
def test_a_trace_sees_every_round(ghms, reward):
    """A uniform draw of 64 plans lacks every plan that starts with right with probability (3/4)⁶⁴ < 1e-7."""
    agent = ggpi.GGPIAgent(ghms, reward, planner=CrossEntropy(64, 3, num_samples=20))
    x, seen = ghms.mdp.index((1, 10)), []
    plan = agent.plan(x, trace=seen.append, key=KEY)
    assert plan.action == 2 and plan.value.shape == (1,) and plan.gsps[0].head == 2
    assert [one.round for one in seen] == [0, 1, 2] and [one.alive.shape for one in seen] == [(1, 8)] * 3
    assert [int(one.draws[0]) for one in seen] == [64 * 2 * 20 * i for i in (1, 2, 3)]
    assert all(np.isfinite(one.value).all() and np.isinf(one.gap).all() for one in seen)


@pytest.mark.slow
def test_a_warm_start_with_a_time_limit(ghms, reward):
    agent = ggpi.GGPIAgent(ghms, reward, planner=CrossEntropy(64, 3, num_samples=20))
    x, seen = ghms.mdp.index((1, 10)), []
    plan = agent.plan(x, key=KEY)
    again = agent.plan(x, warm=plan, seconds=0.0, trace=seen.append, key=KEY)
    assert len(seen) == 1 and again.search.survivors.tolist() == [[8, 0, 0]] and again.action == 2


def test_bad_input(ghms, reward):
    for settings, said in (
        ({"depth": 2}, "RandomShooting draws its plans: give the depth to the planner"),
        ({"gsps": ggpi.compositions(4, 1, 1.0)}, "no set to the agent"),
        ({"first_actions": 3}, "give it to the planner"),
    ):
        with pytest.raises(ValueError, match=said):
            ggpi.GGPIAgent(ghms, reward, planner=RandomShooting(), **settings)
    with pytest.raises(ValueError, match="num_plans is at least that"):
        ggpi.GGPIAgent(ghms, reward, planner=RandomShooting(4))
    with pytest.raises(ValueError, match="none for α"):
        ggpi.GGPIAgent(ghms, reward, planner=RandomShooting(alphas=0.5))
