"""Every geometric horizon model, whatever its kind, obeys the same laws; and LL2TD is wrong as predicted."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.scipy.special import ndtr, ndtri

import ggpi
import ggpi.ghm.spline_flow
import ggpi.policies
from ggpi._jax.batching import stack
from ggpi.ghm.abstract import AbstractDensityGHM
from ggpi.ghm.coordinates import fit_frame
from ggpi.learning.losses import LL2TD, Problem
from ggpi.policies.linear import linear_policy
from ggpi.types import GHM
from linear_gaussian import LinearGaussian
from ll2td_bias import ll2td_bias
from zoo import BETA, KEY, LEARNED, ZOO

every = pytest.mark.parametrize("specimen", ZOO, ids=lambda specimen: specimen.name)


@eqx.filter_jit
def sample(model, state, action, key):
    return model.sample(state, action, key=key)


@every
def test_samples_are_states(specimen):
    state, action = jnp.asarray(specimen.state[0]), jnp.asarray(specimen.action[0])
    drawn = sample(specimen.model, state, action, KEY)
    assert isinstance(specimen.model, GHM)
    assert drawn.shape == state.shape
    assert drawn.dtype == (jnp.float32 if state.ndim else jnp.int32)
    assert jnp.isfinite(drawn).all()


@every
def test_the_key_decides(specimen):
    draws = [
        np.asarray(sample(specimen.model, specimen.state[0], specimen.action[0], key))
        for key in [KEY, KEY, *jax.random.split(jax.random.key(1), 20)]
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    # 21 draws of a table agree with a probability of at most (max μ)²⁰, and max μ < ½
    assert len({draw.tobytes() for draw in draws}) > 1


@every
def test_leading_axes_are_vmapped(specimen):
    state, action = (np.stack([part[:2], part[1:]]) for part in (specimen.state, specimen.action))
    keys = jax.random.split(KEY, (2, 2))
    many = jax.vmap(jax.vmap(lambda *given: sample(specimen.model, *given)))(state, action, keys)
    assert many.shape == state.shape
    for i, j in np.ndindex(2, 2):
        alone = sample(specimen.model, state[i, j], action[i, j], keys[i, j])
        np.testing.assert_allclose(many[i, j], alone, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("specimen", [s for s in ZOO if not s.trained], ids=lambda specimen: specimen.name)
def test_what_is_exact_is_at_no_distance(specimen):
    assert abs(specimen.distance(specimen.model)) < 0.02


@pytest.mark.parametrize("specimen", LEARNED, ids=lambda specimen: specimen.name)
def test_a_short_fit_by_cetd_comes_near_the_truth(specimen):
    start, end = specimen.trained("cetd")
    assert specimen.distance(end) <= 0.5 * specimen.distance(start)


@pytest.mark.slow
@pytest.mark.parametrize(
    "specimen",
    [s for s in LEARNED if s.name in ("learned table", "VAE", "flow", "flow matching")],
    ids=lambda s: s.name,
)
def test_cetd_ends_near_cemc(specimen, record_property):
    """Within a factor of 2, but for 5% of where they began: clouds of this size do not tell less.

    The paper's own flows do not come that near: their gap is recorded only.
    """
    start, cetd = specimen.trained("cetd")
    first, bootstrapped, sampled = map(specimen.distance, (start, cetd, specimen.trained("cemc")[1]))
    record_property("distances", {"start": first, "CETD": bootstrapped, "CEMC": sampled})
    print(f"{specimen.name}: start {first:.3f}, CETD {bootstrapped:.4f}, CEMC {sampled:.4f}")
    assert specimen.name == "flow" or bootstrapped <= 2 * sampled + 0.05 * first


# What LL2TD learns in place of μ: a flow is trained towards the exact μ̄ at one pair (x, a) of a system on a line.

LINE = LinearGaussian(0.9, 0.5, 0.04, -0.4, 0.3, 0.2)
STATE, ACTION, SIGMA = 1.0, 0.5, 0.3


class ExactLine(AbstractDensityGHM):
    """μ of LINE: one standard normal number makes both T and the noise."""

    frame: Any
    offsets: Any
    powers: Any
    spreads: Any

    @property
    def noise_size(self):
        return 1

    def _means(self, state, action):
        return self.powers * (LINE.A[0, 0] * state[0] + LINE.B[0, 0] * action[0]) + self.offsets

    def push(self, state, action, noise):
        left = ndtr(noise[0])
        t = jnp.clip(jnp.floor(jnp.log(left) / math.log(BETA)), 0, len(self.powers) - 1).astype(int)
        within = jnp.clip((left / BETA**t - BETA) / (1 - BETA), 1e-6, 1 - 1e-6)
        return (self._means(state, action)[t] + self.spreads[t] * ndtri(within))[None]

    def log_prob(self, target, state, action):
        z = (target[0] - self._means(state, action)) / self.spreads
        weights = (1 - BETA) * BETA ** jnp.arange(len(z)) / self.spreads
        return jnp.log((weights * jnp.exp(-(z**2) / 2)).sum() / math.sqrt(2 * math.pi) + 1e-30)


def exact_line():
    offsets, covariances = LINE.components([0.0], [0.0], 60)
    powers = LINE.closed_loop[0, 0] ** np.arange(60)
    parts = offsets[:, 0], powers, covariances[:, 0, 0] ** 0.5
    return ExactLine(None, *(jnp.asarray(part, jnp.float32) for part in parts))


def at_one_pair(n):
    rng = np.random.default_rng(0)
    state, action = np.full((n, 1), STATE, np.float32), np.full((n, 1), ACTION, np.float32)
    following = np.float32(LINE.step(state, action, rng))
    none, rows = np.zeros(n, bool), np.arange(n)
    return ggpi.Transitions(state, action, following, none, ~none, 0 * rows, rows, 0 * rows)


def fit_ll2td(steps, batch_size):
    """A small flow after LL2TD with a fixed target."""
    data = at_one_pair(20_000)
    ahead = LINE.sample_future([STATE], [ACTION], BETA, len(data), np.random.default_rng(1))
    frame = fit_frame(data.state, data.action, ahead, LINE.spec, None)
    flow = stack([ggpi.ghm.spline_flow.FlowConfig(hidden=32).build(frame, key=KEY)])
    policy = linear_policy(LINE.gain, LINE.bias, LINE.action_std, low=-np.inf, high=np.inf)
    loss, bank, target = (
        LL2TD(sigma=SIGMA / 0.2),
        ggpi.policies.PolicyBank([policy]),
        stack([exact_line()]),
    )
    problem = Problem(loss.dataset(data, 1, [BETA]), bank, jnp.array([BETA]))
    adam = optax.adam(optax.linear_schedule(5e-3, 0.0, steps))
    arrays, static = eqx.partition(flow, eqx.is_array)

    def step(carry, key):
        arrays, moments = carry

        def total(flow):
            losses, batch = loss.batch(flow, target, problem, batch_size, key=key)
            return losses.sum(), batch

        flow = eqx.combine(arrays, static)
        gradient, batch = eqx.filter_grad(total, has_aux=True)(flow)
        updates, moments = adam.update(gradient, moments)
        flow = jax.vmap(lambda one, *seen: one.observe(*seen))(eqx.apply_updates(flow, updates), *batch)
        return (eqx.filter(flow, eqx.is_array), moments), None

    start = arrays, adam.init(eqx.filter(flow, eqx.is_inexact_array))
    (arrays, _), _ = jax.jit(lambda carry: jax.lax.scan(step, carry, jax.random.split(KEY, steps)))(start)
    return jax.tree.map(lambda leaf: leaf[0], eqx.combine(arrays, static))


@pytest.mark.slow
def test_ll2td_is_biased_as_its_definition_says():
    """log μ − log (T μ̄) over the bulk of the distribution: above zero in one place, below it in another."""
    flow = fit_ll2td(1500, 512)
    predicted = ll2td_bias(LINE, STATE, ACTION, BETA, sigma=SIGMA)
    bulk = predicted.correct > 0.1
    points = jnp.asarray(predicted.grid[bulk, None], jnp.float32)
    found = jax.vmap(lambda y: flow.log_prob(y, jnp.array([STATE]), jnp.array([ACTION])))(points)
    bias = np.asarray(found) - np.log(predicted.correct[bulk])
    expected = np.log(predicted.minimiser[bulk]) - np.log(predicted.correct[bulk])
    assert expected.max() > 0.3 and expected.min() < -0.15, "there is something to see"
    large = np.abs(expected) > 0.1
    assert (np.sign(bias) == np.sign(expected))[large].all()
    assert np.abs(bias - expected).max() < 0.1
    assert np.sqrt(np.mean((bias - expected) ** 2)) < 0.25 * np.sqrt(np.mean(expected**2))
