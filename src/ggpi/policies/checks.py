"""Do these policies belong into this world? Found out from shapes and spaces, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.policies.bank import PolicyBank
from ggpi.policies.tabular import TabularPolicy


def check_policies(
    policies: Sequence[Any], states: np.ndarray, space: Any, where: str = "this environment"
) -> None:
    """Every policy takes states like these and gives actions of this space; only shapes are computed.

    `where` says in errors what the states and the space belong to. Of a policy that says its own action space
    (a loaded or wrapped one), the number of actions and the finite bounds have to agree.

    Beyond the paper: policies that you already have come from somewhere else
    """
    for k, policy in enumerate(policies):
        name = _called(k, policies)
        _check_acts(policy, name, states, space, where)
        _check_same(_own_space(policy), name, space, where)


def space_of(actions: np.ndarray, policies: Sequence[Any]) -> Box | Discrete:
    """The space of recorded actions: their shape without bounds, or how many there are.

    The data may lack some of the discrete actions, so there are as many as the policies say, if they say more.

    Beyond the paper: datasets come without spaces
    """
    if actions.dtype.kind not in "iu":
        return Box(-np.inf, np.inf, actions.shape[1:], np.float32)
    said = {
        _called(k, policies): int(own.n)
        for k, policy in enumerate(policies)
        if isinstance(own := _own_space(policy), Discrete)
    }
    if len(set(said.values())) > 1:
        counts = ", ".join(f"{count} for {name}" for name, count in said.items())
        raise ValueError(f"policies of one world have the same number of actions, got {counts}")
    return Discrete(max([int(actions.max()) + 1, *said.values()]))


def _called(k: int, policies: Sequence[Any]) -> str:
    return f"policy {k} ({getattr(policies[k], 'name', '') or type(policies[k]).__name__})"


def _own_space(policy: Any) -> Any:
    """The action space that a policy says it has, or None."""
    if isinstance(policy, TabularPolicy):
        return Discrete(policy.pi.shape[1])
    return getattr(policy, "action_space", None)


def _check_acts(policy: Any, name: str, states: np.ndarray, space: Any, where: str) -> None:
    bank, index = PolicyBank([policy]), np.zeros(len(states), np.int32)
    try:
        given = eqx.filter_eval_shape(bank.sample, index, states, key=jax.random.key(0))
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{name} cannot act on states of shape {states.shape[1:]}: {error}") from error
    kind, wanted = ("i", "whole numbers") if isinstance(space, Discrete) else ("f", "floats")
    if given.shape[1:] != space.shape or given.dtype.kind != kind:
        raise ValueError(
            f"{name} gives actions of shape {given.shape[1:]} and type {given.dtype}, "
            f"{where} takes {wanted} of shape {space.shape}: {space}"
        )


def _check_same(own: Any, name: str, space: Any, where: str) -> None:
    """The policy's own action space, if it says one, is that of the world."""
    if isinstance(own, Discrete) and own.n != space.n:
        raise ValueError(f"{name} chooses between {own.n} actions, {where} has {space.n}")
    if isinstance(own, Box):
        for mine, its in ((own.low, space.low), (own.high, space.high)):
            known = np.isfinite(mine) & np.isfinite(its)
            if not np.allclose(mine[known], its[known], rtol=1e-5):
                raise ValueError(
                    f"{name} acts within {own.low.tolist()} and {own.high.tolist()}, {where} within "
                    f"{space.low.tolist()} and {space.high.tolist()}; gymnasium.wrappers.RescaleAction can change that"
                )
