"""An agent's choice: the best plan and its action, and what was considered."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi._jax.jit import jit
from ggpi.evaluation.tree import Places
from ggpi.planning import Plan as Found
from ggpi.policies.bank import PolicyBank
from ggpi.switching import GSPs
from ggpi.types import Key, Numbers


@dataclass(frozen=True, eq=False)
class Plan:
    """What the agent considered in a state, or in each of B states, and what it chose."""

    gsps: GSPs
    value: np.ndarray
    """[N]: the estimate of V^ν(x); [N, C] when C first actions were scored. For a batch [B, N] or [B, N, C]."""
    stderr: np.ndarray
    """Its standard error."""
    best: np.ndarray
    """The place of the chosen GSP in the set."""
    action: np.ndarray
    levels: list[list[np.ndarray]]
    paths: Places
    search: Found | None = None
    """What an adaptive planner did, with a leading axis over states: draws, survivors of each round, certified gap.
    Then `value` has the search's means, and the value of the chosen GSP alone has a standard error. A planner that
    draws its plans has them in `search.plans`; then `gsps` are those that were chosen, each with a value in its own
    state, and with one number for each segment where policies are codes."""

    def samples(self, gsp: int) -> list[np.ndarray]:
        """States [n, D] sampled at the ends of a GSP's segments, after the axes of a batch and of first actions."""
        if self.search is not None:
            raise ValueError("adaptive planners keep no samples; ggpi.planning.Exhaustive, the default, does")
        return [level[b][place] for level, (b, place) in zip(self.levels, self.paths[gsp], strict=False)]


@jit
def choose(
    bank: PolicyBank,
    heads: Int[np.ndarray, "N"] | Int[Array, "N"],
    mean: Float[np.ndarray, "N B C"] | Float[Array, "N B C"],
    states: Numbers,
    actions: Numbers | None,
    key: Key,
) -> tuple[Array, Array]:
    """The best GSP [B], ties broken at random, and the action: its head's, or the first action that it scored."""
    tie_key, act_key = jax.random.split(key)
    scores = jnp.moveaxis(mean, 1, 0).reshape(len(states), -1)
    lots = jax.random.uniform(tie_key, scores.shape)
    place = jnp.where(scores == scores.max(axis=1, keepdims=True), lots, -1.0).argmax(axis=1)
    best, tried = place // mean.shape[2], place % mean.shape[2]
    if actions is None:
        return best, bank.sample(jnp.asarray(heads)[best], states, key=act_key)
    return best, actions[jnp.asarray(heads)[best], jnp.arange(len(states)), tried]


@jit
def candidates(bank: PolicyBank, states: Numbers, count: int, key: Key) -> Array:
    """`count` actions of each policy in each state [K, B, C, …]."""
    repeated = jnp.broadcast_to(states[None, :, None], (len(bank), len(states), count, *states.shape[1:]))
    return bank.sample_each(repeated, key=key)
