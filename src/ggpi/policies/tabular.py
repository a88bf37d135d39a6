"""Policies of finite MDPs: an exact table of probabilities, and its sampler in JAX."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import DTypeLike

from ggpi._jax.alias import AliasTable, alias_table
from ggpi.mdp.kernels import check_distributions
from ggpi.mdp.tabular import TabularMDP
from ggpi.types import ArrayLike, Key, indices, reals


@dataclass(frozen=True, eq=False)
class TabularPolicy:
    """π(a|x) as an array `pi` [S, A] in float64; `np.asarray(policy)` is that array."""

    pi: Any
    name: str = "π"

    def __post_init__(self) -> None:
        pi = reals(self.pi, f"policy {self.name}")
        if pi.ndim != 2 or 0 in pi.shape:
            raise ValueError(f"a tabular policy has shape [S, A], got {pi.shape}")
        object.__setattr__(self, "pi", check_distributions(pi, f"policy {self.name}", lambda x: f"state {x}"))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.pi, dtype=dtype, copy=copy)

    @cached_property
    def table(self) -> AliasTable:
        """The sampler of the rows of π."""
        return alias_table(self.pi)

    def sample(self, state: ArrayLike, *, key: Key) -> Array:
        """An action for each entry of `state`."""
        return self.table.sample(jnp.asarray(state), key=key)

    def mode(self, state: ArrayLike) -> Array:
        """The most probable action; the first one on a tie."""
        return jnp.asarray(self.pi.argmax(axis=1), jnp.int32)[jnp.asarray(state)]

    def log_prob(self, state: ArrayLike, action: ArrayLike) -> Array:
        """log π(a|x)."""
        with np.errstate(divide="ignore"):
            return jnp.asarray(np.log(self.pi), jnp.float32)[jnp.asarray(state), jnp.asarray(action)]

    @classmethod
    def constant(cls, mdp: TabularMDP, action: int, name: str | None = None) -> TabularPolicy:
        """Always the same action."""
        if not 0 <= action < mdp.num_actions:
            raise IndexError(
                f"action {action} is out of range: this MDP has actions 0 to {mdp.num_actions - 1}"
            )
        pi = np.zeros((mdp.num_states, mdp.num_actions))
        pi[:, action] = 1.0
        return cls(pi, name or f"always {action}")

    @classmethod
    def uniform(cls, mdp: TabularMDP, name: str = "uniform") -> TabularPolicy:
        """Every action with the same probability."""
        return cls(np.full((mdp.num_states, mdp.num_actions), 1 / mdp.num_actions), name)

    @classmethod
    def deterministic(cls, actions: ArrayLike, num_actions: int, name: str = "π") -> TabularPolicy:
        """One action for each state."""
        return cls(np.eye(num_actions)[indices(actions, num_actions, "actions")], name)
