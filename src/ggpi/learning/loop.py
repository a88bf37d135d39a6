"""Training as two compiled functions of arrays: a chunk of steps, and a score.

Everything that a step needs is an argument (data, policies, horizons, key), so that trainings of the same
shapes share one compiled program, also through the persistent compilation cache.
"""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from ggpi._jax.jit import fast_jit
from ggpi.ghm.abstract import AbstractGHM, AbstractObserver
from ggpi.learning.losses import Batch, Problem
from ggpi.learning.recipe import Recipe
from ggpi.types import Key

SCORED = 512
"""Transitions per model on which a score is taken."""


class Training(eqx.Module):
    """What stays the same over a training."""

    problem: Problem
    held_out: Problem
    """The same policies and horizons with the data that are only used to score."""
    key: Key
    recipe: Recipe = eqx.field(static=True)
    teacher: AbstractGHM | None = None
    """Finished models that targets come from, instead of those that are trained."""


class TrainState(eqx.Module):
    """What changes from step to step, and what a checkpoint holds."""

    models: AbstractGHM
    slow: AbstractGHM | None
    """The copy that targets come from; None when they come from the current models."""
    moments: optax.OptState


class _Chunk(eqx.Module):
    training: Training
    first: Int[Array, ""]
    count: Int[Array, ""]


def initial_state(models: AbstractGHM, recipe: Recipe) -> TrainState:
    """The state before the first step."""
    slow = recipe.loss.slow_copy(None, models, 0)
    return TrainState(models, slow, _optimiser(recipe).init(eqx.filter(models, eqx.is_inexact_array)))


def run_chunk(
    training: Training, state: TrainState, *, first: int, count: int
) -> tuple[TrainState, Float[Array, "n M"]]:
    """The state after steps first, …, first + count − 1, and their losses.

    Args:
        training: data, policies, horizons, key and recipe.
        state: the state before the first of these steps; its arrays are donated.
        first: the number of the first step.
        count: the number of steps, at most a chunk of the recipe.
    """
    if count > training.recipe.chunk:
        raise ValueError(f"a chunk has at most {training.recipe.chunk} steps, got {count}")
    state, losses = _run(_Chunk(training, jnp.asarray(first), jnp.asarray(count)), state)
    return state, losses[:count]


@functools.partial(fast_jit, donate="all-except-first")
def _run(chunk: _Chunk, state: TrainState) -> tuple[TrainState, Float[Array, "n M"]]:
    """One program for any number of steps: compiled for each number, a step would be rounded in several ways."""
    arrays, static = eqx.partition(state, eqx.is_array)

    def step(i: Int[Array, ""], carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
        arrays, losses = carry
        state, loss = _step(chunk.training, eqx.combine(arrays, static), chunk.first + i)
        return eqx.filter(state, eqx.is_array), losses.at[i].set(loss)

    losses = jnp.zeros((chunk.training.recipe.chunk, len(chunk.training.problem.betas)))
    arrays, losses = jax.lax.fori_loop(0, chunk.count, step, (arrays, losses))
    return eqx.combine(arrays, static), losses


@fast_jit
def score(training: Training, models: AbstractGHM) -> Float[Array, "M"]:
    """The loss of each model on the held-out data, always with the same draws."""
    loss, key = training.recipe.loss, jax.random.fold_in(training.key, 2**31 - 2)
    return loss.batch(models, training.teacher or models, training.held_out, SCORED, key=key)[0]


def _step(training: Training, state: TrainState, i: Int[Array, ""]) -> tuple[TrainState, Float[Array, "M"]]:
    recipe, key = training.recipe, jax.random.fold_in(training.key, i)
    slow = training.teacher or state.slow or state.models

    @functools.partial(eqx.filter_value_and_grad, has_aux=True)
    def total(models: AbstractGHM) -> tuple[Float[Array, ""], tuple[Float[Array, "M"], Batch]]:
        losses, batch = recipe.loss.batch(models, slow, training.problem, recipe.batch_size, key=key)
        return losses.sum(), (losses, batch)

    (_, (losses, batch)), gradient = total(state.models)
    updates, moments = _optimiser(recipe).update(gradient, state.moments)
    models = eqx.apply_updates(state.models, updates)
    if isinstance(models, AbstractObserver):
        models = jax.vmap(lambda model, *seen: model.observe(*seen))(models, *batch)
    return TrainState(models, recipe.loss.slow_copy(state.slow, models, i), moments), losses


def _optimiser(recipe: Recipe) -> optax.GradientTransformation:
    falling = optax.linear_schedule(recipe.learning_rate, 0.0, recipe.steps)
    return optax.adam(falling if recipe.decay == "linear" else recipe.learning_rate)
