"""Many policies as one: grouped by structure, stacked within a group, unrolled across groups.

Policies are written for one state and may differ in architecture. Those whose arrays agree in shape and whose
other parts are equal become one stacked policy; a bank of them is arrays only, so it goes through `jit` and
`scan` like any other pytree. Names do not count, so banks of the same shapes share their compiled programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.random import quick
from ggpi._jax.shapes import Lead, check_shape
from ggpi.policies.tabular import TabularPolicy
from ggpi.storage.verify import verify
from ggpi.types import Key


class PolicyBank(eqx.Module):
    """K policies that are sampled together; integer states are tabular, others are vectors [D]."""

    arrays: tuple[Any, ...]
    """The stacked arrays of each group."""
    rest: tuple[Any, ...] = eqx.field(static=True)
    """What else a policy of each group is made of."""
    members: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    """The policies of each group."""

    def __init__(self, policies: Sequence[Any]):
        if not len(policies):
            raise ValueError("a bank needs at least one policy, got none")
        parts = [eqx.partition(_module(policy), _is_array) for policy in policies]
        groups: dict[Any, list[int]] = {}
        for k, (arrays, rest) in enumerate(parts):
            groups.setdefault(_structure(arrays, rest), []).append(k)
        self.members = tuple(tuple(group) for group in groups.values())
        self.arrays = tuple(_stack([parts[k][0] for k in group]) for group in self.members)
        self.rest = tuple(parts[group[0]][1] for group in self.members)

    checks_its_parts = True
    """Its arrays and the rest are halves of policies, which are checked when they are put together."""

    def check_parts(self, lead: Lead) -> None:
        """Every policy is in one group, and is whole."""
        if not len(self.members) == len(self.arrays) == len(self.rest):
            raise ValueError("members, arrays and rest have different lengths")
        if sorted(sum(self.members, ())) != list(range(len(self))) or not all(self.members):
            raise ValueError("members are not the numbers of policies")
        for group, members in enumerate(self.members):
            for leaf in jax.tree.leaves(self.arrays[group]):
                check_shape("an array of a group", leaf, (len(members), *leaf.shape[1:]))
            verify(self._policy(group, 0), f"group {group}")

    def __len__(self) -> int:
        return sum(map(len, self.members))

    def among(self, chosen: Sequence[int]) -> PolicyBank:
        """A bank of some of the policies, in the given order."""
        if tuple(chosen) == tuple(range(len(self))):
            return self
        parts = {k: (g, row) for g, group in enumerate(self.members) for row, k in enumerate(group)}
        return PolicyBank([self._policy(*parts[k]) for k in chosen])

    def _policy(self, group: int, row: int) -> Any:
        arrays = jax.tree.map(lambda leaf: leaf[row], self.arrays[group])
        return eqx.combine(arrays, self.rest[group])

    def sample(self, index: Any, states: Any, *, key: Key) -> Any:
        """Policy `index[i]` acts on `states[i]`, for any leading axes i."""
        index, states = jnp.asarray(index), jnp.asarray(states)
        batch = index.shape
        flat = states.reshape(-1, *states.shape[len(batch) :])
        keys = jax.random.split(quick(key), len(flat))
        actions = self._in_order([self._everywhere(g, flat, keys) for g in range(len(self.members))])
        chosen = actions[jnp.clip(index.ravel(), 0, len(self) - 1), jnp.arange(len(flat))]
        return chosen.reshape(*batch, *chosen.shape[1:])

    def sample_each(self, states: Any, *, key: Key) -> Any:
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

    def _everywhere(self, group: int, states, keys):
        """All policies of a group on all states, sharing noise: only one of them is used for each state."""
        act = jax.vmap(self._act(group), in_axes=(None, 0, 0))
        size = len(self.members[group])
        return jax.vmap(act, in_axes=(0, None, None), axis_size=size)(self.arrays[group], states, keys)

    def _own(self, group: int, states, keys):
        rows = np.array(self.members[group])
        act = jax.vmap(self._act(group), in_axes=(None, 0, 0))
        return jax.vmap(act)(self.arrays[group], states[rows], keys[rows])

    def _act(self, group: int):
        return lambda arrays, state, key: eqx.combine(arrays, self.rest[group]).sample(state, key=key)

    def _in_order(self, groups: list[Any]):
        """Actions [K, …] in the policies' order from those of each group."""
        shapes = {group.shape[2:] for group in groups}
        if len(shapes) > 1:
            raise ValueError(f"policies of one bank have actions of one shape, got {sorted(shapes)}")
        if len(groups) == 1:
            return groups[0]
        return jnp.concatenate(groups)[np.argsort(np.concatenate(self.members))]


def _module(policy: Any) -> Any:
    """What samples: a tabular policy's table, else the policy itself without its name."""
    if isinstance(policy, TabularPolicy):
        return policy.table
    return jax.tree_util.tree_map_with_path(_nameless, policy)


def _nameless(path: Any, leaf: Any) -> Any:
    return "" if isinstance(leaf, str) and path and getattr(path[-1], "name", None) == "name" else leaf


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _structure(arrays: Any, rest: Any) -> Any:
    """Equal for policies that can be stacked."""
    shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(arrays))
    return jax.tree.structure(arrays), shapes, tuple(jax.tree.leaves(rest))


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
