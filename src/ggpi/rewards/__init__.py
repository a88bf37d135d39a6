"""Rewards r(x), r(x, a) and ρ(x′): arrays, functions, targets, features, formulas, and rewards learned from samples."""

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
from ggpi.rewards.machine import Formula, formula, read_formula

__all__ = [
    "Each",
    "Features",
    "Form",
    "Formula",
    "Reward",
    "Target",
    "arrival",
    "as_reward",
    "each",
    "features",
    "formula",
    "read_formula",
    "state",
    "state_action",
    "target",
    "targets",
]
