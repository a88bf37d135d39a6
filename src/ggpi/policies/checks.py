"""Checks that policies match an environment's spaces, from abstract shapes only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.data import Transitions
from ggpi.policies.bank import PolicyBank
from ggpi.policies.tabular import TabularPolicy
from ggpi.types import Actor


def listed(policies: object) -> tuple[Any, ...]:
    """The policies as a tuple; raises, with advice, for anything that cannot be sampled."""
    if isinstance(policies, str | Path) or not isinstance(policies, Iterable):
        raise TypeError(f"policies must be a list, such as [policy]; got {_what(policies)}")
    policies = tuple(policies)
    if not policies:
        raise ValueError("policies must be a list of at least one policy, such as [policy]; got none")
    for k, policy in enumerate(policies):
        if isinstance(policy, type) or not callable(getattr(policy, "sample", None)):
            raise TypeError(f"policy {k} is {_what(policy)}")
    return policies


def _what(given: object) -> str:
    """Describes an object that is not a policy, and how to make one of it."""
    kind = type(given)
    if isinstance(given, str | Path):
        return f"the path {str(given)!r}: load it first, with ggpi.load_sb3(path) or ggpi.load(path)"
    if isinstance(given, type):
        return f"the class {given.__name__}: pass an instance"
    if kind.__module__.partition(".")[0] in ("stable_baselines3", "sb3_contrib"):
        return (
            f"a {kind.__name__} of Stable-Baselines3: save it with model.save('policy.zip') and pass "
            "ggpi.load_sb3('policy.zip')"
        )
    if hasattr(given, "sample"):
        return f"one {kind.__name__}"
    if callable(given):
        name = getattr(given, "__name__", kind.__name__)
        return f"the function {name}: wrap it with ggpi.policy_from({name.strip('<>')}, env.action_space)"
    return f"a {kind.__name__}: a policy has sample(state, *, key); see ggpi.load_sb3 and ggpi.policy_from"


def check_policies(
    policies: Sequence[Actor],
    states: np.ndarray,
    space: gymnasium.Space,
    where: str = "this environment",
) -> None:
    """Raises unless every policy acts on such states with actions of this space; only shapes are computed.

    If a policy has an `action_space` of its own, the number of actions and the finite bounds must agree.

    Args:
        policies: What is checked.
        states: A few states [N, D], or integers [N].
        space: The action space of the environment or of the data.
        where: What the states and the space belong to, for errors.
    """
    for k, policy in enumerate(policies):
        name = _called(k, policies)
        _check_acts(policy, name, states, space, where)
        _check_same(_own_space(policy), name, space, where)


def space_of(data: Transitions, policies: Sequence[Actor]) -> Box | Discrete:
    """The space of recorded actions: a Box without bounds, or the number of discrete actions.

    The data may lack some discrete actions, so the `action_space` of the policies counts too. Policies without one,
    such as functions of the user, are sampled on recorded states to find their largest action.
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
        raise ValueError(f"all policies must have the same number of actions, got {counts}")
    count = max([int(np.max(data.action)) + 1, *said.values()])
    for k, policy in enumerate(policies):
        if _own_space(policy) is None:
            largest = _largest_action(policy, data.state)
            if said and largest >= count:
                raise ValueError(
                    f"{_called(k, policies)} takes action {largest}, but the other policies have {count} actions"
                )
            count = max(count, largest + 1)
    return Discrete(count)


def _largest_action(policy: Actor, states: np.ndarray, count: int = 4096) -> int:
    """The largest action of a policy in up to `count` evenly spaced states; −1 if it cannot act on them."""
    rows = np.unique(np.linspace(0, len(states) - 1, count).astype(int))
    some = np.asarray(states[rows])
    some = some if some.dtype.kind in "iu" else some.astype(np.float32)
    try:
        taken = PolicyBank([policy]).sample(np.zeros(len(some), np.int32), some, key=jax.random.key(0))
    except (TypeError, ValueError, IndexError):
        return -1  # check_policies reports the problem
    return int(taken.max()) if taken.dtype.kind in "iu" else -1


def _called(k: int, policies: Sequence[Actor]) -> str:
    return f"policy {k} ({getattr(policies[k], 'name', '') or type(policies[k]).__name__})"


def _own_space(policy: Actor) -> gymnasium.Space | None:
    """The action space of a policy, or None if it has none."""
    if isinstance(policy, TabularPolicy):
        return Discrete(policy.pi.shape[1])
    return getattr(policy, "action_space", None)


def _check_acts(policy: Actor, name: str, states: np.ndarray, space: gymnasium.Space, where: str) -> None:
    bank, index = PolicyBank([policy]), np.zeros(len(states), np.int32)
    try:
        actions = eqx.filter_eval_shape(bank.sample, index, states, key=jax.random.key(0))
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{name} cannot act on states of shape {states.shape[1:]}: {error}") from error
    kind, wanted = ("i", "whole numbers") if isinstance(space, Discrete) else ("f", "floats")
    if actions.shape[1:] != space.shape or actions.dtype.kind != kind:
        raise ValueError(
            f"{name} returns actions of shape {actions.shape[1:]} and dtype {actions.dtype}, "
            f"{where} expects {wanted} of shape {space.shape}: {space}"
        )


def _check_same(own: gymnasium.Space | None, name: str, space: gymnasium.Space, where: str) -> None:
    """Raises unless the policy's own action space, if it has one, matches."""
    if isinstance(own, Discrete) and isinstance(space, Discrete) and own.n != space.n:
        raise ValueError(f"{name} chooses between {own.n} actions, {where} has {space.n}")
    if isinstance(own, Box) and isinstance(space, Box):
        for mine, its in ((own.low, space.low), (own.high, space.high)):
            known = np.isfinite(mine) & np.isfinite(its)
            if not np.allclose(mine[known], its[known], rtol=1e-5):
                raise ValueError(
                    f"{name} acts within {own.low.tolist()} and {own.high.tolist()}, {where} within "
                    f"{space.low.tolist()} and {space.high.tolist()}; gymnasium.wrappers.RescaleAction can rescale them"
                )
