"""A corridor of cells as vectors: a finite MDP with exact values, whose models jump as learned ones do.

A state is the position p and some coordinates that are redrawn at every jump and mean nothing. Two policies walk left
and right, one cell at a time, until an end stops them.
"""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

import ggpi
from ggpi._jax.batching import stack
from ggpi.data import StateSpec
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.coordinates import Frame, fit_frame
from ggpi.policies.linear import linear_policy
from ggpi.switching import beta_of

SAVED = Path(__file__).parent / "data" / "saved"
LENGTH, GAMMA, ALPHA = 200, 0.98, 0.1


class Walk(AbstractGHM):
    """The exact μ_β: a geometric number of steps in the direction of the action."""

    frame: Frame
    beta: jnp.ndarray

    @property
    def noise_size(self):
        return self.frame.state_size

    @property
    def loss_noise_size(self):
        return 0

    def push(self, state, action, noise):
        steps = 1 + jnp.floor(jnp.log(ndtr(noise[0])) / jnp.log(self.beta))
        place = jnp.clip(state[0] + jnp.sign(action[0]) * steps, 0, LENGTH - 1)
        return jnp.concatenate([place[None], noise[1:]])

    def loss(self, state, action, target, noise):
        return jnp.zeros(len(state))


def states(num_others=0, count=20_000, seed=0):
    """Data: positions anywhere in the corridor."""
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(count, num_others))
    return np.concatenate([rng.integers(LENGTH, size=(count, 1)), others], axis=1).astype(np.float32)


def models(num_others=0, relative=(), places=(), predicted=(), gamma=GAMMA, alpha=ALPHA):
    """Exact models of the two policies."""
    data = states(num_others)
    spec = StateSpec(
        tuple(f"x{i}" for i in range(1 + num_others)), relative, places=places, predicted=predicted
    )
    frame = fit_frame(data, np.ones((len(data), 1), np.float32), data, spec, None)
    gain = np.zeros((1, 1 + num_others))
    policies = tuple(linear_policy(gain, way, 0.0, name) for name, way in (("left", -1), ("right", 1)))
    horizons = gamma, beta_of(gamma, alpha)
    stacks = tuple(stack([Walk(frame, jnp.float32(horizon))] * 2) for horizon in horizons)
    return GHMs(policies, gamma, (alpha,), stacks)


class Hills(eqx.Module):
    """A reward with hills at both ends of the corridor, the right one higher."""

    height: jnp.ndarray

    def __call__(self, state, *_):
        place = state[0]
        left, right = jnp.exp(-((place - 20) ** 2) / 200), jnp.exp(-((place - 170) ** 2) / 200)
        return self.height * left + right


HILLS = Hills(jnp.float32(0.7))


def exact(form, terminal=()):
    """U [K, S] and V [S] of the closed loop, by the finite MDP."""
    following = np.clip(np.arange(LENGTH)[:, None] + [-1, 1], 0, LENGTH - 1)
    P = np.eye(LENGTH)[following]
    ends = np.isin(np.arange(LENGTH), terminal)
    P[ends] = np.eye(LENGTH)[ends][:, None]
    mdp = ggpi.TabularMDP(P, ends)
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(2)]
    table = np.array([float(HILLS(np.array([p], np.float32))) for p in range(LENGTH)])
    table = np.repeat(table[:, None], 2, axis=1) if form == "state_action" else table
    ghms = ggpi.exact_ghms(mdp, policies, GAMMA, ALPHA)
    u = ggpi.evaluate_closed_loop(ghms, ggpi.rewards.Reward(form, table)).v
    return u, u.max(axis=0)
