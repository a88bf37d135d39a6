"""Geometric policy composition: act well for a new reward with policies that you already have.

The public names, in the paper's order. Names are imported when they are first used, so that
`import ggpi` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

from ggpi.registration import register_when_possible

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which takes long to import
if TYPE_CHECKING:  # what editors and type checkers see; a test compares it with the names below
    from ggpi import data as data
    from ggpi import envs as envs
    from ggpi import rewards as rewards
    from ggpi.agents import GGPIAgent as GGPIAgent
    from ggpi.agents import Plan as Plan
    from ggpi.collection import collect as collect
    from ggpi.comparison import Comparison as Comparison
    from ggpi.comparison import compare as compare
    from ggpi.data import StateSpec as StateSpec
    from ggpi.data import Transitions as Transitions
    from ggpi.diagnosis import diagnose as diagnose
    from ggpi.errors import FileError as FileError
    from ggpi.errors import NoRewardWarning as NoRewardWarning
    from ggpi.errors import UnfamiliarStateWarning as UnfamiliarStateWarning
    from ggpi.evaluation import QValues as QValues
    from ggpi.evaluation import evaluate as evaluate
    from ggpi.evaluation import evaluate_gsp_sampled as evaluate_gsp_sampled
    from ggpi.evaluation import evaluate_janner_sampled as evaluate_janner_sampled
    from ggpi.evaluation import evaluate_markov_sampled as evaluate_markov_sampled
    from ggpi.evaluation import evaluate_sampled as evaluate_sampled
    from ggpi.execution import rollout as rollout
    from ggpi.ghm import ExactGHM as ExactGHM
    from ggpi.ghm import GHMs as GHMs
    from ggpi.ghm import TabularGHM as TabularGHM
    from ggpi.ghm import bellman as bellman
    from ggpi.ghm import cemc as cemc
    from ggpi.ghm import cetd as cetd
    from ggpi.ghm import cetd_replay as cetd_replay
    from ggpi.ghm import compose as compose
    from ggpi.ghm import exact_ghms as exact_ghms
    from ggpi.ghm import polynomial_steps as polynomial_steps
    from ggpi.ghm import successor_features as successor_features
    from ggpi.ghm import successor_representation as successor_representation
    from ggpi.ghm.fit import fit as fit
    from ggpi.ghm.flow import FlowConfig as FlowConfig
    from ggpi.ghm.losses import CEMC as CEMC
    from ggpi.ghm.losses import CETD as CETD
    from ggpi.ghm.losses import LL2TD as LL2TD
    from ggpi.ghm.vae import VAEConfig as VAEConfig
    from ggpi.improvement import improve as improve
    from ggpi.improvement import improve_head as improve_head
    from ggpi.iteration import policy_iteration as policy_iteration
    from ggpi.locking import InUseError as InUseError
    from ggpi.mdp import TabularMDP as TabularMDP
    from ggpi.optimal import q_star as q_star
    from ggpi.policies import PolicyBank as PolicyBank
    from ggpi.policies import TabularPolicy as TabularPolicy
    from ggpi.policies.gaussian import GaussianPolicy as GaussianPolicy
    from ggpi.policies.sb3 import load_sb3 as load_sb3
    from ggpi.policies.wrapped import policy_from as policy_from
    from ggpi.reward_learning import fit_reward as fit_reward
    from ggpi.saving import load as load
    from ggpi.saving import save as save
    from ggpi.shipped import pretrained as pretrained
    from ggpi.switching import GSP as GSP
    from ggpi.switching import GSPs as GSPs
    from ggpi.switching import compositions as compositions
    from ggpi.switching import is_suffix_closed as is_suffix_closed
    from ggpi.switching import missing_suffixes as missing_suffixes
    from ggpi.switching import suffix_closure as suffix_closure

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
    "compare": "comparison",
    "Comparison": "comparison",
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
    "NoRewardWarning": "errors",
    "UnfamiliarStateWarning": "errors",
    "InUseError": "locking",
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
