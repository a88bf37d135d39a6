"""Actions of policies for many states in one compiled call."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ggpi._jax.jit import jit
from ggpi.policies import PolicyBank
from ggpi.types import Key


@jit
def act(bank: PolicyBank, index: ArrayLike, states: ArrayLike, key: Key) -> jax.Array:
    """Actions [B, …] in states [B, …] of the policies `index` of a bank, one for all states or one for each."""
    return bank.sample(jnp.broadcast_to(jnp.asarray(index), jnp.shape(states)[:1]), states, key=key)


@jit
def act_at(bank: PolicyBank, index: ArrayLike, states: ArrayLike, key: Key, time: ArrayLike) -> jax.Array:
    """`act` at a time step: one key serves a whole rollout."""
    index = jnp.broadcast_to(jnp.asarray(index), jnp.shape(states)[:1])
    return bank.sample(index, states, key=jax.random.fold_in(key, time))
