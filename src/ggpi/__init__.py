"""Geometric policy composition: act well for a new reward with policies that you already have.

The public names, in the paper's order. Names are imported when they are first used, so that
`import ggpi` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

from ggpi.registration import register_when_possible

__version__ = version("ggpi")
register_when_possible()

_MODULES = ("data", "envs", "rewards")
_NAMES = {
    # §2 Finite MDPs, policies, optimal values
    "TabularMDP": "mdp",
    "TabularPolicy": "policies",
    "StateSpec": "data",
    "Transitions": "data",
    "q_star": "optimal",
    # §2 Geometric horizon models
    "exact_ghms": "ghm",
    "ExactGHM": "ghm",
    "GHMs": "ghm",
    "successor_representation": "ghm",
    "successor_features": "ghm",
    # §3 Geometric switching policies and their values
    "GSP": "switching",
    "GSPs": "switching",
    "compositions": "switching",
    "is_suffix_closed": "switching",
    "missing_suffixes": "switching",
    "suffix_closure": "switching",
    "rollout": "execution",
    "QValues": "evaluation",
    "evaluate": "evaluation",
    "evaluate_sampled": "evaluation",
    "evaluate_gsp_sampled": "evaluation",
    "evaluate_markov_sampled": "evaluation",
    "evaluate_janner_sampled": "evaluation",
    # §4, §5 Improvement and policy iteration
    "improve": "improvement",
    "improve_head": "improvement",
    "policy_iteration": "iteration",
    "GGPIAgent": "agents",
    "Plan": "agents",
    # §6 Learning
    "collect": "collection",
    "PolicyBank": "policies",
    "policy_from": "policies.wrapped",
    "load_sb3": "policies.sb3",
    "compose": "ghm",
    "bellman": "ghm",
    "TabularGHM": "ghm",
    "cemc": "ghm",
    "cetd": "ghm",
    "cetd_replay": "ghm",
    "polynomial_steps": "ghm",
    "fit": "ghm.fit",
    "fit_reward": "reward_learning",
    "diagnose": "diagnosis",
    "VAEConfig": "ghm.vae",
    "FlowConfig": "ghm.flow",
    "CEMC": "ghm.losses",
    "CETD": "ghm.losses",
    "LL2TD": "ghm.losses",
    # §7 The ant
    "GaussianPolicy": "policies.gaussian",
    "pretrained": "shipped",
    "save": "saving",
    "load": "saving",
    "FileError": "errors",
}

__all__ = [*_MODULES, *_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ggpi.{name}")
    if name in _NAMES:
        return getattr(import_module(f"ggpi.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'ggpi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
