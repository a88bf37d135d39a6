"""Codes to choose policies from: those of states that may be reached from here."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi.ghm.base import GHMs
from ggpi.policies.bank import PolicyBank
from ggpi.types import Key, Numbers, whole


def future_codes(
    ghms: GHMs, code_of: Callable[[Array], Array], num_codes: int, alpha: float | None = None
) -> Callable[..., Float[Array, "C z"]]:
    """Proposals for a planner: codes of states that the model of an unknown policy samples from the current state.

    Args:
        ghms: models of a family π(·|x, z) that share one network.
        code_of: the code of the policy that leads to a state, a JAX function of one state.
        num_codes: how many codes there are in each round.
        alpha: how far the states are: at the horizon of a segment that ends with this probability, one of the models'
            α's; by default at the horizon γ.
    """
    count, model, bank = whole(num_codes, "num_codes"), ghms.of_any_policy(alpha), PolicyBank(ghms.policies)

    def propose(state: Numbers, *, key: Key) -> Float[Array, "C z"]:
        policy_key, act_key, noise_key = jax.random.split(key, 3)
        states = jnp.broadcast_to(state, (count, *state.shape))
        policies = jax.random.randint(policy_key, (count,), 0, len(bank))
        actions = bank.sample(policies, states, key=act_key)
        noise = jax.random.normal(noise_key, (count, model.noise_size))
        return jax.vmap(code_of)(jax.vmap(model.push)(states, actions, noise))

    return propose
