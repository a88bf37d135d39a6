"""Planning as compiled functions of arrays: sample a tree of segments, pay for it, choose.

What a plan needs is one tuple `given`: the tree, the models, the reward, the states [B, …], and first actions to
score [K, B, C, …] (None leaves them to the heads, sample by sample). All of it are arguments, so that another
reward of the same kind, another state or another agent of the same shapes compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.batching import over_models, stack
from ggpi._jax.jit import fast_jit, jit
from ggpi._jax.random import quick
from ggpi.evaluation.rewards import Table, first_bad_sample, over, payment
from ggpi.evaluation.tree import Block, draw, worth
from ggpi.ghm.base import AbstractGHM, GHMs
from ggpi.ghm.exact import ExactGHM
from ggpi.policies.bank import PolicyBank
from ggpi.rewards import Each
from ggpi.types import Key


class Models(eqx.Module):
    """The models of all horizons and the policies of each block, as the tree of segments asks for them."""

    models: dict[float, Any]
    bank: PolicyBank
    terminal: Callable[[Any], Any] | None

    def act(self, block: Block, x: Any, *, key: Key) -> Any:
        """Actions of the block's policies for x [rows, n, …]."""
        return self.bank.among(block.policies).sample_each(x, key=key)

    def move(self, block: Block, x: Any, action: Any, *, key: Key) -> Any:
        """The ends of segments that start in x with these actions; a terminal state is never left."""
        models, rows = self.models[block.horizon], np.array(block.policies)
        if len(rows) < len(self.bank):
            models = jax.tree.map(lambda leaf: leaf[rows], models)
        if isinstance(models, AbstractGHM):
            noise = jax.random.normal(quick(key), (*x.shape[:2], models.noise_size))
            end = over_models(lambda model, *one: model.push(*one), models, x, action, noise)
        else:
            keys = jax.random.split(key, len(rows))
            end = jax.vmap(lambda model, x, a, key: model.sample(x, a, key=key))(models, x, action, keys)
        if self.terminal is None:
            return end
        stays = jax.vmap(jax.vmap(self.terminal))(x)
        return jnp.where(stays.reshape(*stays.shape, *[1] * (x.ndim - 2)), x, end)


def stacked_models(ghms: GHMs, terminal: Callable[[Any], Any] | None) -> Models:
    """Models stacked over policies; finite MDPs know their terminal states."""
    models: dict[float, Any] = dict(zip(ghms.horizons, ghms.models, strict=True))
    for horizon, group in zip(ghms.horizons, ghms.models, strict=True):
        if not isinstance(group, eqx.Module):
            exact = [ghm.sampler if isinstance(ghm, ExactGHM) else ghm for ghm in group]
            models[horizon] = stack(exact)
    first = ghms.segment(0, None)
    if terminal is None and isinstance(first, ExactGHM) and first.mdp.terminal.any():
        terminal = Table(jnp.asarray(first.mdp.terminal))
    return Models(models, PolicyBank(tuple(ghms.policies)), terminal)


@fast_jit
def values_of(given: tuple, num_samples: int, form: Any, gamma: float, key: Key) -> tuple[Any, Any]:
    """Means and variances [N, B, C] of what chains earn."""
    drawn = _draw(given, num_samples, form, key)
    return _moments(given, drawn, form, gamma)


def values_on_host(given: tuple, num_samples: int, form: Any, gamma: float, key: Key) -> tuple[Any, Any]:
    """The same, with a reward that only Python can compute."""
    return _moments(given, drawn_states(given, num_samples, form, key), form, gamma)


def _draw(given: tuple, num_samples: int, form: Any, key: Key) -> list:
    tree, models, _, _, first = given
    if first is not None:
        first = first.reshape(len(first), -1, *first.shape[3:])
    return draw(tree, models, _starts(given), first, num_samples, form=form, key=key)


def drawn_states(given: tuple, num_samples: int, form: Any, key: Key) -> list:
    """The states that chains visit, by a program that serves all rewards."""
    tree, models, _, states, first = given
    return _drawn((tree, models, None, states, first), num_samples, form, key)


_drawn = fast_jit(_draw)


def _starts(given: tuple) -> Any:
    """The states [P, …] that chains start in: each once for every first action."""
    _, _, _, states, first = given
    return states if first is None else jnp.repeat(states, first.shape[2], axis=0)


def _moments(given: tuple, drawn: list, form: Any, gamma: float) -> tuple[Any, Any]:
    tree, models, values, states, first = given
    starts, num_first = _starts(given), 1 if first is None else first.shape[2]
    if isinstance(values, Each):
        values = jax.tree.map(lambda leaf: jnp.repeat(leaf, num_first, axis=0), values)
    earned = worth(tree, payment(values, form, models.terminal, gamma), starts, drawn, form=form)
    if models.terminal is not None:
        earned = jnp.where(over(models.terminal, starts[None, :, None]), 0.0, earned)
    shape = (len(earned), len(states), num_first)
    return earned.mean(axis=-1).reshape(shape), earned.var(axis=-1).reshape(shape)


@jit
def choose(bank: PolicyBank, heads: Any, mean: Any, states: Any, first: Any, key: Key) -> tuple[Any, Any]:
    """The best GSP [B], ties broken at random, and the action: its head's, or the first action that it scored."""
    tie_key, act_key = jax.random.split(key)
    scores = jnp.moveaxis(mean, 1, 0).reshape(len(states), -1)
    lots = jax.random.uniform(tie_key, scores.shape)
    place = jnp.where(scores == scores.max(axis=1, keepdims=True), lots, -1.0).argmax(axis=1)
    best, tried = place // mean.shape[2], place % mean.shape[2]
    if first is None:
        return best, bank.sample(jnp.asarray(heads)[best], states, key=act_key)
    return best, first[jnp.asarray(heads)[best], jnp.arange(len(states)), tried]


@jit
def candidates(bank: PolicyBank, states: Any, count: int, key: Key) -> Any:
    """`count` actions of each policy in each state [K, B, C, …]."""
    asked = jnp.broadcast_to(states[None, :, None], (len(bank), len(states), count, *states.shape[1:]))
    return bank.sample_each(asked, key=key)


def pooled(parts: list, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over calls of `size` samples each (∞ for a single sample).

    Paper: Eq 3
    """
    means = np.stack([np.asarray(mean, float) for mean, _ in parts])
    n = size * len(parts)
    variance = np.mean([np.asarray(variance, float) for _, variance in parts], axis=0) + means.var(axis=0)
    return means.mean(axis=0), np.sqrt(variance / (n - 1)) if n > 1 else np.full(means.shape[1:], np.inf)


def refuse(given: tuple, drawn: list) -> None:
    """Says which sample made a value infinite or NaN."""
    values = given[2]
    for part in (part for level in drawn for part in level):
        action = () if part.end_action is None else (part.end_action,)
        if not np.isfinite(np.asarray(part.x, float)).all():
            raise ArithmeticError("a model sampled states that are not finite; look at it with ggpi.diagnose")
        if said := first_bad_sample(values, part.x, *action):
            raise ValueError(f"{said}; rewards are finite numbers")
    raise ValueError("the reward of the state itself is not a finite number")
