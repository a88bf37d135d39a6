"""Geometric horizon models: exact in finite MDPs, learned elsewhere."""

from ggpi.ghm.abstract import AbstractDensity, AbstractDensityGHM, AbstractGHM
from ggpi.ghm.base import GHMs, exact_ghms, joined_ghms
from ggpi.ghm.diffusion import DiffusionConfig
from ggpi.ghm.exact import (
    ExactGHM,
    bellman,
    compose,
    successor_features,
    successor_representation,
)
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.tabular import TabularGHM, cemc, cetd, cetd_replay, polynomial_steps
from ggpi.ghm.timed import TimedConfig
from ggpi.ghm.vae import VAEConfig

__all__ = [
    "AbstractDensity",
    "AbstractDensityGHM",
    "AbstractGHM",
    "DiffusionConfig",
    "ExactGHM",
    "FlowConfig",
    "FlowMatchingConfig",
    "GHMs",
    "TabularGHM",
    "TimedConfig",
    "VAEConfig",
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
