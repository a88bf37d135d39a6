"""Families of policies π(·|x, z): one function of the state and a code z, for many codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.batching import Function
from ggpi.policies.action_heads import Head
from ggpi.policies.functions import Actions, UserFunction, policy_from
from ggpi.types import Actor, ArrayLike, reals


class Coded(eqx.Module):
    """A function of state and code, with the code filled in."""

    function: Function = eqx.field(static=True)
    code: Float[Array, "z"]

    def __call__(self, state: Array) -> Any:
        return self.function(state, self.code)


def policy_family(
    function: Function,
    codes: ArrayLike,
    actions: Actions,
    *,
    returns: str = "action",
    names: Sequence[str] | None = None,
) -> tuple[Head, ...]:
    """Makes policies from a JAX function of state and code.

    One network of `ggpi.fit(…, alpha="any")` sees the codes, so that it can use what policies have in common.

    Args:
        function: takes one state and one code [z].
        codes: the codes [K, z], one for each policy.
        actions: as in `ggpi.policy_from`.
        returns: as in `ggpi.policy_from`.
        names: names of the policies; by default their codes.
    """
    codes = reals(codes, "codes")
    if codes.ndim != 2 or 0 in codes.shape or not np.isfinite(codes).all():
        raise ValueError(f"codes are finite numbers [K, z], one row for each policy, got shape {codes.shape}")
    names = names or ["z = " + ", ".join(f"{x:g}" for x in code) for code in codes]
    if len(names) != len(codes):
        raise ValueError(f"there are {len(codes)} codes, got {len(names)} names")
    filled = (Coded(function, jnp.asarray(code, jnp.float32)) for code in codes)
    return tuple(
        policy_from(one, actions, returns=returns, name=name) for one, name in zip(filled, names, strict=True)
    )


def with_code(policy: Head, code: Float[Array, "z"]) -> Head:
    """The member of the same family with another code, which may be traced."""
    return eqx.tree_at(_code, policy, code)


def _code(policy: Any) -> Any:
    return policy.function.code.code


def codes_of(policies: Sequence[Actor]) -> Float[np.ndarray, "K z"]:
    """The codes of policies of one family; unit vectors for others."""
    codes = family_codes(policies)
    return np.eye(len(policies), dtype=np.float32) if codes is None else codes


def family_codes(policies: Sequence[Actor]) -> Float[np.ndarray, "K z"] | None:
    """The codes of policies of one family; None for others."""
    found = [_coded(policy) for policy in policies]
    codes = [np.asarray(one.code) for one in found if one is not None]
    kinds = {(one.function, one.code.shape) for one in found if one is not None}
    return np.stack(codes) if len(kinds) == 1 and len(codes) == len(policies) else None


def check_same_family(ours: Sequence[Actor], theirs: Sequence[Actor]) -> None:
    """Raises if two groups of policies are members of families of different functions."""
    one, other = ({found.function for found in map(_coded, group) if found} for group in (ours, theirs))
    if one and other and one != other:
        given, expected = (" and ".join(sorted(map(_name, functions))) for functions in (one, other))
        raise ValueError(
            f"these models were trained on the family of {expected}, got policies of the family of {given}, which is "
            "another function; use ggpi.policy_family with the same function, or fit again"
        )


def _name(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _coded(policy: Actor) -> Coded | None:
    function = policy.function if isinstance(policy, Head) else None
    inner = function.code if isinstance(function, UserFunction) else None
    return inner if isinstance(inner, Coded) else None
