"""Geometric horizon models: exact in finite MDPs, learned elsewhere."""

from ggpi.ghm.base import AbstractDensityGHM, AbstractGHM, GHMs, exact_ghms, joined_ghms
from ggpi.ghm.exact import (
    ExactGHM,
    bellman,
    compose,
    successor_features,
    successor_representation,
)
from ggpi.ghm.tabular import TabularGHM, cemc, cetd, cetd_replay, polynomial_steps

__all__ = [
    "AbstractDensityGHM",
    "AbstractGHM",
    "ExactGHM",
    "GHMs",
    "TabularGHM",
    "bellman",
    "cemc",
    "cetd",
    "cetd_replay",
    "compose",
    "exact_ghms",
    "joined_ghms",
    "polynomial_steps",
    "successor_features",
    "successor_representation",
]
