"""Agents with adaptive planners: the same words, fewer draws."""

import jax
import numpy as np
import pytest

import ggpi
from ggpi.agent.searching import default_planner
from ggpi.planning import BranchAndBound, Exhaustive, SequentialHalving

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def ghms():
    mdp = ggpi.envs.four_rooms()
    return ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.constant(mdp, a) for a in range(4)], 0.9, 1 / 9)


@pytest.fixture(scope="module")
def halving(ghms):
    reward = ggpi.rewards.state(ghms.mdp.indicator((1, 11)))
    return ggpi.GGPIAgent(ghms, reward, depth=2, planner=SequentialHalving(2000))


@pytest.mark.slow
def test_a_plan_has_the_same_fields(halving, ghms):
    """Next to the goal, right (2) reaches it at once: every plan that starts with it beats all others by far."""
    x = ghms.mdp.index((1, 10))
    plan = halving.plan(x, key=KEY)
    assert plan.value.shape == plan.stderr.shape == (16,) and plan.action.shape == ()
    assert plan.gsps[int(plan.best)].head == 2 and plan.action == 2
    assert plan.search.draws <= 2000 and plan.search.survivors.tolist() == [[8, 4, 2, 1]]
    assert np.isfinite(plan.stderr[plan.best])
    assert halving.act(x, key=KEY) == 2
    with pytest.raises(ValueError, match="keep no samples"):
        plan.samples(0)


@pytest.mark.slow
def test_batches_and_other_rewards(halving, ghms):
    states = np.array([ghms.mdp.index((1, 10)), ghms.mdp.index((2, 11))])
    assert halving.act(states, key=KEY).tolist() == [2, 3]
    other = halving.with_reward(ggpi.rewards.state(ghms.mdp.indicator((1, 9))))
    assert other.act(states[0], key=KEY) == 0


@pytest.mark.slow
def test_a_trace_sees_every_round_and_a_time_limit_ends_the_search(halving, ghms):
    x, seen = ghms.mdp.index((1, 10)), []
    halving.plan(x, trace=seen.append, key=KEY)
    assert [one.round for one in seen] == [0, 1, 2, 3]
    assert [int(one.alive.sum()) for one in seen] == [8, 4, 2, 1]
    assert (np.diff([int(one.draws[0]) for one in seen]) > 0).all()
    seen.clear()
    plan = halving.plan(x, seconds=0.0, trace=seen.append, key=KEY)
    assert len(seen) == 1 and plan.search.survivors.tolist() == [[8, 0, 0, 0]]


@pytest.mark.slow
def test_a_warm_start_takes_survivors_over(halving, ghms):
    x = ghms.mdp.index((1, 10))
    first = halving.plan(x, key=KEY)
    again = halving.plan(x, warm=first, key=KEY)
    assert again.search.survivors.tolist() == [[2, 1]]
    assert again.action == 2


@pytest.mark.slow
def test_branch_and_bound_certifies(ghms):
    """Right and up stay where the reward is, left and down leave it: two are left, and the gap is small enough."""
    reward = ggpi.rewards.arrival(ghms.mdp.indicator((1, 10), (1, 11)))
    agent = ggpi.GGPIAgent(ghms, reward, depth=1, planner=BranchAndBound(20_000, epsilon=0.1))
    plan = agent.plan(ghms.mdp.index((1, 10)), key=KEY)
    found = plan.search
    assert found is not None and float(found.gap[0]) <= 0.1 * 10 and int(found.draws[0]) < 20_000
    assert int(found.survivors[0, -1]) == 2 and plan.gsps[int(plan.best)].head in (2, 3)


@pytest.mark.slow
def test_exhaustive_is_what_agents_do_anyway(ghms):
    reward = ggpi.rewards.state(ghms.mdp.indicator((1, 11)))
    one = ggpi.GGPIAgent(ghms, reward, depth=2, num_samples=30, first_actions="head")
    other = ggpi.GGPIAgent(ghms, reward, depth=2, planner=Exhaustive(num_samples=30))
    x = ghms.mdp.index((1, 10))
    np.testing.assert_array_equal(one.plan(x, key=KEY).value, other.plan(x, key=KEY).value)


def test_the_default_depends_on_the_size_of_the_set_and_the_budget():
    small, large = ggpi.compositions(4, 4, 0.5), ggpi.compositions(4, 5, 0.5)
    assert isinstance(default_planner(small, 100), Exhaustive)
    assert isinstance(default_planner(large, 100), SequentialHalving)
    assert isinstance(default_planner(large, 3), Exhaustive)


def test_bad_input(ghms, halving):
    reward = ggpi.rewards.state(ghms.mdp.indicator((1, 11)))
    with pytest.raises(ValueError, match="budget of at least"):
        ggpi.GGPIAgent(ghms, reward, depth=2, planner=SequentialHalving(10))
    with pytest.raises(ValueError, match="first_actions is 'head'"):
        ggpi.GGPIAgent(ghms, reward, depth=2, planner=SequentialHalving(2000), first_actions="all")
    agent = ggpi.GGPIAgent(ghms, reward, depth=2)
    with pytest.raises(ValueError, match="for adaptive planners"):
        agent.plan(0, seconds=1.0, key=KEY)
