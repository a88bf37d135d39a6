"""Sampled estimates: which noise they share, what their standard errors are, and what they reject."""

import itertools
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import ggpi
import ggpi.evaluation
from ggpi import rewards
from ggpi.envs import one_state
from ggpi.evaluation import sampled
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


class Digits(eqx.Module):
    """Writes a random digit of base 64, not 0, behind the state's last one; draws it from its key or a child of it."""

    child: int | None = eqx.field(static=True, default=None)

    def sample(self, state, action, *, key):
        return self.sample_onward(state, key=key)

    def sample_onward(self, state, *, key):
        key = key if self.child is None else jax.random.split(key)[self.child]
        return state % BASE * BASE + jax.random.randint(key, jnp.shape(state), 1, BASE)


class InOrder(eqx.Module):
    """Sample number i of every pair is state i."""

    def sample(self, state, action, *, key):
        return jnp.broadcast_to(jnp.arange(state.shape[1]), state.shape)


def made_of(*samplers, num_states=BASE**2):
    """Models with samplers of our own; the MDP only says how many states there are."""
    mdp = ggpi.TabularMDP(scipy.sparse.eye_array(num_states, format="csr"))
    models = [SimpleNamespace(mdp=mdp, sampler=sampler) for sampler in samplers]
    policies = tuple(np.ones((num_states, 1)) for _ in samplers)
    return ggpi.GHMs(policies, 0.9, (0.5,), (models, models))


@pytest.mark.parametrize("children", [(None, None), (0, None), (1, None)])
def test_a_segments_key_leads_to_no_other_segments_noise(children):
    """Chains of two digits: how often are they equal? One in 63 if they are independent, whatever a model does with
    its key; in all chains if a segment's key, or one split off it, is used again for the next segment.

    A Binomial(2000, 1/63) exceeds 200 with a probability below 1e-60.
    """
    first, second = divmod(np.arange(BASE**2), BASE)
    ghms = made_of(Digits(children[0]), Digits(children[1]))
    gsp, n = ggpi.GSP((0, 1), (0.5,)), 2000
    estimate = ggpi.evaluation.evaluate_gsp_sampled(
        gsp, ghms, rewards.arrival(first == second), 0, 0, num_samples=n, key=jax.random.key(0)
    )
    last = composition_weights(0.9, (0.5,))[1]
    assert estimate.mean * (1 - 0.9) / last * n < 200


def test_every_composition_of_a_random_number_has_noise_of_its_own():
    """The last two digits of chains of a Geometric number of segments; the bound is that of the test above."""
    first, second = divmod(np.arange(BASE**2), BASE)
    n = 2000
    estimate = ggpi.evaluation.evaluate_janner_sampled(
        0, made_of(Digits()), rewards.arrival(first == second), 0, 0, num_samples=n, key=jax.random.key(0)
    )
    assert estimate.mean * (1 - 0.9) * n < 200


def test_siblings_have_noise_of_their_own():
    """0 → 1 and 0 → 2 share their first segment, and nothing after it; 1 → 0 shares nothing with them.

    By chance 64 states would all have to coincide.
    """
    ghms = made_of(Digits(), Digits(), Digits())
    reward = rewards.arrival(np.arange(BASE**2) % BASE)
    gsps = [ggpi.GSP(p, (0.5,) * (len(p) - 1)) for p in ((0, 1), (0, 2), (1, 0), (1,), (2,))]
    values = [
        q[:64, 0] for q in ggpi.evaluate_sampled(gsps, ghms, reward, num_samples=1, key=jax.random.key(0))
    ]
    for i, j in itertools.combinations(range(5), 2):
        assert not np.allclose(values[i], values[j])
    assert len(np.unique(values[3])) > 8, "states have noise of their own, too"


def test_every_segment_is_paid():
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
    ghms, reward = made_of(InOrder()), np.arange(BASE**2) ** 1.5
    estimate = ggpi.evaluation.evaluate_gsp_sampled(
        ggpi.GSP((0,)), ghms, reward, [5, 6], 0, num_samples=n, key=jax.random.key(0)
    )
    earned = reward[:n]
    np.testing.assert_allclose(estimate.mean, reward[[5, 6]] + 9 * earned.mean(), rtol=1e-5)
    np.testing.assert_allclose(estimate.stderr, 9 * earned.std(ddof=1) / n**0.5, rtol=1e-4)


def test_parts_of_a_large_estimate_have_noise_of_their_own(monkeypatch):
    """Two pairs at a time, the last part padded: every pair keeps its place, and parts do not share their key.

    Of 21 digits at most four differ with a probability below C(63, 4) · (4/63)²¹ < 1e-19.
    """
    monkeypatch.setattr(sampled, "CHUNK", 2)
    reward = rewards.arrival(np.arange(BASE**2) % BASE)
    state = np.zeros(21, int)
    estimate = ggpi.evaluation.evaluate_gsp_sampled(
        ggpi.GSP((0,)), made_of(Digits()), reward, state, 0, num_samples=1, key=jax.random.key(0)
    )
    assert estimate.mean.shape == (21,)
    assert len(np.unique(estimate.mean)) > 4
    reward = rewards.state(np.arange(BASE**2))
    ghms = made_of(InOrder())
    state = np.arange(9).reshape(3, 3)
    estimate = ggpi.evaluation.evaluate_gsp_sampled(
        ggpi.GSP((0,)), ghms, reward, state, 0, num_samples=1, key=jax.random.key(0)
    )
    np.testing.assert_allclose(estimate.mean, state)


def test_a_single_chain_has_an_infinite_standard_error():
    estimate = ggpi.evaluation.evaluate_gsp_sampled(
        ggpi.GSP((0,)), made_of(InOrder()), np.ones(BASE**2), 1, 0, num_samples=1, key=jax.random.key(0)
    )
    assert estimate.stderr == np.inf
