"""Do these policies belong into this world? Found out from shapes and spaces, before anything is run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.data import Transitions
from ggpi.policies.bank import PolicyBank
from ggpi.policies.tabular import TabularPolicy


def listed(policies: Any) -> tuple[Any, ...]:
    """The policies, each of which can be sampled; what is not a policy yet, the error says how to make one of."""
    if isinstance(policies, str | Path) or not isinstance(policies, Iterable):
        raise TypeError(f"policies are a list, such as [policy]; got {_what(policies)}")
    policies = tuple(policies)
    if not policies:
        raise ValueError("policies are a list of at least one policy, such as [policy]; got none")
    for k, policy in enumerate(policies):
        if isinstance(policy, type) or not callable(getattr(policy, "sample", None)):
            raise TypeError(f"policy {k} is {_what(policy)}")
    return policies


def _what(given: Any) -> str:
    """What someone gave in place of a policy, and how it becomes one."""
    kind = type(given)
    if isinstance(given, str | Path):
        return f"the path {str(given)!r}: load it first, with ggpi.load_sb3(path) or ggpi.load(path)"
    if isinstance(given, type):
        return f"the class {given.__name__}: give an object of this class"
    if kind.__module__.partition(".")[0] in ("stable_baselines3", "sb3_contrib"):
        return (
            f"a {kind.__name__} of Stable-Baselines3: save it, model.save('policy.zip'), and give "
            "ggpi.load_sb3('policy.zip')"
        )
    if hasattr(given, "sample"):
        return f"one {kind.__name__}"
    if callable(given):
        name = getattr(given, "__name__", kind.__name__)
        return f"the function {name}: ggpi.policy_from({name.strip('<>')}, env.action_space) makes a policy of it"
    return f"a {kind.__name__}: a policy has sample(state, *, key), as those of ggpi.load_sb3 and ggpi.policy_from"


def check_policies(
    policies: Sequence[Any], states: np.ndarray, space: Any, where: str = "this environment"
) -> None:
    """Every policy takes states like these and gives actions of this space; only shapes are computed.

    `where` says in errors what the states and the space belong to. Of a policy that says its own action space
    (a loaded or wrapped one), the number of actions and the finite bounds have to agree.
    """
    for k, policy in enumerate(policies):
        name = _called(k, policies)
        _check_acts(policy, name, states, space, where)
        _check_same(_own_space(policy), name, space, where)


def space_of(data: Transitions, policies: Sequence[Any]) -> Box | Discrete:
    """The space of recorded actions: their shape without bounds, or how many there are.

    The data may lack some of the discrete actions, so there are as many as the policies say (`action_space`), if they
    say more. A policy that does not say, such as a function of one's own, is tried on recorded states: there are as
    many actions as it takes.
    """
    if data.action.dtype.kind not in "iu":
        return Box(-np.inf, np.inf, data.action.shape[1:], np.float32)
    said = {
        _called(k, policies): int(own.n)
        for k, policy in enumerate(policies)
        if isinstance(own := _own_space(policy), Discrete)
    }
    if len(set(said.values())) > 1:
        counts = ", ".join(f"{count} for {name}" for name, count in said.items())
        raise ValueError(f"policies of one world have the same number of actions, got {counts}")
    count = max([int(np.max(data.action)) + 1, *said.values()])
    for k, policy in enumerate(policies):
        if _own_space(policy) is None:
            largest = _largest_action(policy, data.state)
            if said and largest >= count:
                raise ValueError(
                    f"{_called(k, policies)} takes action {largest}, the other policies say that there are {count}"
                )
            count = max(count, largest + 1)
    return Discrete(count)


def _largest_action(policy: Any, states: np.ndarray, count: int = 4096) -> int:
    """The largest of a policy's actions in some of the states, evenly spaced; −1 if it takes none."""
    rows = np.unique(np.linspace(0, len(states) - 1, count).astype(int))
    some = np.asarray(states[rows])
    some = some if some.dtype.kind in "iu" else some.astype(np.float32)
    try:
        taken = PolicyBank([policy]).sample(np.zeros(len(some), np.int32), some, key=jax.random.key(0))
    except (TypeError, ValueError, IndexError):
        return -1  # check_policies says what is wrong with it
    return int(taken.max()) if taken.dtype.kind in "iu" else -1


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
