"""Training as two compiled functions of arrays: a chunk of steps, and a score.

Everything that a step needs is an argument (data, policies, horizons, key), so that trainings of the same
shapes share one compiled program, also through the persistent compilation cache.
"""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from ggpi._jax.jit import fast_jit
from ggpi.learning.recipe import Recipe
from ggpi.learning.targets import Record
from ggpi.policies.bank import PolicyBank
from ggpi.types import Key

SCORED = 512
"""Transitions per model on which a score is taken."""


class Setting(eqx.Module):
    """What stays the same over a training."""

    recorded: Record
    bank: PolicyBank
    betas: Float[Array, "M"]
    """The horizon of each model: horizon by horizon, policy by policy."""
    key: Key
    recipe: Recipe = eqx.field(static=True)


class State(eqx.Module):
    """What a checkpoint holds: weights, the slow copy that targets come from, and Adam's moments."""

    models: Any
    slow: Any
    """None when targets come from the current models."""
    moments: Any


def initial_state(models: Any, recipe: Recipe) -> State:
    """The state before the first step."""
    has_slow_copy = recipe.loss.ema_decay is not None or recipe.loss.copy_every is not None
    slow = jax.tree.map(jnp.array, models) if has_slow_copy else None
    return State(models, slow, _optimiser(recipe).init(eqx.filter(models, eqx.is_inexact_array)))


def run_chunk(given: tuple[Setting, Array], state: State, count: int) -> tuple[State, Float[Array, "n M"]]:
    """The state after `count` steps, at most a chunk of the recipe, beginning with step given[1], and their losses."""
    if count > given[0].recipe.chunk:
        raise ValueError(f"a chunk has at most {given[0].recipe.chunk} steps, got {count}")
    state, losses = _run((*given, jnp.asarray(count)), state)
    return state, losses[:count]


@functools.partial(fast_jit, donate="all-except-first")
def _run(given: tuple[Setting, Array, Array], state: State) -> tuple[State, Float[Array, "n M"]]:
    """One program for any number of steps: compiled for each number, a step would be rounded in several ways."""
    setting, first, count = given
    arrays, static = eqx.partition(state, eqx.is_array)

    def step(i, carry):
        arrays, losses = carry
        state, loss = _step(setting, eqx.combine(arrays, static), first + i)
        return eqx.filter(state, eqx.is_array), losses.at[i].set(loss)

    losses = jnp.zeros((setting.recipe.chunk, len(setting.betas)))
    arrays, losses = jax.lax.fori_loop(0, count, step, (arrays, losses))
    return eqx.combine(arrays, static), losses


@fast_jit
def score(setting: Setting, models: Any) -> Float[Array, "M"]:
    """The loss of each model on a setting's record, always with the same draws."""
    loss, key = setting.recipe.loss, jax.random.fold_in(setting.key, 2**31 - 2)
    return loss.batch(models, models, setting.recorded, setting.bank, setting.betas, SCORED, key=key)[0]


def _step(setting: Setting, state: State, i: Any) -> tuple[State, Any]:
    recipe, key = setting.recipe, jax.random.fold_in(setting.key, i)
    slow = state.models if state.slow is None else state.slow

    @functools.partial(eqx.filter_value_and_grad, has_aux=True)
    def total(models):
        losses, batch = recipe.loss.batch(
            models, slow, setting.recorded, setting.bank, setting.betas, recipe.batch_size, key=key
        )
        return losses.sum(), (losses, batch)

    (_, (losses, batch)), gradient = total(state.models)
    updates, moments = _optimiser(recipe).update(gradient, state.moments)
    models = eqx.apply_updates(state.models, updates)
    models = jax.vmap(lambda model, *seen: model.observe(*seen))(models, *batch)
    return State(models, _slower(recipe, state.slow, models, i), moments), losses


def _slower(recipe: Recipe, slow: Any, models: Any, i: Any) -> Any:
    """The copy that the next targets come from."""
    decay, every = recipe.loss.ema_decay, recipe.loss.copy_every
    if decay is not None:
        return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, slow, models)
    if every is not None:
        return jax.tree.map(lambda old, new: jnp.where((i + 1) % every == 0, new, old), slow, models)
    return None


def _optimiser(recipe: Recipe) -> optax.GradientTransformation:
    falling = optax.linear_schedule(recipe.learning_rate, 0.0, recipe.steps)
    return optax.adam(falling if recipe.decay == "linear" else recipe.learning_rate)
