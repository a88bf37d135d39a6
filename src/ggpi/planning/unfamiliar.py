"""Proposed codes that are unlike those that the models know: a search moves them to the bounds, which is to be said."""

from __future__ import annotations

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from ggpi._jax.batching import Function
from ggpi._jax.jit import jit
from ggpi.planning.chains import Problem
from ggpi.planning.posing import said
from ggpi.planning.search import AbstractPlanner
from ggpi.planning.sequences import choices_of
from ggpi.planning.shooting import AbstractShooter
from ggpi.types import Key, Numbers

OUTSIDE = 0.1
"""Of the range of codes: proposals that are moved by more are warned of."""


class UnfamiliarCodeWarning(UserWarning):
    """A planner's function proposes policies that are unlike those that the models learned from."""


def unfamiliar_codes(planner: AbstractPlanner, problem: Problem, states: Numbers, key: Key) -> str | None:
    """What is to be said of codes that the planner's function proposes in states [B, …]; None while JAX traces.

    They are drawn for this check alone: those of the search's rounds have keys of their own.
    """
    if not (isinstance(planner, AbstractShooter) and callable(planner.proposals)):
        return None
    codes = _proposed(planner.proposals, states, key)
    bounds = choices_of(problem).bounds or ()
    if any(isinstance(part, Tracer) for part in (codes, *bounds)):
        return None
    codes, (low, high) = np.concatenate(codes), map(np.asarray, bounds)
    slack = OUTSIDE * (high - low)
    outside = ~((codes >= low - slack) & (codes <= high + slack)).all(axis=1)
    if not outside.any():
        return None
    return (
        f"{outside.sum()} of {len(codes)} proposals lie outside of the codes that the models know, {said(low)} to "
        f"{said(high)}, by more than a tenth of their range, such as {said(codes[outside][0])}. They are moved "
        "there: other policies are planned with"
    )


@jit
def _proposed(proposals: Function, states: Numbers, key: Key) -> Array:
    """Codes [B, C, z]."""
    return jax.vmap(lambda state: proposals(state, key=key))(states)
