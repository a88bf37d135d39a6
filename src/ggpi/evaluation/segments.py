"""The one rule of a switching policy's segments: who acts in each, at which horizon, and what its ends weigh.

For ν = π₁ →(α₁) … πₙ and r(x, a) earned on leaving,

    Q^ν = r(x, a) + γ/(1−γ) · E[ Σ_{m<n} wₘ ((1−αₘ) r^{πₘ} + αₘ r^{πₘ₊₁})(X^(m)) + wₙ r^{πₙ}(X′) ].

Segment m < n is drawn from μ^{πₘ} at βₘ, the last from μ^{πₙ} at γ; the action that starts segment m is chosen by
πₘ. Read segment by segment, each pays at both its ends with actions of its own policy alone: αₘ₋₁wₘ₋₁ where it
starts, (1−αₘ)wₘ where it ends (wₙ for the last). Both actions at a switch are drawn: paying only for the one that
goes on would be biased.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ggpi.mdp.tabular import composition_weights
from ggpi.switching import GSP


class Segment(NamedTuple):
    """One segment of a switching policy; equal for GSPs that agree up to its end."""

    policy: int
    alpha: float | None
    """The probability of the switch that ends it; None for the last, which never ends."""
    start: float
    """What r^π weighs where it starts, with the action that starts it; 0 for the first."""
    end: float
    """What r^π weighs where it ends."""


def segments(policies: Sequence[int], alphas: Sequence[float], gamma: float) -> tuple[Segment, ...]:
    """The segments of π₁ →(α₁) … πₙ; repeats of the last policy are kept as they are.

    Paper: Thm 3.2
    """
    weights = composition_weights(gamma, alphas).tolist()
    starts = [0.0, *(alpha * w for alpha, w in zip(alphas, weights, strict=False))]
    ends = [*((1 - alpha) * w for alpha, w in zip(alphas, weights, strict=False)), weights[-1]]
    return tuple(map(Segment, policies, (*alphas, None), starts, ends))


def segments_of(gsp: GSP, gamma: float) -> tuple[Segment, ...]:
    """The segments of a GSP."""
    return segments(gsp.policies, gsp.alphas, gamma)
