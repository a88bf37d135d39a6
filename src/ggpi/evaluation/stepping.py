"""First actions scored by one explicit step before the jump.

    Q^ν(x, a) = E[ r + γ ((1−α₁) V^ν(X′) + α₁ V^ν′(X′)) ],   X′ ∼ P(·|x, a),

where ν′ is what is left of ν after its first switch; a suffix-closed set has both. Of μ_γ(·|x, a) the first step is a
part of 1−γ, so a learned one hardly depends on the first action; a one-step model depends on nothing else but the
state. All first actions of a state are given the same noise: their values differ by what the actions do.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.jit import fast_jit
from ggpi._jax.random import quick
from ggpi.evaluation.planning import Models
from ggpi.evaluation.rewards import over, pay_all, payment
from ggpi.evaluation.tree import draw, worth
from ggpi.ghm.base import AbstractGHM, GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.rewards import Each
from ggpi.switching import GSPs
from ggpi.types import Key


class Step(eqx.Module):
    """P(·|x, a), and how each switching policy of a set goes on after it."""

    model: Any
    suffix: Any
    """[N]: the place of ν′; a single policy's own."""
    alpha: Any
    """[N]: α₁; 0 for a single policy."""


def one_step_model(ghms: GHMs) -> Any:
    """P(·|x, a) of a finite MDP, or as it was learned; None for models without."""
    exact = ghms.segment(0, None)
    return ExactGHM(exact.mdp, exact.policy, 0.0).sampler if isinstance(exact, ExactGHM) else ghms.one_step


def step_of(model: Any, gsps: GSPs) -> Step:
    """One step before each switching policy of a suffix-closed set."""
    places = {gsp: i for i, gsp in enumerate(gsps)}
    suffix = np.array([places[gsp.suffix or gsp] for gsp in gsps], np.int32)
    return Step(model, suffix, np.array([(*gsp.alphas, 0.0)[0] for gsp in gsps], np.float32))


@fast_jit
def stepped_values(given: tuple, num_samples: int, form: Any, gamma: float, key: Key) -> tuple[Any, Any]:
    """Means and variances [N, B, C] of what a step and the chains after it earn."""
    return _moments(given, _draw(given, num_samples, form, key), form, gamma)


def stepped_values_on_host(
    given: tuple, num_samples: int, form: Any, gamma: float, key: Key
) -> tuple[Any, Any]:
    """The same, with a reward that only Python can compute."""
    return _moments(given, _drawn_without(given, num_samples, form, key), form, gamma)


def stepped_states(given: tuple, num_samples: int, form: Any, key: Key) -> list:
    """The states [nodes, B·C, n, …] that chains visit after the step."""
    x, chains = _drawn_without(given, num_samples, form, key)
    shape = x.shape[:3]

    def arranged(part):
        own = part.reshape(len(part), *shape, *part.shape[3:])
        return np.asarray(jnp.moveaxis(own, 1, 2).reshape(len(part), -1, num_samples, *part.shape[3:]))

    return jax.tree.map(arranged, chains)


def _drawn_without(given: tuple, num_samples: int, form: Any, key: Key) -> tuple[Any, list]:
    """Next states and chains, by a program that serves all rewards."""
    tree, models, _, states, first, step = given
    return _drawn((tree, models, None, states, first, step), num_samples, form, key)


def _draw(given: tuple, num_samples: int, form: Any, key: Key) -> tuple[Any, list]:
    """Next states [C, B, n, …], and one chain from each: parts are [nodes, C·B·n, 1, …]."""
    tree, models, _, states, first, step = given
    step_key, chain_key = jax.random.split(key)

    def after(action):  # without an index of the action in its keys: the noise of one is that of all
        x = _following(step.model, models, states, action, num_samples, key=step_key)
        starts = x.reshape(-1, *x.shape[2:])
        return x, draw(tree, models, starts, None, 1, form=form, key=chain_key)

    x, drawn = jax.vmap(after, in_axes=1)(first[0])
    return x, jax.tree.map(
        lambda part: jnp.moveaxis(part, 0, 1).reshape(len(part[0]), -1, *part.shape[3:]), drawn
    )


_drawn = fast_jit(_draw)


def _following(model: Any, models: Models, states: Any, action: Any, num_samples: int, *, key: Key) -> Any:
    """Next states [B, n, …]; a terminal state is never left."""
    size = (len(states), num_samples)
    x = jnp.broadcast_to(states[:, None], (*size, *states.shape[1:]))
    a = jnp.broadcast_to(action[:, None], size)
    if isinstance(model, AbstractGHM):
        noise = jax.random.normal(quick(key), (*size, model.noise_size))
        following = jax.vmap(jax.vmap(model.push))(x, a, noise)
    else:
        following = model.sample(x, a, key=key)
    if models.terminal is None:
        return following
    stays = jax.vmap(jax.vmap(models.terminal))(x)
    return jnp.where(stays.reshape(*size, *[1] * (x.ndim - 2)), x, following)


def _moments(given: tuple, drawn: tuple[Any, list], form: Any, gamma: float) -> tuple[Any, Any]:
    tree, models, values, states, first, step = given
    x, chains = drawn
    shape = x.shape[:3]
    if isinstance(values, Each):
        values = jax.tree.map(lambda leaf: _spread(leaf, shape), values)
    left, entered = _spread(states, shape), x.reshape(-1, *x.shape[3:])
    acted = jnp.broadcast_to(first[0].T[:, :, None], shape).ravel()
    paid_for = {"state": (left,), "state_action": (left, acted), "arrival": (entered,)}[form]
    r = pay_all(values, *(part[None, :, None] for part in paid_for))[..., 0]
    v = worth(tree, payment(values, form, models.terminal, gamma), entered, chains, form=form)[..., 0]
    v = jnp.where(_has_ended(models, entered), 0.0, v)
    alpha = jnp.asarray(step.alpha)[:, None]
    q = r + gamma * ((1 - alpha) * v + alpha * v[step.suffix])
    q = jnp.where(_has_ended(models, left), 0.0, q)
    q = jnp.moveaxis(q.reshape(len(q), *shape), 1, 2)
    return q.mean(axis=-1), q.var(axis=-1)


def _has_ended(models: Models, states: Any) -> Any:
    return False if models.terminal is None else over(models.terminal, states[None, :, None])[..., 0]


def _spread(rows: Any, shape: tuple[int, ...]) -> Any:
    """Rows [B, …] for each of C first actions and n samples: [C·B·n, …]."""
    return jnp.broadcast_to(rows[None, :, None], (*shape, *rows.shape[1:])).reshape(-1, *rows.shape[1:])
