"""Discrete actions: the experiment's form, its simulator, and its oracle."""

import sys

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ggpi.lab.cells import as_stored
from ggpi.lab.discrete import control as experiment
from ggpi.lab.discrete import control_figure as experiment_figure
from ggpi.lab.discrete.environments import WORLDS
from ggpi.lab.discrete.oracle import Oracle
from ggpi.rewards import arrival, target


@pytest.mark.slow
def test_the_tiny_run_has_every_way_of_acting():
    config = experiment.PRESETS["tiny"]
    metrics = as_stored(experiment.run(config))
    (panel,) = metrics["panels"]
    for scores in panel["tasks"].values():
        names = [score["name"] for score in scores]
        assert names[:3] == ["left", "right", "random switching"]
        for mode in experiment.MODES:
            assert {f"{mode}, depth 1", f"{mode}, no terminal"} <= set(names)
        assert names[-2:] == ["head, true futures", "all, true futures"]
    assert len(experiment_figure.table(metrics)) == len(panel["tasks"])
    assert len(experiment_figure.plot(metrics).axes) == len(panel["tasks"])


def test_a_lacking_package_is_named_before_anything_runs(monkeypatch):
    for module in [module for module in sys.modules if module.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(ModuleNotFoundError, match=r"LunarLander-v3' needs .*'\.\[box2d\]'"):
        experiment.run(experiment.Config(), lambda tasks: pytest.fail("a cell was computed"))


def test_the_simulator_is_gymnasiums_cart_pole():
    """Up to single precision, over 200 random steps from random states, ends included."""
    world, env = WORLDS["cart-pole"], gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(0)
    assert world.step is not None and world.terminal is not None
    for _ in range(200):
        state, action = rng.uniform(-1, 1, 4) * [2.4, 3, 0.2, 3], int(rng.integers(2))
        env.reset(seed=0)
        env.state = state
        observed, _, terminated, _, _ = env.step(action)
        np.testing.assert_allclose(world.step(np.float32(state), action), observed, rtol=1e-5, atol=1e-5)
        near_the_end = min(abs(abs(observed[0]) - 2.4), abs(abs(observed[2]) - 0.2095)) < 1e-4
        assert near_the_end or bool(world.terminal(observed)) == terminated


def test_the_oracle_goes_where_the_reward_is():
    """At x = 0 and at rest only the policy that runs to the right is ever paid there, within 100 steps."""
    oracle = Oracle(WORLDS["cart-pole"], target((1.0,), 0.3, (0,)), 0.99, "head", num_episodes=2)
    states = np.zeros((3, 4), np.float32)
    q = jax.vmap(lambda s: oracle._q(s, WORLDS["cart-pole"].policies["right"], jax.random.key(0)))(states)
    other = jax.vmap(lambda s: oracle._q(s, WORLDS["cart-pole"].policies["left"], jax.random.key(0)))(states)
    assert (np.asarray(q) > 1).all() and (np.asarray(other) == 0).all()
    assert oracle.act(states, key=jax.random.key(1)).shape == (3,)


def test_an_episode_is_paid_until_it_ends():
    """A pole that leans is paid 1 in each step until it has fallen, the fall included.

    The policy takes its other action with a probability of 1e-13.
    """
    world = WORLDS["cart-pole"]
    assert world.step is not None and world.terminal is not None
    oracle = Oracle(world, arrival(lambda s: 1.0), 0.5, "all", num_episodes=1)
    state = begin = np.array([0.0, 0.0, 0.15, 0.3], np.float32)
    expected, weight = 0.0, 1.0
    while weight:
        state = world.step(state, 0)
        expected, weight = expected + weight, 0.0 if world.terminal(state) else 0.5 * weight
    total = oracle._episode(begin, 0, lambda s: jnp.array([15.0, -15.0]), jax.random.key(0))
    assert 1 < expected < 2 and float(total) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "lunar-lander"])
def test_policies_act_in_their_world(name):
    world = WORLDS[name]
    env = gymnasium.make(world.env)
    state, _ = env.reset(seed=0)
    for policy in world.base_policies():
        assert env.action_space.contains(int(policy.sample(state, key=jax.random.key(0))))


@pytest.mark.parametrize("given", [{"worlds": ("pond",)}, {"worlds": ()}, {"depths": (0,)}])
def test_bad_config(given):
    with pytest.raises(ValueError, match=r"worlds are among|depths are at least 1"):
        experiment.Config(**given)
