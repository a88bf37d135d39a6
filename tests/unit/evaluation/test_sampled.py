"""Sampled estimates: which noise they share, what their standard errors are, and what they reject."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.evaluation
from ggpi import rewards
from ggpi.envs import one_state
from ggpi.evaluation import evaluate_states_sampled, queries, walking
from ggpi.ghm.samplers import Composing
from ggpi.switching import composition_weights


def test_compositions_need_models_of_beta():
    mdp = ggpi.TabularMDP(np.full((2, 1, 2), 0.5))
    ghms = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy(np.ones((2, 1)))], gamma=0.9, alpha=())
    given, options = (0, ghms, np.ones(2), 0, 0), {"num_samples": 2, "key": jax.random.key(0)}
    with pytest.raises(
        ValueError, match=r"a chain of 3 segments needs models of a horizon β.* alphas is \(\)"
    ):
        ggpi.evaluation.evaluate_markov_sampled(*given, num_segments=3, **options)
    with pytest.raises(ValueError, match=r"alphas is \(\)"):
        ggpi.evaluation.evaluate_janner_sampled(*given, **options)
    assert ggpi.evaluation.evaluate_markov_sampled(*given, **options).mean == pytest.approx(10, rel=1e-5)


# Models that are noise alone: samples that share a key are equal.

BASE = 64


class Jumps(eqx.Module):
    """A Sampler without actions, for two policies or three."""

    gamma: float = eqx.field(static=True, default=0.9)
    terminal: None = None

    def act(self, policies, state, *, key):
        return jnp.zeros_like(state)

    def jump(self, policies, horizon, state, action, *, key):
        return self.onward(policies, horizon, state, key=key)


class Digits(Jumps):
    """Writes a random digit of base 64, not 0, behind the state's last one; draws it from its key or a child of it."""

    children: tuple = eqx.field(static=True, default=(None, None, None))

    def onward(self, policies, horizon, state, *, key):
        child = self.children[policies[0]]
        key = key if child is None else jax.random.split(key)[child]
        return state % BASE * BASE + jax.random.randint(key, jnp.shape(state), 1, BASE)


class InOrder(Jumps):
    """Sample number i of every pair is state i."""

    num_samples: int = eqx.field(static=True, default=1)

    def onward(self, policies, horizon, state, *, key):
        return jnp.broadcast_to(jnp.arange(state.shape[1]) % self.num_samples, state.shape)


def sampled(gsps, sampler, reward, states, num_samples):
    """Values [N, states] of the only first action."""
    states = np.asarray(states)
    found = evaluate_states_sampled(
        gsps,
        sampler,
        reward,
        states.ravel(),
        np.zeros((states.size, 1), int),
        num_samples=num_samples,
        key=jax.random.key(0),
    )
    return [part[..., 0] for part in found]


@pytest.mark.parametrize("children", [(None, None), (0, None), (1, None)])
def test_a_segments_key_leads_to_no_other_segments_noise(children):
    """Chains of two digits: how often are they equal? One in 63 if they are independent, whatever a model does with
    its key; in all chains if a segment's key, or one split off it, is used again for the next segment.

    A Binomial(2000, 1/63) exceeds 200 with a probability below 1e-60.
    """
    first, second = divmod(np.arange(BASE**2), BASE)
    gsp, n = ggpi.GSP((0, 1), (0.5,)), 2000
    mean, _ = sampled([gsp], Digits(children=children), rewards.arrival(first == second), [0], n)
    last = composition_weights(0.9, (0.5,))[1]
    assert mean * (1 - 0.9) / last * n < 200


def test_every_composition_of_a_random_number_has_noise_of_its_own():
    """The last two digits of chains of a Geometric number of segments; the bound is that of the test above."""
    first, second = divmod(np.arange(BASE**2), BASE)
    n = 2000
    mean, _ = sampled(
        [ggpi.GSP((0,))],
        Composing(Digits(), jnp.array(0.1 / 0.55), 0.45),
        rewards.arrival(first == second),
        [0],
        n,
    )
    assert mean * (1 - 0.9) * n < 200


def test_siblings_have_noise_of_their_own():
    """0 → 1 and 0 → 2 share their first segment, and nothing after it; 1 → 0 shares nothing with them.

    By chance 64 states would all have to coincide.
    """
    reward = rewards.arrival(np.arange(BASE**2) % BASE)
    gsps = [ggpi.GSP(p, (0.5,) * (len(p) - 1)) for p in ((0, 1), (0, 2), (1, 0), (1,), (2,))]
    values, _ = sampled(gsps, Digits(), reward, np.arange(64), 1)
    for i, j in itertools.combinations(range(5), 2):
        assert not np.allclose(values[i], values[j])
    assert len(np.unique(values[3])) > 8, "states have noise of their own, too"


def test_every_segment_counts():
    """With one state nothing is random: three segments have their exact value."""
    mdp, reward = one_state()
    ghms = ggpi.exact_ghms(mdp, [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], 0.9, (0.5, 0.2))
    for gsp in (ggpi.GSP((0, 1, 0), (0.5, 0.2)), ggpi.GSP((1, 0, 1), (0.2, 0.5))):
        estimate = ggpi.evaluation.evaluate_gsp_sampled(
            gsp, ghms, reward, 0, 0, num_samples=2, key=jax.random.key(0)
        )
        assert estimate.mean == pytest.approx(ggpi.evaluate([gsp], ghms, reward)[0][0, 0], rel=1e-5)


