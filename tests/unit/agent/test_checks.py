"""What an agent cannot work with is refused in words, before JAX reads a nearest entry or NaN wins a comparison."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi import rewards
from ggpi.agent.checks import _check_depth, checked_set, warn_if_slow
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.vae import VAEConfig
from ggpi.storage.objects import Foreign

KEY = jax.random.key(0)


class Still(eqx.Module):
    """A policy that does nothing."""

    name: str

    def sample(self, state, *, key):
        return jnp.zeros(1)


def learned(policy=None, size=2):
    spec = ggpi.StateSpec(tuple("xyz"[:size]))
    frame = fit_frame(np.ones((2, size)), np.ones((2, 1)), np.ones((2, size)), spec, None)
    model = VAEConfig(width=4, depth=1).build(frame, key=KEY)
    return ggpi.GHMs((policy or Still("still"),), 0.9, (), (jax.tree.map(lambda x: x[None], model),))


@pytest.fixture(scope="module")
def finite():
    mdp = ggpi.TabularMDP(np.full((6, 4, 6), 1 / 6))
    ghms = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy(np.full((6, 4), 0.25))], gamma=0.9, alpha=())
    return ggpi.GGPIAgent(ghms, np.ones(6), depth=1, num_samples=2)


@pytest.fixture(scope="module")
def vectors():
    return ggpi.GGPIAgent(learned(), rewards.target((0.0, 0.0), 1.0), depth=1, num_samples=2)


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        (np.ones(5), r"a state reward of these models has shape \(6,\), got \(5,\)"),
        (np.ones((6, 2)), r"state_action .* \(6, 4\), got \(6, 2\)"),
        (rewards.arrival(np.ones(7)), r"arrival .* \(6,\), got \(7,\)"),
    ],
)
def test_array_rewards_have_the_size_of_the_mdp(finite, reward, words):
    with pytest.raises(ValueError, match=words):
        finite.with_reward(reward)
    with pytest.raises(ValueError, match=words):
        ggpi.GGPIAgent(finite.ghms, reward, depth=1)


def test_sets_are_closed_and_first_actions_can_be_scored(finite):
    ghms = ggpi.exact_ghms(
        ggpi.TabularMDP(np.full((2, 2, 2), 0.5)), [np.full((2, 2), 0.5)] * 2, 0.9, (0.5, 0.2)
    )
    assert finite.first_actions == "all"
    with pytest.raises(ValueError, match="not suffix-closed; it lacks π1"):
        ggpi.GGPIAgent(ghms, np.ones(2), gsps=[ggpi.GSP((0, 1), (0.5,))])
    with pytest.raises(ValueError, match="depth 2 needs models of one α"):
        ggpi.GGPIAgent(ghms, np.ones(2), depth=2)
    assert ggpi.GSP((0, 1, 0), (0.5, 0.2)) in checked_set(ghms, 3, None), "one α for each switch"
    with pytest.raises(ValueError, match="at least 1, got 0"):
        ggpi.GGPIAgent(ghms, np.ones(2), depth=1, first_actions=0)


def test_a_batch_has_as_many_states_as_rewards():
    agent = ggpi.GGPIAgent(learned(), rewards.targets(np.zeros((3, 2)), 1.0), depth=1, num_samples=2)
    with pytest.raises(ValueError, match=r"there are 3 rewards.*got a batch \[2\]"):
        agent.act(np.zeros((2, 2)), key=KEY)


@pytest.mark.parametrize("state", [6, 9999, -5, 0.5, np.nan, [0, 7]])
def test_numbered_states_have_a_range(finite, state):
    with pytest.raises(ValueError, match="whole numbers from 0 to 5, got"):
        finite.act(state, key=KEY)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ([0.0, np.nan], r"finite numbers, got nan at index \(1,\)"),
        ([[0.0, 0.0], [np.inf, 0.0]], r"got inf at index \(1, 0\)"),
        (np.zeros((0, 2)), r"no state to act in: the batch has shape \[0, 2\]"),
    ],
)
def test_vector_states_are_finite_and_there(vectors, state, words):
    with pytest.raises(ValueError, match=words):
        vectors.act(state, key=KEY)
    with pytest.raises(ValueError, match=words):
        vectors.plan(state, key=KEY)


def test_array_rewards_do_not_pay_vectors(vectors):
    with pytest.raises(
        ValueError, match=r"an array \(5,\) .* here a state is a vector \(2,\): give a function"
    ):
        vectors.with_reward(np.ones(5))


def test_rewards_read_numbers_that_a_state_has():
    spec = ggpi.StateSpec(("x", "y", "z"))
    for reward in (
        rewards.target([0.0, 0.0], 1.0),
        rewards.targets([[0.0, 0.0]], 1.0),
        rewards.features({"z": 1.0}, spec),
    ):
        with pytest.raises(
            ValueError, match=r"reads the numbers \(.*\) of the state, which has 1 \(0 to 0\)"
        ):
            ggpi.GGPIAgent(learned(size=1), reward, depth=1)


@pytest.mark.parametrize(
    ("terminal", "words"),
    [
        (
            lambda s: s[0] > 2 or s[0] < -2,
            r"terminal is a JAX function of one state \[2\]: use jnp, and \|, &",
        ),
        (lambda s: s > 2, r"one truth value for one state of shape \[2\], got shape \[2\]"),
        (lambda s, a: True, "terminal raised TypeError"),
    ],
)
def test_terminal_is_tried_on_its_own(terminal, words):
    with pytest.raises(ValueError, match=words):
        ggpi.GGPIAgent(learned(), rewards.target((0.0, 0.0), 1.0), depth=1, terminal=terminal)


def test_policies_that_were_not_saved_are_asked_for():
    with pytest.raises(ValueError, match=r"without the code of mine; .*ggpi\.load\(path, policies="):
        ggpi.GGPIAgent(learned(Foreign("mine", "module:Mine")), rewards.target((0.0, 0.0), 1.0), depth=1)


@pytest.mark.parametrize(("num_policies", "deepest"), [(4, 8), (2, 17), (1000, 1), (200_000, 0)])
def test_a_depth_that_is_too_large_says_which_is_not(num_policies, deepest):
    _check_depth(num_policies, deepest)
    words = rf"depth {deepest + 4} over {num_policies} policies makes .* at most {deepest}, fewer policies"
    with pytest.raises(ValueError, match=words):
        _check_depth(num_policies, deepest + 4)
    _check_depth(1, 10_000)


def test_depth_12_raises_before_it_starts():
    mdp = ggpi.envs.four_rooms()
    ghms = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.constant(mdp, a) for a in range(4)], 0.9, 0.1)
    with pytest.raises(ValueError, match="4\\^12 switching policies"):
        ggpi.GGPIAgent(ghms, mdp.indicator((1, 11)), depth=12)


def test_slow_actions_are_announced():
    some = ggpi.compositions(2, 3, 0.5)
    warn_if_slow(some, 100)
    with pytest.warns(UserWarning, match="8 switching policies with 1000000 samples each: .* roughly 32 s"):
        warn_if_slow(some, 1_000_000)
    warn_if_slow(ggpi.compositions(2, 7, 0.5), 10)
    with pytest.warns(UserWarning, match="depth 8, 256 switching policies .* at least 16 s more, to compile"):
        warn_if_slow(ggpi.compositions(2, 8, 0.5), 10)
