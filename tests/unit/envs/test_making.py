"""What people give to `collect` by mistake: environments and policies, and what the errors advise."""

import sys
from functools import partial
from inspect import unwrap as untyped  # as users call it: types are checked in tests only

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ggpi import collect, fit
from ggpi.diagnosis import true_futures
from ggpi.policies.linear import MixedPolicy

BOTH = [MixedPolicy(jnp.eye(2)[action], f"always {action}") for action in range(2)]


class Count(gymnasium.Env):
    """Counts steps, nine in an episode; `bad` says after which of them it observes NaN, for each episode."""

    observation_space, action_space = Box(-np.inf, np.inf, (3,)), Discrete(2)

    def __init__(self, bad=()):
        self.bad, self.episode = bad, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.episode = 0, self.episode + 1
        return self.seen(), {}

    def step(self, action):
        self.time += 1
        return self.seen(), 0.0, False, self.time == 9, {}

    def seen(self):
        is_bad = self.bad[self.episode : self.episode + 1] == (self.time,)
        return np.full(3, np.nan if is_bad else self.time, np.float32)


class OldStep(Count):
    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated or truncated, info


class OldReset(Count):
    def reset(self, *, seed=None):
        return super().reset(seed=seed)


def test_images_are_named_as_such():
    env = Count()
    env.observation_space = Box(0, 255, (4, 4, 3), np.uint8)
    with pytest.raises(TypeError, match=r"vectors, got images .* \(4, 4, 3\).*TransformObservation"):
        collect(env, BOTH, 10)


@pytest.mark.parametrize("old", [OldStep, OldReset])
def test_environments_of_the_old_gym_are_named(old):
    with pytest.raises(
        ValueError, match=rf"environment {old.__name__}: .*old Gym.*terminated, truncated, info"
    ):
        collect(old(), BOTH, 10)


def test_other_errors_of_an_environment_are_its_own():
    env = Count()
    env.step = lambda action: {}["missing"]
    with pytest.raises(KeyError, match="missing"):
        collect(env, BOTH, 10)


@pytest.mark.parametrize("mode", [*AutoresetMode])
@pytest.mark.parametrize("bad", [(0,), (4,), (9,), (-1, -1, 5), (-1, 0)])
def test_nan_names_the_environment_and_the_step(mode, bad):
    vector = SyncVectorEnv([Count, partial(Count, bad)], autoreset_mode=mode)
    with pytest.raises(
        ValueError, match=rf"Count gave .* not finite in step {bad[-1]} of an episode: \[nan nan"
    ):
        collect(vector, BOTH, 100)


def test_environments_that_cannot_be_made_are_named():
    with pytest.raises(ValueError, match=r"environment 'Nowhere-v0': .* named with their module"):
        collect("Nowhere-v0", BOTH, 10)
    with pytest.raises(ModuleNotFoundError, match=r"'nowhere:Boat-v0': there is no module 'nowhere'"):
        collect("nowhere:Boat-v0", BOTH, 10)


@pytest.mark.parametrize(("name", "extra"), [("LunarLander-v3", "box2d"), ("HalfCheetah-v5", "ant")])
def test_packages_that_are_not_installed_are_named(name, extra, monkeypatch):
    for module in [module for module in sys.modules if module.startswith("gymnasium.envs.")]:
        if "box2d" in module or "mujoco" in module:
            monkeypatch.delitem(sys.modules, module)
    for module in ("Box2D", "mujoco"):
        monkeypatch.setitem(sys.modules, module, None)  # what Python takes for a module that is not there
    with pytest.raises(ModuleNotFoundError, match=rf"{name}' needs .*pip install '\.\[{extra}\]'"):
        collect(name, BOTH, 10)
    with pytest.raises(ModuleNotFoundError, match=f"{name}' needs"):
        true_futures(name, BOTH, 0, 0.9)


def test_the_maze_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium_robotics", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"no module 'gymnasium_robotics' .*pip install '\.\[maze\]'"
    ):
        collect("gymnasium_robotics:PointMaze_UMaze-v3", BOTH, 10, keys=["observation"])


class PPO:
    """Takes the place of the class in Stable-Baselines3, which this test does not need."""

    __module__ = "stable_baselines3.ppo.ppo"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            [lambda state: 0],
            r"policy 0 is the function <lambda>: wrap it with ggpi.policy_from\(lambda, env.action_space\)",
        ),
        ([BOTH[0], "a.zip"], r"policy 1 is the path 'a.zip': load it first, with ggpi.load_sb3"),
        ([PPO()], r"policy 0 is a PPO of Stable-Baselines3: save it with .*ggpi.load_sb3\('policy.zip'\)"),
        ([MixedPolicy], "policy 0 is the class MixedPolicy: pass an instance"),
        ([3], r"policy 0 is a int: a policy has sample\(state, \*, key\)"),
        (BOTH[0], r"policies must be a list, such as \[policy\]; got one MixedPolicy"),
        ([], "at least one policy, such as .* got none"),
        ("a.zip", "policies must be a list, .* got the path 'a.zip'"),
    ],
)
def test_what_is_not_a_policy_yet(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        untyped(collect)(Count(), given, 10)
    with pytest.raises((TypeError, ValueError), match=words):
        untyped(fit)(given, collect(Count(), BOTH, 10), gamma=0.9, alpha=0.1, key=jax.random.key(0))


def test_a_number_of_steps_is_whole():
    with pytest.raises(TypeError, match=r"num_steps is a whole number, got 10\.5"):
        untyped(collect)(Count(), BOTH, 10.5)
