"""Greedy improvement, GPI and GGPI: one function over a set of Q-functions.

    π′(a|x) > 0  ⟹  a ∈ argmax_{a′} max_ν Q^ν(x, a′)

One Q-function gives the greedy policy, those of Markov policies GPI, those of a suffix-closed set of
switching policies GGPI, for which Q^{π′} ≥ max_ν Q^ν. Without closure there is no such promise, so an
open set is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ggpi.evaluation import QValues
from ggpi.policies import TabularPolicy
from ggpi.reals import real, reals
from ggpi.switching import missing_suffixes
from ggpi.ties import UNKNOWN, is_best

Ties = Literal["uniform", "first", "random"]


class OpenSetWarning(UserWarning):
    """Improvement over a set that is not suffix-closed: nothing is promised.

    Paper: Thm 4.2, Ex D.3
    """


def improve(
    q: QValues | ArrayLike,
    *,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    seed: int = 0,
    allow_open_set: bool = False,
    name: str = "improved",
) -> TabularPolicy:
    """A policy that is greedy in max_ν Q^ν.

    Actions that cannot be told from the best are tied: the policy spreads over them evenly, or takes the
    first, or one at random. `tolerance` is relative to the values of each state (see `ggpi.ties`): by default
    9e-13 for exact values, and 1e-9 for others. An array [S, A] or [n, S, A] is taken as it is; a `QValues` is
    checked.

    Paper: Eq 1, Prop 2.1, Thm 4.2
    """
    if isinstance(q, QValues):
        _check_closed(q, allow_open_set)
    values = _checked_values(q.array if isinstance(q, QValues) else reals(q, "Q-values"))
    sizes = q.sizes if isinstance(q, QValues) else np.abs(values)
    if values.ndim == 3:
        best = values.argmax(axis=0)[None]
        values, sizes = (np.take_along_axis(array, best, axis=0)[0] for array in (values, sizes))
    maximisers = is_best(values, sizes, axis=1, **_limits(q, tolerance))
    return TabularPolicy(break_ties(maximisers, ties, seed), name)


def improve_head(q: QValues, *, tolerance: float | None = None, name: str = "head rule") -> TabularPolicy:
    """Acts in x as the head policies of the GSPs with the best V^ν(x), averaged over those tied, as in `improve`.

    Paper: Thm 4.2, Alg 2
    """
    _check_closed(q, allow_open_set=False)
    _checked_values(q.array)
    chosen = is_best(q.v, q.of_heads(q.sizes), axis=0, **_limits(q, tolerance))
    heads = np.stack([np.asarray(q.policies[gsp.head]) for gsp in q.gsps])
    pi = np.einsum("nx,nxa->xa", chosen / chosen.sum(axis=0), heads)
    return TabularPolicy(pi, name)


def _limits(q: Any, tolerance: float | None) -> dict[str, float]:
    """The tolerance and the error by which ties are judged."""
    accuracy = q.accuracy if isinstance(q, QValues) else UNKNOWN
    chosen = accuracy.tolerance if tolerance is None else real(tolerance, "tolerance")
    return {"tolerance": chosen, "error": accuracy.error}


def break_ties(maximisers: np.ndarray, ties: Ties, seed: int = 0) -> np.ndarray:
    """π [S, A] over the marked actions: all of them evenly, the first, or one at random.

    Paper: Eq 1
    """
    if ties == "uniform":
        weights = maximisers
    elif ties == "first":
        weights = np.cumsum(maximisers, axis=1) * maximisers == 1
    elif ties == "random":
        lots = np.random.default_rng(seed).random(maximisers.shape) * maximisers
        weights = lots == lots.max(axis=1, keepdims=True)
    else:
        raise ValueError(f"ties are broken 'uniform', 'first' or 'random', got {ties!r}")
    return weights / weights.sum(axis=1, keepdims=True)


def _check_closed(q: QValues, allow_open_set: bool) -> None:
    missing = missing_suffixes(q.gsps)
    if not missing:
        return
    names = _names(q.policies)
    listed = ", ".join(gsp.name(names) for gsp in missing[:5]) + (", …" if len(missing) > 5 else "")
    said = f"the set is not suffix-closed: it lacks {len(missing)} suffixes ({listed})"
    if not allow_open_set:
        raise ValueError(
            f"{said}, so improvement is not guaranteed; evaluate suffix_closure(gsps), "
            "or pass allow_open_set=True to go on"
        )
    warnings.warn(f"{said}; the improved policy may be worse than its parts", OpenSetWarning, stacklevel=3)


def _names(policies: Sequence[Any]) -> list[str]:
    return [policy.name for policy in policies]


def _checked_values(values: np.ndarray) -> np.ndarray:
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ValueError(f"Q-values have shape [S, A] or [n, S, A], got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{(~np.isfinite(values)).sum()} Q-values are not finite")
    return values