def test_a_random_number_of_compositions_takes_the_long_time():
    """On a line X_T = T, of mean 1/(1−γ) = 10 and variance 90: 400 samples are off by 5 with probability < 1e-15."""
    following = np.minimum(np.arange(300) + 1, 299)[:, None]
    ghms = ggpi.exact_ghms(ggpi.TabularMDP(np.eye(300)[following]), [np.ones((300, 1))], 0.9, 0.5)
    reward = rewards.arrival(np.arange(300.0))
    estimate = ggpi.evaluation.evaluate_janner_sampled(
        0, ghms, reward, 0, 0, num_samples=400, key=jax.random.key(0)
    )
    assert abs(estimate.mean * (1 - 0.9) - 10) < 5


@pytest.mark.parametrize("n", [2, 7])
def test_standard_errors_have_bessels_correction(n):
    reward = np.arange(BASE**2) ** 1.5
    mean, stderr = sampled([ggpi.GSP((0,))], InOrder(num_samples=n), reward, [5, 6], n)
    np.testing.assert_allclose(mean[0], reward[[5, 6]] + 9 * reward[:n].mean(), rtol=1e-5)
    np.testing.assert_allclose(stderr[0], 9 * reward[:n].std(ddof=1) / n**0.5, rtol=1e-4)
    one = ggpi.evaluate_sampled(
        [ggpi.GSP((0,))], InOrder(num_samples=n), reward, 5, 0, num_samples=n, key=jax.random.key(0)
    )
    np.testing.assert_allclose([one.mean, one.stderr], [mean[:, 0], stderr[:, 0]], rtol=1e-5)


def test_parts_of_a_large_estimate_have_noise_of_their_own(monkeypatch):
    """Two pairs at a time, the last part padded: every pair keeps its place, and parts do not share their key.

    Of 21 digits at most four differ with a probability below C(63, 4) · (4/63)²¹ < 1e-19.
    """
    monkeypatch.setattr(queries, "LARGEST", 2)
    reward = rewards.arrival(np.arange(BASE**2) % BASE)
    mean, _ = sampled([ggpi.GSP((0,))], Digits(), reward, np.zeros(21, int), 1)
    assert mean.shape == (1, 21)
    assert len(np.unique(mean)) > 4
    reward = rewards.state(np.arange(BASE**2))
    mean, _ = sampled([ggpi.GSP((0,))], InOrder(), reward, np.arange(9), 1)
    np.testing.assert_allclose(mean, np.arange(9)[None])


def test_pairs_may_have_any_shape(monkeypatch):
    """And are drawn in parts."""
    monkeypatch.setattr(walking, "CHUNK", 4)
    mdp = ggpi.TabularMDP(np.eye(9)[np.repeat(np.arange(9)[:, None], 2, axis=1)])
    ghms = ggpi.exact_ghms(mdp, [np.full((9, 2), 0.5)], 0.0, ())
    r, state = np.arange(18.0).reshape(9, 2), np.arange(9).reshape(3, 3)
    found = ggpi.evaluation.evaluate_gsp_sampled(
        ggpi.GSP((0,)), ghms, r, state, [0, 1, 1], num_samples=2, key=jax.random.key(0)
    )
    np.testing.assert_allclose(found.mean, r[state, [0, 1, 1]])


def test_plans_of_a_set_draw_their_own_noise():
    """From every pair the future is uniform, so plans without a common beginning are uncorrelated over 4096 pairs:
    a correlation of .1 is 6.4 standard deviations, 1e-9 for six of them. Shared noise gives .9 and more.
    """
    mdp = ggpi.TabularMDP(np.full((64, 64, 64), 1 / 64))
    ghms = ggpi.exact_ghms(mdp, [np.full((64, 64), 1 / 64)] * 2, 0.9, 0.5)
    found = ggpi.evaluation.evaluate_pairs_sampled(
        ggpi.compositions(2, 2, 0.5),
        ghms,
        rewards.arrival(np.arange(64.0)),
        num_samples=1,
        key=jax.random.key(0),
    )
    correlation = np.corrcoef(np.asarray(found).reshape(4, -1))
    np.testing.assert_allclose(correlation, np.eye(4), atol=0.1)


def test_a_larger_set_compiles_nothing():
    """Policy iteration has one more policy in every iteration."""

    def compiled(num_policies):
        mdp = ggpi.TabularMDP(np.full((5, 2, 5), 0.2))
        ghms = ggpi.exact_ghms(mdp, [np.full((5, 2), 0.5)] * num_policies, 0.9, 0.5)
        gsps = ggpi.compositions(num_policies, 2, 0.5)
        ggpi.evaluation.evaluate_pairs_sampled(
            gsps, ghms, np.arange(10.0).reshape(5, 2), num_samples=3, key=jax.random.key(0)
        )
        return [function._cache_size() for function in (walking._advance, walking._finish)]

    assert compiled(2) == compiled(3)


def test_a_single_chain_has_an_infinite_standard_error():
    _, stderr = sampled([ggpi.GSP((0,))], InOrder(), np.ones(BASE**2), [1], 1)
    assert stderr == np.inf
