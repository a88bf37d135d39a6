"""The exact minimiser of a path loss after one backup on a line, by regression over many points, and its samples.

At one pair (x, a) the recorded next state is N(−2, .3²), and μ̄(·|x′, a′) is N(1.5, 1), both in the coordinates of x.
The target of one backup, (1−β) N(−2, .3²) + β N(1.5, 1) with β = .9, has the mass .1075 below −.9.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from ggpi.ghm.coordinates import Frame
from ggpi.ghm.diffusion import Diffusion
from ggpi.ghm.flow_matching import FlowMatching
from ggpi.learning.flow_losses import on_path

BETA, CUT, NUM, TIMES = 0.9, -0.9, 20_000, 100
NEAR, FAR = (-2.0, 0.3), (1.5, 1.0)
EXPECTED = (1 - BETA) * norm.cdf(CUT, *NEAR) + BETA * norm.cdf(CUT, *FAR)
BINS = np.linspace(-7, 7, 401)
SHIFT = 2.0


def frame(from_state=0.0):
    one = jnp.ones(1)
    return Frame(0 * one, one, 0 * one, one, 0.7 * one, 0.5 * one, (0,), (from_state,), (), None)


class GaussianField:
    """The exact field of N(mean, 1) in the frame's coordinates; `network` holds the mean."""

    def encode(self, state, action):
        return state

    def field(self, y, t, code):
        (signal, noise), mean = self.levels(t), self.network
        signal, noise = signal[..., None], noise[..., None]
        z = (y - signal * mean) / (signal**2 + noise**2)
        return self.aim(t, mean + signal * z, noise * z)


class GaussianFlow(GaussianField, FlowMatching):
    pass


class GaussianDiffusion(GaussianField, Diffusion):
    pass


def flow(mean=FAR[0], path="straight", from_state=0.0):
    return GaussianFlow(frame(from_state), jnp.array([mean]), 10, path, "midpoint")


def diffusion(mean=FAR[0]):
    return GaussianDiffusion(frame(), jnp.array([mean]), 10)


def times():
    return (jnp.arange(TIMES) + 0.5) / TIMES


def direct(model):
    """Points on the paths to recorded states."""
    keys = jax.random.split(jax.random.key(1))
    target = NEAR[0] + NEAR[1] * jax.random.normal(keys[0], (NUM, 1))
    return on_path(model, times(), target, jax.random.normal(keys[1], (TIMES, NUM, 1)))


def bootstrapped(loss, model):
    """Points of a loss at (x′, a′)."""
    return loss.points(model, jnp.zeros((NUM, 1)), times(), key=jax.random.key(2))


def mass_below(model, points):
    """The mass below −.9 of samples of the minimiser, which is piecewise constant over y at each time."""
    pairs = [(1 - BETA, *direct(model)), (BETA, *points)]
    y = norm.ppf((np.arange(20_001) + 0.5) / 20_001)[:, None]
    centres = (BINS[1:] + BINS[:-1]) / 2
    for j, t in enumerate(np.arange(TIMES) / TIMES):
        weights, sums = 0, 0
        for weight, points_y, points_v in pairs:
            at, value = np.asarray(points_y[j, :, 0], float), np.asarray(points_v[j, :, 0], float)
            weights = weights + weight * np.histogram(at, BINS)[0]
            sums = sums + weight * np.histogram(at, BINS, weights=value)[0]
        seen = weights > 0
        mean = np.interp(y, centres[seen], sums[seen] / weights[seen])
        y = np.asarray(step(model, mean, y, t), float)
    return float(np.mean(y < CUT))


def step(model, mean, y, t):
    """One step with the field given: Euler's, or DDIM's."""
    span = jnp.array(t), jnp.array(t + 1 / TIMES)
    if isinstance(model, FlowMatching):
        return y + mean / TIMES
    ddim = replace(model, solver="ddim")
    return ddim.advance(lambda *_: jnp.asarray(mean), jnp.asarray(y), *span)[0]
