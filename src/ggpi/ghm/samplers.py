"""Samplers of models: stacks of learned models, and tables of finite MDPs; see `ggpi.types.Sampler`."""

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
        return over_models(lambda model, *one: model.push(*one), models, state, action, noise)

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


def _among(stack: Any, policies: Policies) -> Any:
    """The models of some policies of a stack."""
    if policies == tuple(range(len(jax.tree.leaves(stack)[0]))):
        return stack
    return jax.tree.map(lambda leaf: leaf[np.array(policies)], stack)
