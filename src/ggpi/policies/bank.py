"""A bank of policies: grouped by structure, stacked within a group, unrolled across groups.

Policies act on one state and may differ in architecture. Those whose arrays have the same shapes and whose other parts
are equal become one stacked policy. A bank is a pytree of arrays, so it passes through `jit` and `scan`. Names are
ignored, so banks of the same shapes share their compiled programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ggpi._jax.batching import Function, stack
from ggpi._jax.random import quick
from ggpi._jax.shapes import Lead, check_shape
from ggpi.policies.tabular import TabularPolicy
from ggpi.storage.verify import verify
from ggpi.types import Actor, ArrayLike, Key


class PolicyBank(eqx.Module):
    """K policies that are sampled together; states are integers (tabular) or vectors [D]."""

    arrays: tuple[Any, ...]
    """The stacked arrays of each group."""
    rest: tuple[Any, ...] = eqx.field(static=True)
    """The parts of a policy of each group that are not arrays."""
    members: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    """The indices of the policies of each group."""

    def __init__(self, policies: Sequence[Actor]):
        if not len(policies):
            raise ValueError("a bank needs at least one policy")
        parts = [eqx.partition(_module(policy), _is_array) for policy in policies]
        groups: dict[Any, list[int]] = {}
        for k, (arrays, rest) in enumerate(parts):
            groups.setdefault(_structure(arrays, rest), []).append(k)
        self.members = tuple(tuple(group) for group in groups.values())
        self.arrays = tuple(stack([parts[k][0] for k in group]) for group in self.members)
        self.rest = tuple(parts[group[0]][1] for group in self.members)

    checks_its_parts = True
    """`arrays` and `rest` are halves of policies; `check_parts` checks the whole policies."""

    def check_parts(self, lead: Lead) -> None:
        """Every policy is in one group, and every group holds valid policies."""
        if not len(self.members) == len(self.arrays) == len(self.rest):
            raise ValueError("members, arrays and rest have different lengths")
        if sorted(sum(self.members, ())) != list(range(len(self))) or not all(self.members):
            raise ValueError("members must hold each policy once")
        for group, members in enumerate(self.members):
            for leaf in jax.tree.leaves(self.arrays[group]):
                check_shape("an array of a group", leaf, (len(members), *leaf.shape[1:]))
            verify(self._policy(group, 0), f"group {group}")

    def __len__(self) -> int:
        return sum(map(len, self.members))

    def among(self, chosen: Sequence[int]) -> PolicyBank:
        """A bank of some of the policies, in this order."""
        if tuple(chosen) == tuple(range(len(self))):
            return self
        parts = {k: (g, row) for g, group in enumerate(self.members) for row, k in enumerate(group)}
        return PolicyBank([self._policy(*parts[k]) for k in chosen])

    @property
    def first(self) -> Any:
        """One of its policies."""
        return self._policy(0, 0)

    def alone(self, policy: Int[Array, ""]) -> PolicyBank | None:
        """A bank of one of the policies, whose index is traced; None where they differ in structure."""
        if len(self.members) > 1:
            return None
        arrays = jax.tree.map(lambda leaf: leaf[policy][None], self.arrays)
        one = object.__new__(PolicyBank)
        for name, value in {"arrays": arrays, "rest": self.rest, "members": ((0,),)}.items():
            object.__setattr__(one, name, value)
        return one

    def _policy(self, group: int, row: int) -> Any:
        arrays = jax.tree.map(lambda leaf: leaf[row], self.arrays[group])
        return eqx.combine(arrays, self.rest[group])

    def sample(self, index: ArrayLike, states: ArrayLike, *, key: Key) -> Array:
        """Policy `index[i]` acts on `states[i]`, for any leading axes i."""
        index, states = jnp.asarray(index), jnp.asarray(states)
        batch = index.shape
        flat = states.reshape(-1, *states.shape[len(batch) :])
        keys = jax.random.split(quick(key), len(flat))
        actions = self._in_order([self._everywhere(g, flat, keys) for g in range(len(self.members))])
        chosen = actions[jnp.clip(index.ravel(), 0, len(self) - 1), jnp.arange(len(flat))]
        return chosen.reshape(*batch, *chosen.shape[1:])

    def sample_each(self, states: ArrayLike, *, key: Key) -> Array:
        """Policy k acts on `states[k]`, an array [*batch, D] or integers [*batch]."""
        states = jnp.asarray(states)
        if not states.ndim or len(states) != len(self):
            raise ValueError(f"{len(self)} policies need states [{len(self)}, …], got shape {states.shape}")
        inner = 0 if jnp.issubdtype(states.dtype, jnp.integer) else 1
        batch = states.shape[1 : states.ndim - inner]
        flat = states.reshape(len(self), -1, *states.shape[states.ndim - inner :])
        keys = jax.random.split(quick(key), flat.shape[:2])
        actions = self._in_order([self._own(g, flat, keys) for g in range(len(self.members))])
        return actions.reshape(len(self), *batch, *actions.shape[2:])

    def _everywhere(self, group: int, states: Array, keys: Array) -> Array:
        """All policies of a group on all states, with the same noise: only one action of each state is used."""
        act = jax.vmap(self._act(group), in_axes=(None, 0, 0))
        size = len(self.members[group])
        return jax.vmap(act, in_axes=(0, None, None), axis_size=size)(self.arrays[group], states, keys)

    def _own(self, group: int, states: Array, keys: Array) -> Array:
        """Each policy of a group on its own states."""
        rows = np.array(self.members[group])
        act = jax.vmap(self._act(group), in_axes=(None, 0, 0))
        return jax.vmap(act)(self.arrays[group], states[rows], keys[rows])

    def _act(self, group: int) -> Function:
        return lambda arrays, state, key: eqx.combine(arrays, self.rest[group]).sample(state, key=key)

    def _in_order(self, groups: list[Array]) -> Array:
        """The actions [K, …] of all groups, in the order of the policies."""
        shapes = {group.shape[2:] for group in groups}
        if len(shapes) > 1:
            raise ValueError(f"the policies of a bank must have actions of one shape, got {sorted(shapes)}")
        if len(groups) == 1:
            return groups[0]
        return jnp.concatenate(groups)[np.argsort(np.concatenate(self.members))]


def _module(policy: Actor) -> Any:
    """The pytree that is sampled: the table of a tabular policy, or the policy itself without its name."""
    if isinstance(policy, TabularPolicy):
        return policy.table
    return jax.tree_util.tree_map_with_path(_nameless, policy)


def _nameless(path: tuple[object, ...], leaf: object) -> object:
    return "" if isinstance(leaf, str) and path and getattr(path[-1], "name", None) == "name" else leaf


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _structure(arrays: object, rest: object) -> tuple[object, ...]:
    """Equal for policies that can be stacked."""
    shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(arrays))
    return jax.tree.structure(arrays), shapes, tuple(jax.tree.leaves(rest))
