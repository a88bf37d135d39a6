"""Geometric policy composition: act well for a new reward with the policies that you already have.

The public names, in the paper's order; everything else is imported from its room, such as `ggpi.ghm`. Names are
imported when they are first used, so that `import ggpi` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which takes long to import
if TYPE_CHECKING:  # what editors and type checkers see; a test compares it with the names below
    from ggpi import cluster as cluster
    from ggpi import data as data
    from ggpi import envs as envs
    from ggpi import planning as planning
    from ggpi import rewards as rewards
    from ggpi.agent.agent import GGPIAgent as GGPIAgent
    from ggpi.data.spec import StateSpec as StateSpec
    from ggpi.data.transitions import Transitions as Transitions
    from ggpi.diagnosis.comparison import compare as compare
    from ggpi.diagnosis.report import diagnose as diagnose
    from ggpi.evaluation.exact import evaluate as evaluate
    from ggpi.evaluation.sampled import evaluate_sampled as evaluate_sampled
    from ggpi.ghm.base import GHMs as GHMs
    from ggpi.ghm.base import exact_ghms as exact_ghms
    from ggpi.ghm.diffusion import DiffusionConfig as DiffusionConfig
    from ggpi.ghm.flow_matching import FlowMatchingConfig as FlowMatchingConfig
    from ggpi.improvement import improve as improve
    from ggpi.improvement import policy_iteration as policy_iteration
    from ggpi.improvement import policy_iteration_sampled as policy_iteration_sampled
    from ggpi.learning.distillation import distil as distil
    from ggpi.learning.fitting import fit as fit
    from ggpi.learning.recipe import Recipe as Recipe
    from ggpi.mdp.optimal import q_star as q_star
    from ggpi.mdp.tabular import TabularMDP as TabularMDP
    from ggpi.planning.closed_loop import evaluate_closed_loop as evaluate_closed_loop
    from ggpi.planning.graph_building import jumpy_graph as jumpy_graph
    from ggpi.policies.family import policy_family as policy_family
    from ggpi.policies.functions import policy_from as policy_from
    from ggpi.policies.sb3.reader import load_sb3 as load_sb3
    from ggpi.policies.tabular import TabularPolicy as TabularPolicy
    from ggpi.rewards.learned import fit_reward as fit_reward
    from ggpi.rollout.collection import collect as collect
    from ggpi.storage.errors import FileError as FileError
    from ggpi.storage.objects import load as load
    from ggpi.storage.objects import save as save
    from ggpi.storage.pretrained import pretrained as pretrained
    from ggpi.storage.tags import savable as savable
    from ggpi.switching import GSP as GSP
    from ggpi.switching import GSPs as GSPs
    from ggpi.switching import compositions as compositions
    from ggpi.switching import suffix_closure as suffix_closure

_MODULES = ("cluster", "data", "envs", "planning", "rewards")
_NAMES = {
    # §2 Finite MDPs, policies, optimal values
    "TabularMDP": "mdp.tabular",
    "TabularPolicy": "policies.tabular",
    "q_star": "mdp.optimal",
    # §2 Geometric horizon models
    "exact_ghms": "ghm.base",
    "GHMs": "ghm.base",
    # §3 Geometric switching policies and their values
    "GSP": "switching",
    "GSPs": "switching",
    "compositions": "switching",
    "suffix_closure": "switching",
    "evaluate": "evaluation.exact",
    "evaluate_sampled": "evaluation.sampled",
    "evaluate_closed_loop": "planning.closed_loop",
    "jumpy_graph": "planning.graph_building",
    # §4, §5 Improvement and policy iteration
    "improve": "improvement",
    "policy_iteration": "improvement",
    "policy_iteration_sampled": "improvement",
    "GGPIAgent": "agent.agent",
    "compare": "diagnosis.comparison",
    # §6 Learning
    "StateSpec": "data.spec",
    "Transitions": "data.transitions",
    "collect": "rollout.collection",
    "policy_from": "policies.functions",
    "policy_family": "policies.family",
    "load_sb3": "policies.sb3.reader",
    "fit": "learning.fitting",
    "Recipe": "learning.recipe",
    "distil": "learning.distillation",
    "FlowMatchingConfig": "ghm.flow_matching",
    "DiffusionConfig": "ghm.diffusion",
    "fit_reward": "rewards.learned",
    "diagnose": "diagnosis.report",
    # Objects on disk
    "pretrained": "storage.pretrained",
    "save": "storage.objects",
    "load": "storage.objects",
    "savable": "storage.tags",
    "FileError": "storage.errors",
}

__all__ = [*_MODULES, *_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for Any

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"ggpi.{name}")
        if name in _NAMES:
            return getattr(import_module(f"ggpi.{_NAMES[name]}"), name)
        if name == "__version__":
            from importlib.metadata import version  # most of what `import ggpi` would cost

            return version("ggpi")
        raise AttributeError(f"module 'ggpi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
