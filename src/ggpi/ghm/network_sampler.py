"""One network for all horizons as a Sampler whose policies, codes and horizons are arrays.

A stack of models has the horizons that it was made for. Here a search may choose any horizon, and any code of a family
π(·|x, z), while it runs: only the biases of the network depend on them, so all segments share its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi._jax.random import quick
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import Conditioned
from ggpi.policies.action_heads import Head
from ggpi.policies.bank import PolicyBank
from ggpi.policies.family import with_code
from ggpi.types import Actor, Key, Numbers

Policies = tuple[int, ...]


class NetworkSampler(eqx.Module):
    """Models of all policies, or of all codes of a family, at all horizons."""

    network: Conditioned
    bank: PolicyBank
    terminal: Callable[[Any], Any] | None
    gamma: float = eqx.field(static=True)

    @property
    def working_size(self) -> int:
        """About how many numbers are held at a time while one sample is drawn."""
        return self.network.working_size

    def of(self, policy: Int[Array, ""]) -> OnePolicy:
        """The models of one policy, whose index is traced."""
        code = self.network.codes[policy]
        alone = self.bank.alone(policy)
        if alone is None:
            return OnePolicy(self.network, self.bank, policy, code)
        return OnePolicy(self.network, alone, jnp.zeros_like(policy), code)

    def of_code(self, code: Float[Array, "z"]) -> OnePolicy:
        """The models of a member of the family of the policies."""
        member = with_code(self.bank.first, code)
        return OnePolicy(self.network, member, jnp.zeros((), jnp.int32), code)

    def act(self, policies: Policies, state: Numbers, *, key: Key) -> Array:
        return self._each(lambda own, x, key: own.act(x, key=key), policies, key, state)

    def jump(self, policies: Policies, horizon: float, state: Numbers, action: Numbers, *, key: Key) -> Array:
        beta = jnp.asarray(horizon, jnp.float32)
        return self._each(lambda own, x, a, key: own.jump(beta, x, a, key=key), policies, key, state, action)

    def onward(self, policies: Policies, horizon: float, state: Numbers, *, key: Key) -> Array:
        beta = jnp.asarray(horizon, jnp.float32)
        return self._each(lambda own, x, key: own.onward(beta, x, key=key), policies, key, state)

    def _each(self, call: Callable[..., Array], policies: Policies, key: Key, *arrays: Numbers) -> Array:
        keys = jax.random.split(key, len(policies))
        return jax.vmap(lambda k, *one: call(self.of(k), *one))(jnp.asarray(policies), *arrays, keys)


class OnePolicy(eqx.Module):
    """The models of one policy at all horizons, for states [rows, …]."""

    network: Conditioned
    actor: PolicyBank | Head
    place: Int[Array, ""]
    """Of the policy in its bank."""
    code: Float[Array, "z"]

    def act(self, state: Numbers, *, key: Key) -> Array:
        if isinstance(self.actor, PolicyBank):
            return self.actor.sample(jnp.full(len(state), self.place), state, key=key)
        keys = jax.random.split(quick(key), len(state))
        member: Actor = self.actor
        return jax.vmap(lambda x, key: member.sample(x, key=key))(state, keys)

    def jump(self, horizon: Float[Array, ""], state: Numbers, action: Numbers, *, key: Key) -> Array:
        model = self.network.at(self.network.condition_at(self.code, horizon))
        noise = jax.random.normal(quick(key), (len(state), model.noise_size))
        return jax.vmap(model.push)(jnp.asarray(state), jnp.asarray(action), noise)

    def onward(self, horizon: Float[Array, ""], state: Numbers, *, key: Key) -> Array:
        action_key, jump_key = jax.random.split(key)
        return self.jump(horizon, state, self.act(state, key=action_key), key=jump_key)


def network_sampler(ghms: GHMs, terminal: Callable[[Any], Any] | None = None) -> NetworkSampler:
    """The network of some models as a Sampler.

    Args:
        ghms: models that share one network.
        terminal: whether a state ends an episode, a JAX function of one state.
    """
    return NetworkSampler(ghms.shared_network(), ghms.sampler().bank, terminal, ghms.gamma)
