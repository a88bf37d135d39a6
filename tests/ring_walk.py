"""A walk on a ring of points in the plane: transitions, exact models, and the closed form of their fields.

On points p_k with μ(k|x, a), m̄ₜ = Σₖ μ(k) N(t pₖ, (1−t)² I), and the field that carries the noise along it is

    v̄ₜ(y) = Σₖ wₖ(y) (pₖ − y)/(1−t),   wₖ(y) ∝ μ(k) N(y; t pₖ, (1−t)² I)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ggpi
from ggpi.ghm import ExactGHM
from ring import Ring

SIZE = 5
RING = Ring(SIZE, 0.1)
WALK = np.array([0.2, 0.8])
POINTS = np.asarray(RING.observe(np.arange(SIZE)), np.float32)
FLOW = ggpi.FlowMatchingConfig(width=64, depth=2, predict="state")


def walk_mu(beta):
    """μ_β of the walk, exactly."""
    return ExactGHM(RING.mdp, ggpi.TabularPolicy(np.tile(WALK, (SIZE, 1))), beta).dense()


class Walk(eqx.Module):
    """Steps forward with probability .8, as a vector of one coordinate."""

    name: str = "walk"

    def sample(self, state, *, key):
        return (jax.random.bernoulli(key, WALK[1], (1,))).astype(jnp.float32)

    def mode(self, state):
        return jnp.ones(1)


def walks(num_episodes=200, num_steps=50):
    """Episodes of the policy."""
    rng = np.random.default_rng(0)
    state, parts = rng.integers(SIZE, size=num_episodes), []
    for _ in range(num_steps):
        action = (rng.random(num_episodes) < WALK[1]).astype(int)
        ends = np.cumsum(RING.mdp.P[state, action], axis=1)
        following = np.minimum((rng.random((num_episodes, 1)) > ends).sum(axis=1), SIZE - 1)
        parts.append((state, action, following))
        state = following
    state, action, following = (np.stack(part, axis=1).ravel() for part in zip(*parts, strict=True))
    episode, step = (part.ravel() for part in np.indices((num_episodes, num_steps)))
    none, actions = np.zeros(len(step), bool), action[:, None].astype(np.float32)
    ends = none, step == num_steps - 1
    return ggpi.Transitions(POINTS[state], actions, POINTS[following], *ends, 0 * step, episode, step)


def exact_field(y, t, points, mu):
    """v̄ₜ at points [n, D]."""
    logits = np.log(mu) - ((y[:, None] - t * points) ** 2).sum(axis=-1) / (2 * (1 - t) ** 2)
    w = np.exp(logits - logits.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    return (w @ points - y) / (1 - t)


def field_error(model, mu):
    """The squared error of the field under m̄ₜ, as a share of the variance of v̄ₜ, over all pairs and nine times."""
    rng, wrong, all_of_it = np.random.default_rng(1), 0.0, 0.0
    points = np.asarray(model.frame.change(POINTS, POINTS), float)
    field = jax.jit(jax.vmap(model.velocity, in_axes=(0, None, None, None)))
    for x, a in np.ndindex(SIZE, 2):
        for t in np.arange(1, 10) / 10:
            y = t * points[rng.choice(SIZE, 256, p=mu[x, a])] + (1 - t) * rng.normal(size=(256, 2))
            exact = exact_field(y, t, points, mu[x, a])
            found = field(jnp.asarray(y, jnp.float32), jnp.array(t), POINTS[x], np.array([a], np.float32))
            wrong += ((np.asarray(found) - exact) ** 2).sum()
            all_of_it += ((exact - exact.mean(axis=0)) ** 2).sum()
    return wrong / all_of_it
