"""Rewards r(x), r(x, a) and ρ(x′): arrays, functions, targets, features, and rewards learned from samples."""

from ggpi.rewards.forms import (
    Each,
    Features,
    Form,
    Reward,
    Target,
    arrival,
    as_reward,
    each,
    features,
    state,
    state_action,
    target,
    targets,
)

__all__ = [
    "Each",
    "Features",
    "Form",
    "Reward",
    "Target",
    "arrival",
    "as_reward",
    "each",
    "features",
    "state",
    "state_action",
    "target",
    "targets",
]
