"""Samplers of models: stacks of learned models, tables of finite MDPs, compositions; see `ggpi.types.Sampler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.batching import over_models
from ggpi._jax.random import quick
from ggpi.ghm.exact import Simulator, TabularSampler
from ggpi.policies.bank import PolicyBank
from ggpi.types import Key, Numbers

Policies = tuple[int, ...]
Terminal = Callable[[Any], Any]
BLOCK = 512
"""Rows of each policy that are sampled at a time."""


class ModelSampler(eqx.Module):
    """Learned models, stacked over policies: one stack for each horizon."""

    models: tuple[Any, ...]
    bank: PolicyBank
    terminal: Terminal | None
    gamma: float = eqx.field(static=True)
    horizons: tuple[float, ...] = eqx.field(static=True)

    @property
    def working_size(self) -> int:
        """About how many numbers are held at a time while one sample is drawn."""
        return max(models.working_size for models in self.models)

    def act(self, policies: Policies, state: Numbers, *, key: Key) -> Array:
        return self.bank.among(policies).sample_each(state, key=key)

    def jump(self, policies: Policies, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        models = _among(self.models[place_of(horizon, self.horizons)], policies)
        noise = jax.random.normal(quick(key), (*jnp.shape(state)[:2], models.noise_size))
        return _by_blocks(
            lambda *rows: over_models(lambda model, *one: model.push(*one), models, *rows),
            state,
            action,
            noise,
        )

    def onward(self, policies: Policies, horizon: float, state: Numbers, *, key: Key) -> Array:
        action_key, jump_key = jax.random.split(key)
        action = self.act(policies, state, key=action_key)
        return self.jump(policies, horizon, state, action, key=jump_key)


class TableSampler(eqx.Module):
    """Models of a finite MDP, stacked over policies: one stack for each horizon. States and actions are integers."""

    tables: tuple[TabularSampler | Simulator, ...]
    bank: PolicyBank
    pi: Float[Array, "K S A"]
    """The policies themselves: r^π(x) is known, where other samplers draw actions."""
    terminal: Terminal | None
    gamma: float = eqx.field(static=True)
    horizons: tuple[float, ...] = eqx.field(static=True)

    def act(self, policies: Policies, state: Numbers, *, key: Key) -> Array:
        return self.bank.among(policies).sample_each(state, key=key)

    def jump(self, policies: Policies, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        table = self.tables[place_of(horizon, self.horizons)]
        if isinstance(table, TabularSampler):
            return table.sample(state, action, among=policies, key=key)
        keys = jax.random.split(key, len(policies))
        return jax.vmap(lambda t, x, a, k: t.sample(x, a, key=k))(
            _among(table, policies), state, action, keys
        )

    def onward(self, policies: Policies, horizon: float, state: Numbers, *, key: Key) -> Array:
        table = self.tables[place_of(horizon, self.horizons)]
        if isinstance(table, TabularSampler):
            return table.sample_onward(state, among=policies, key=key)
        keys = jax.random.split(key, len(policies))
        return jax.vmap(lambda t, x, k: t.sample_onward(x, key=k))(_among(table, policies), state, keys)


class Composing(eqx.Module):
    """Another Sampler, whose segments of one horizon are composed until they stop: Lem B.1's sample of μ_γ."""

    sampler: Any
    stopping: Float[Array, ""]
    """The probability that a segment is the last: (1−γ)/(1−β)."""
    beta: float = eqx.field(static=True)

    @property
    def gamma(self) -> float:
        return self.sampler.gamma

    @property
    def terminal(self) -> Any:
        return self.sampler.terminal

    def act(self, policies: Policies, state: Numbers, *, key: Key) -> Numbers:
        return self.sampler.act(policies, state, key=key)

    def jump(self, policies: Policies, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        first_key, count_key, chain_key = jax.random.split(key, 3)
        first = self.sampler.jump(policies, self.beta, state, action, key=first_key)
        count = jax.random.geometric(count_key, self.stopping, (*first.shape[:2], *[1] * (first.ndim - 2)))

        def segment(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            i, x = carry
            onward = self.sampler.onward(policies, self.beta, x, key=jax.random.fold_in(chain_key, i))
            return i + 1, jnp.where(i < count, onward, x)

        return jax.lax.while_loop(lambda carry: carry[0] < count.max(), segment, (jnp.array(1), first))[1]

    def onward(self, policies: Policies, horizon: float, state: Numbers, *, key: Key) -> Array:
        action_key, jump_key = jax.random.split(key)
        action = self.act(policies, state, key=action_key)
        return self.jump(policies, horizon, state, action, key=jump_key)


class Table(eqx.Module):
    """An array over the states of a finite MDP (and its actions), as a function of one state (and action)."""

    values: Array

    def __call__(self, *place: Numbers) -> Array:
        return self.values[place]


def place_of(horizon: float, horizons: tuple[float, ...]) -> int:
    """The place of a horizon among those that there are models for."""
    if horizon not in horizons:
        raise ValueError(f"there are models at the horizons {list(horizons)}, none at {horizon}")
    return horizons.index(horizon)


def _by_blocks(function: Callable[..., Array], *arrays: Numbers) -> Array:
    """A function of arrays [K, N, …], a block of rows at a time: what a block needs stays in the processor's cache."""
    count = jnp.shape(arrays[0])[1]
    if count <= 2 * BLOCK:
        return function(*arrays)

    def blocks(array: Numbers) -> Array:
        array = jnp.asarray(array)
        padded = jnp.pad(array, ((0, 0), (0, -count % BLOCK), *[(0, 0)] * (array.ndim - 2)), mode="edge")
        return jnp.moveaxis(padded.reshape(len(array), -1, BLOCK, *array.shape[2:]), 1, 0)

    found = jnp.moveaxis(jax.lax.map(lambda rows: function(*rows), tuple(map(blocks, arrays))), 0, 1)
    return found.reshape(len(found), -1, *found.shape[3:])[:, :count]


def _among(stack: Any, policies: Policies) -> Any:
    """The models of some policies of a stack."""
    if policies == tuple(range(len(jax.tree.leaves(stack)[0]))):
        return stack
    return jax.tree.map(lambda leaf: leaf[np.array(policies)], stack)
