"""CETD, CEMC and LL2TD on models whose samples and densities are known, computed again with NumPy."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ggpi.data import Transitions
from ggpi.ghm.base import AbstractDensityGHM
from ggpi.learning.losses import CEMC, CETD, LL2TD, Problem, act, sample_ahead
from ggpi.policies.bank import PolicyBank

KEY = jax.random.key(0)


@eqx.filter_jit
def batch_of(loss, models, slow, dataset, bank, betas, size):
    return loss.batch(models, slow, Problem(dataset, bank, betas), size, key=KEY)


@eqx.filter_jit
def draw_of(loss, models, dataset, bank, betas, size):
    return loss.draw(models, Problem(dataset, bank, betas), size, key=KEY)


class Shifted(AbstractDensityGHM):
    """N(x + a + centre, scale²); its loss is the squared distance to x + centre."""

    frame: Any
    centre: jax.Array
    scale: jax.Array

    @property
    def noise_size(self):
        return 1

    def push(self, state, action, noise):
        return state + action + self.centre + self.scale * noise

    def log_prob(self, target, state, action):
        return jax.scipy.stats.norm.logpdf(target, state + action + self.centre, self.scale).sum()

    def loss(self, state, action, target, noise):
        return ((target - state - self.centre) ** 2).sum(-1)


class Constant(eqx.Module):
    """Always the same action."""

    action: jax.Array

    def sample(self, state, *, key):
        return self.action


class Noisy(eqx.Module):
    """Any action, as the key says."""

    def sample(self, state, *, key):
        return jax.random.normal(key, (1,))


def models(*centres, scale=1e-3):
    count = len(centres)
    return Shifted(None, jnp.asarray(centres, jnp.float32)[:, None], jnp.full((count, 1), scale))


def bank(*actions):
    return PolicyBank([Constant(jnp.array([action])) for action in actions])


def walks(num=6, length=8, terminated=False):
    """Episodes of unit steps, from 1000 e in episode e, in which policies 0 and 1 take turns of two steps."""
    episode, step = (part.ravel() for part in np.indices((num, length)))
    state = (1000.0 * episode + step).astype(np.float32)[:, None]
    last = step == length - 1
    return Transitions(
        state, np.ones_like(state), state + 1, last & terminated, last & (not terminated), step // 2 % 2, episode, step
    )  # fmt: skip


def test_targets_come_from_the_slow_copy():
    """The online models are 500 away, and get no say in their own targets."""
    data, loss = walks(), CETD(n_step=1, ema_decay=0.9)
    dataset, betas = loss.dataset(data, 1, [0.9]), jnp.array([0.9])
    _, batch = batch_of(loss, models(500.0), models(-300.0), dataset, bank(7.0), betas, 200)
    moved = np.asarray(batch.target - batch.state)[0, :, 0]
    asked = np.abs(moved - 1) > 1e-3
    assert 0 < asked.sum() < 200
    np.testing.assert_allclose(moved[asked], 1 + 7 - 300, atol=0.02)


def test_targets_are_constants_of_the_gradient():
    """d/dc (target − x − c)² = −2 (target − x − c), though the target was drawn from the same model."""
    data, loss = walks(), CETD(n_step=1)
    dataset, betas, given = loss.dataset(data, 1, [0.9]), jnp.array([0.9]), models(4.0)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def total(models):
        losses, batch = loss.batch(models, models, Problem(dataset, bank(0.0), betas), 100, key=KEY)
        return losses.sum(), batch

    (value, batch), gradient = total(given)
    off = np.asarray(batch.target - batch.state, float)[0, :, 0] - 4
    assert float(value) == pytest.approx((off**2).mean(), rel=1e-5)
    assert gradient.centre[0, 0] == pytest.approx(-2 * off.mean(), rel=1e-4)


def test_each_model_follows_and_asks_its_own_policy():
    """Models of policies 0, 1 at two horizons; at β = 0 nothing is asked, and all targets are one step away."""
    data, loss = walks(), CETD(n_step=20)
    dataset, betas = loss.dataset(data, 2, [0.9, 0.0]), jnp.array([0.9, 0.9, 0.0, 0.0])
    batch = draw_of(loss, models(100.0, 200.0, 300.0, 400.0), dataset, bank(30.0, 60.0), betas, 300)
    moved = np.asarray(batch.target - batch.state)[..., 0]
    np.testing.assert_allclose(moved[2:], 1, atol=1e-3)
    steps = np.asarray(batch.state)[..., 0] % 1000
    for k, jump in ((0, 130.0), (1, 260.0)):
        own = steps[k] // 2 % 2 == k
        first = own & (steps[k] % 2 == 0)
        asked = moved[k] > 50
        assert {1, 2, round(1 + jump), round(2 + jump)} >= set(np.round(moved[k][own]).tolist())
        assert (moved[k][first & asked] > 2 + jump - 0.5).all(), "a turn is followed to its end"
        assert asked.any() and (~asked).any() and first.any()
    assert batch.action.shape == (4, 300, 1) and (np.asarray(batch.action) == 1).all()


def test_an_end_of_the_world_is_not_left_and_a_cut_is():
    loss, betas = CETD(n_step=20), jnp.array([0.99])
    for terminated in (True, False):
        data = walks(terminated=terminated)
        dataset = loss.dataset(data, 1, [0.99])
        batch = draw_of(loss, models(500.0), dataset, bank(0.0), betas, 400)
        last = np.asarray(batch.state)[0, :, 0] % 1000 == 7
        far = np.asarray(batch.target - batch.state)[0, :, 0] > 100
        assert last.any() and far[~last].any()
        assert not far[last].any() if terminated else far[last].mean() > 0.5


def test_cemc_targets_are_recorded_and_losses_are_means_of_each_model():
    data, loss = walks(length=40), CEMC()
    data = replace(data, behaviour=data.episode % 2)
    dataset, betas = loss.dataset(data, 2, [0.5]), jnp.array([0.5, 0.5])
    losses, batch = batch_of(loss, models(0.0, 3.0), models(9.0, 9.0), dataset, bank(0.0, 0.0), betas, 200)
    moved = np.asarray(batch.target - batch.state, float)[..., 0]
    assert (moved >= 1).all() and (moved == moved.round()).all() and (moved > 1).any()
    assert (np.asarray(batch.state)[..., 0] // 1000 % 2 == np.array([[0], [1]])).all()
    wanted = ((moved - np.array([[0], [3]])) ** 2).mean(axis=1)
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)


@pytest.mark.parametrize("terminated", [False, True])
def test_ll2td_by_hand(terminated):
    """( log μ(x″|x, a) − log[(1−β) N(x″; x′, σ²) + β μ̄(x″|x′, a′)] )², and x″ = x′ where the world ends."""
    data, loss, betas = walks(terminated=terminated), LL2TD(sigma=0.5), jnp.array([0.9, 0.3])
    moves = np.random.default_rng(0).normal(1, 2, len(data)).astype(np.float32)[:, None]
    data = replace(data, next_state=data.state + moves)
    online, slow = models(2.0, 3.0, scale=2.0), models(4.0, 5.0, scale=3.0)
    losses, batch = batch_of(loss, online, slow, loss.dataset(data, 1, [0.9, 0.3]), bank(1.5), betas, 64)
    x, drawn = (np.asarray(part, float)[..., 0] for part in (batch.state, batch.target))
    rows = np.round(x % 1000 + 8 * (x // 1000)).astype(int)
    following, ends = np.asarray(data.next_state, float)[rows, 0], data.terminated[rows]
    assert (drawn[ends] == following[ends]).all() and (drawn != following)[~ends].all()
    assert ends.any() == terminated
    for m, beta in enumerate((0.9, 0.3)):
        one_step = stats.norm.pdf(drawn[m], following[m], 0.5 * moves.std())
        further = stats.norm.pdf(drawn[m], following[m] + 1.5 + (4, 5)[m], 3)
        ours = stats.norm.logpdf(drawn[m], x[m] + 1 + (2, 3)[m], 2)
        wanted = ((ours - np.log((1 - beta) * one_step + beta * further)) ** 2).mean()
        assert float(losses[m]) == pytest.approx(wanted, rel=1e-3)


def test_ll2td_draws_from_the_slow_copy_at_the_next_state():
    """x″ = x′ + a′ + centre of the slow copy, which has next to no noise."""
    loss = LL2TD()
    dataset = loss.dataset(walks(), 1, [0.9])
    _, batch = batch_of(loss, models(50.0), models(-70.0), dataset, bank(8.0), jnp.array([0.9]), 32)
    np.testing.assert_allclose(batch.target - batch.state, 1 + 8 - 70, atol=0.02)


def test_gradients_of_ll2td_reach_the_online_density_only():
    data, loss, betas = walks(), LL2TD(), jnp.array([0.5])
    dataset = loss.dataset(data, 1, [0.5])

    @eqx.filter_jit
    def total(online, slow):
        return loss.batch(online, slow, Problem(dataset, bank(1.0), betas), 32, key=KEY)[0].sum()

    online, slow = jax.grad(lambda pair: total(*pair))((models(1.0, scale=1.0), models(2.0, scale=1.0)))
    assert abs(online.centre[0, 0]) > 0 and slow.centre[0, 0] == 0 and slow.scale[0, 0] == 0
    both = jax.grad(lambda same: total(same, same))(models(1.0, scale=1.0)).centre
    alone = jax.grad(lambda one: total(one, models(1.0, scale=1.0)))(models(1.0, scale=1.0)).centre
    np.testing.assert_allclose(both, alone, rtol=1e-5)


@pytest.mark.parametrize("loss", [CETD(n_step=3), CEMC(), LL2TD()])
def test_no_key_is_used_twice(loss, monkeypatch):
    """Rows, times, actions and samples are independent, because each has a key of its own."""
    for module in ("ggpi.learning.losses", "ggpi.policies.bank"):
        monkeypatch.setattr(f"{module}.quick", lambda key: key)  # its keys are not tracked
    data = walks(terminated=True)
    dataset, policies = loss.dataset(data, 1, [0.0]), PolicyBank([Noisy()])
    problem = Problem(dataset, policies, jnp.array([0.0]))
    with jax.debug_key_reuse(True):
        loss.batch(models(1.0), models(1.0), problem, 4, key=jax.random.key(3))


def test_actions_and_samples_of_a_question_are_independent():
    """x″ = x + a + noise has variance 1 + 1; each of the 2 · 20,000 models and states has noise of its own.

    The variance of 20,000 draws has a standard error of 0.02, and the mean of products of neighbours, which is 0, one
    of 0.014: the bounds are seven of them.
    """
    policies = PolicyBank([Noisy(), Noisy()])
    asked = eqx.filter_jit(sample_ahead)(
        models(0.0, 0.0, scale=1.0), policies, jnp.zeros((2, 20_000, 1)), key=KEY
    )
    drawn = np.asarray(asked)[..., 0]
    np.testing.assert_allclose(drawn.var(axis=1), 2, atol=0.15)
    assert abs((drawn[0] * drawn[1]).mean()) < 0.1 and abs((drawn[:, 1:] * drawn[:, :-1]).mean()) < 0.1


def test_policies_act_in_the_states_of_their_models():
    """Models come horizon by horizon, so policy m mod K acts for model m."""
    states = jnp.arange(12.0).reshape(6, 2, 1)
    acted = np.asarray(act(bank(0.0, 1.0, 2.0), states, key=KEY))
    assert acted.shape == (6, 2, 1)
    assert (acted[..., 0] == np.array([0, 1, 2, 0, 1, 2])[:, None]).all()

    class Echo(eqx.Module):
        factor: jax.Array

        def sample(self, state, *, key):
            return self.factor * state

    echo = PolicyBank([Echo(jnp.array([float(k)])) for k in range(3)])
    wanted = np.arange(6)[:, None, None] % 3 * np.asarray(states)
    np.testing.assert_array_equal(act(echo, states, key=KEY), wanted)
