"""The tree of segments in worlds where every draw says where it comes from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.evaluation.rewards import SampledReward
from ggpi.evaluation.tree import draw, returns, tree_of
from ggpi.switching import composition_weights

GAMMA = 0.9
KEY = jax.random.key(7)
SETS = {
    "equal α": ggpi.compositions(3, 3, 0.5),
    "unequal α": ggpi.compositions(2, 3, (0.5, 0.25)),
    "some": ggpi.suffix_closure([ggpi.GSP((2, 0, 1), (0.25, 0.5)), ggpi.GSP((0, 2), (0.5,))]),
}
every_set = pytest.mark.parametrize("gsps", SETS.values(), ids=SETS)


class Host:
    """A Sampler in plain Python, without terminal states."""

    gamma, terminal = GAMMA, None

    def onward(self, policies, horizon, state, *, key):
        return self.jump(policies, horizon, state, None, key=key)


class Diary(Host):
    """Policy i writes the digit i + 1 behind the state where its segment starts.

    Its action is that digit behind the last one of the state: it tells where, and by whom.
    """

    def act(self, policies, x, *, key):
        return 10 * (x[..., 0] % 10) + jnp.array(policies, jnp.float32)[:, None] + 1

    def jump(self, policies, horizon, x, action, *, key):
        return 10 * x + jnp.array(policies, jnp.float32)[:, None, None] + 1


class Noise(Host):
    """Actions and ends are noise alone, of 48 bits: draws that share a key are equal, others are not."""

    def act(self, policies, x, *, key):
        return jax.random.uniform(key, (*x.shape[:2], 2))

    def jump(self, policies, horizon, x, action, *, key):
        return jax.random.uniform(key, (*x.shape[:2], 2))


def diary(start, policies):
    """What a chain's states read after each of its segments."""
    states = [start]
    for policy in policies:
        states.append(10 * states[-1] + policy + 1)
    return states[1:]


@every_set
def test_segments_start_where_those_before_them_ended(gsps):
    tree, paths = tree_of(gsps, GAMMA, "state")
    starts = jnp.array([[3.0], [4.0]])
    drawn = draw(tree, Diary(), starts, None, 2, form="state", key=KEY)
    for gsp, path in zip(gsps, paths, strict=True):
        for m, (block, place) in enumerate(path):
            expected = [[diary(start, gsp.policies)[m]] * 2 for start in (3, 4)]
            np.testing.assert_array_equal(drawn[m][block].x[place][..., 0], expected)
            assert tree.levels[m][block].is_leaf == (m == len(gsp) - 1)


def reward_of(x, *action):
    """Exact in single precision; no two states or actions have the same."""
    return x[0] % 97 + (100 * action[0] if action else 0.0)


@every_set
@pytest.mark.parametrize("form", ["state", "state_action", "arrival"])
def test_returns_are_those_of_the_theorem(gsps, form):
    """Thm F.1 term by term: both policies' actions count where one segment ends and the next starts."""
    tree, _ = tree_of(gsps, GAMMA, form)
    drawn = draw(tree, Diary(), jnp.array([[3.0], [4.0]]), None, 2, form=form, key=KEY)
    values = returns(tree, SampledReward(reward_of, form, 1 - GAMMA, None), jnp.array([[3.0], [4.0]]), drawn)
    for gsp, value in zip(gsps, np.asarray(values), strict=True):
        for start, found in zip((3, 4), value, strict=True):
            np.testing.assert_allclose(found, exact_return(gsp, start, form), rtol=1e-5)


def exact_return(gsp, start, form):
    def r(x, policy):
        return x % 97 + (100 * (10 * (x % 10) + policy + 1) if form == "state_action" else 0)

    w, states = composition_weights(GAMMA, gsp.alphas), diary(start, gsp.policies)
    ahead = w[-1] * r(states[-1], gsp.policies[-1])
    for m, alpha in enumerate(gsp.alphas):
        stays, switches = (r(states[m], policy) for policy in gsp.policies[m : m + 2])
        ahead += w[m] * ((1 - alpha) * stays + alpha * switches)
    if form == "arrival":
        return ahead / (1 - GAMMA)
    return r(start, gsp.head) + GAMMA / (1 - GAMMA) * ahead


@every_set
def test_every_draw_has_noise_of_its_own(gsps):
    """Start actions, ends and end actions of all segments, samples and states: no two are equal."""
    tree, _ = tree_of(gsps, GAMMA, "state_action")
    drawn = draw(tree, Noise(), jnp.zeros((2, 2)), None, 3, form="state_action", key=KEY)
    parts = [np.asarray(part).reshape(-1, 2) for level in drawn for block in level for part in block]
    rows = np.concatenate(parts)
    assert len(np.unique(rows, axis=0)) == len(rows)


@every_set
def test_first_actions_are_those_of_the_segments_own_policy(gsps):
    """`first` [K, P]: policy k's action in state p starts the segments of policy k, in every sample of state p."""
    tree, paths = tree_of(gsps, GAMMA, "state_action")
    first = jnp.array([[100.0, 101.0], [200.0, 201.0], [300.0, 301.0]])
    drawn = draw(tree, Diary(), jnp.zeros((2, 1)), first, 2, form="state_action", key=KEY)
    for gsp, path in zip(gsps, paths, strict=True):
        block, place = path[0]
        np.testing.assert_array_equal(
            drawn[0][block].start_action[place], np.repeat(first[gsp.head][:, None], 2, 1)
        )
        for m, (block, place) in list(enumerate(path))[1:]:
            expected = 10 * (gsp.policies[m - 1] + 1) + gsp.policies[m] + 1
            assert (np.asarray(drawn[m][block].start_action[place]) == expected).all()
