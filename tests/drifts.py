"""Drifts on a line, whose futures are known: two policies, and a family of four with one network for all horizons.

a ∼ N(m, .1²),  x′ = x + a:   X_T = x + a + Σ_{0<t<T} aₜ,  T ∼ Geometric(1−β)
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ggpi
from ggpi.diagnosis.distances import energy_distance
from ggpi.learning.flow_losses import TD2CFM
from ggpi.policies.family import policy_family

KEY = jax.random.key(0)
FLOW, DIFFUSION = ggpi.FlowMatchingConfig(width=16, depth=1), ggpi.DiffusionConfig(width=16, depth=1)


class Drift(eqx.Module):
    """Steps of about `mean` on a line."""

    mean: jax.Array
    name: str

    def sample(self, state, *, key):
        return jnp.clip(self.mean + 0.1 * jax.random.normal(key, (1,)), -1, 1)

    def mode(self, state):
        return self.mean


POLICIES = [Drift(jnp.array([0.5]), "right"), Drift(jnp.array([-0.5]), "left")]


def walks(num_episodes=20, num_steps=40):
    rng = np.random.default_rng(0)
    behaviour = np.repeat(rng.integers(2, size=(num_episodes, 1)), num_steps, axis=1)
    action = np.where(behaviour == 0, 0.5, -0.5) + 0.1 * rng.normal(size=behaviour.shape)
    end = np.cumsum(action, axis=1)
    episode, step = (part.ravel() for part in np.indices(behaviour.shape))
    vectors = [part.reshape(-1, 1).astype(np.float32) for part in (end - action, action, end)]
    last = step == num_steps - 1
    return ggpi.Transitions(*vectors, last & False, last, behaviour.ravel(), episode, step)


DATA = walks()


def leaves(ghms):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(ghms.models, eqx.is_array))]


MEANS = np.array([[0.5], [-0.5], [0.25], [-0.25]], np.float32)


def drift(state, z):
    return z, 0.1 * jnp.ones(1)


def family(means=MEANS):
    return policy_family(drift, means, ([-1.0], [1.0]), returns="gaussian")


def family_walks(num_episodes=80, num_steps=40):
    rng = np.random.default_rng(0)
    behaviour = np.repeat(rng.integers(4, size=(num_episodes, 1)), num_steps, axis=1)
    action = MEANS[behaviour, 0] + 0.1 * rng.normal(size=behaviour.shape)
    end = np.cumsum(action, axis=1)
    episode, step = (part.ravel() for part in np.indices(behaviour.shape))
    vectors = [part.reshape(-1, 1).astype(np.float32) for part in (end - action, action, end)]
    last = step == num_steps - 1
    return ggpi.Transitions(*vectors, last & False, last, behaviour.ravel(), episode, step)


@cache
def trained(consistency):
    """One network of a family of four drifts."""
    return ggpi.fit(
        family(),
        family_walks(),
        gamma=0.9,
        alpha="any",
        key=KEY,
        model=ggpi.FlowMatchingConfig(width=48, depth=2),
        loss=TD2CFM(ema_decay=0.95),
        consistency=consistency,
        learning_rate=3e-3,
        steps=1000,
        batch_size=64,
    )


def truth(means, beta, n, state=0.3, action=0.2):
    """Futures of policies with these mean steps, as many of each."""
    rng = np.random.default_rng(1)
    later = rng.geometric(1 - beta, (len(means), n)) - 1
    moved = later * np.reshape(means, (-1, 1)) + 0.1 * np.sqrt(later) * rng.normal(size=later.shape)
    return (state + action + moved).reshape(-1, 1)


@eqx.filter_jit
def samples(model, n, state=0.3, action=0.2):
    draw = jax.vmap(lambda key: model.sample(jnp.array([state]), jnp.array([action]), key=key))
    return draw(jax.random.split(KEY, n))


def distance(model, means, beta):
    """Energy distance to the truth in units of its spread."""
    true = truth(means, beta, 2000 // len(means))
    return energy_distance(np.asarray(samples(model, 2000)) / true.std(), true / true.std())
