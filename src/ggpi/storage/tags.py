"""Tags of saved classes: a name with a version, such as `vae/1`, that stays when the class moves to another module.

A saved directory says `{"class": "vae/1", "fields": …}`. Only tags of the table `LIBRARY` and tags that `savable`
registered can be loaded: what a file names is looked up, never imported. Directories from before there were tags name
classes by module path, which `BEFORE_TAGS` translates.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import threading
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

LIBRARY = {
    "alias-table/1": "ggpi._jax.alias:AliasTable",
    "batch-norm/1": "ggpi.ghm.batch_norm:BatchNorm",
    "categorical-policy/1": "ggpi.policies.action_heads:CategoricalPolicy",
    "cemc/1": "ggpi.learning.losses:CEMC",
    "cetd/1": "ggpi.learning.losses:CETD",
    "choice-policy/1": "ggpi.policies.action_heads:ChoicePolicy",
    "clipped-gaussian-policy/1": "ggpi.policies.action_heads:ClippedGaussianPolicy",
    "conditioned/1": "ggpi.ghm.conditioned:Conditioned",
    "coordinates/1": "ggpi.ghm.coordinates:Frame",
    "coupled-td-cfm/1": "ggpi.learning.flow_losses:CoupledTDCFM",
    "deterministic-policy/1": "ggpi.policies.action_heads:DeterministicPolicy",
    "diffusion-config/2": "ggpi.ghm.diffusion:DiffusionConfig",
    "diffusion/2": "ggpi.ghm.diffusion:Diffusion",
    "directed-ghm/1": "ggpi.ghm.symmetric:DirectedGHM",
    "directed-policy/1": "ggpi.policies.symmetric:DirectedPolicy",
    "each/1": "ggpi.rewards.forms:Each",
    "energy-mc/1": "ggpi.learning.energy_losses:EnergyMC",
    "energy-td/1": "ggpi.learning.energy_losses:EnergyTD",
    "exact-ghm/1": "ggpi.ghm.exact:ExactGHM",
    "feature-log-noise/1": "ggpi.policies.networks:FeatureLogNoise",
    "feature-noise/1": "ggpi.policies.networks:FeatureNoise",
    "features/1": "ggpi.rewards.forms:Features",
    "field-network/2": "ggpi.ghm.velocity:FieldNetwork",
    "fixed-deviation/1": "ggpi.policies.networks:FixedDeviation",
    "flow-matching-config/1": "ggpi.ghm.flow_matching:FlowMatchingConfig",
    "flow-matching/1": "ggpi.ghm.flow_matching:FlowMatching",
    "gaussian-mlp/1": "ggpi.policies.gaussian:LayerNormMLP",
    "gaussian-policy/1": "ggpi.policies.gaussian:GaussianPolicy",
    "ghms/2": "ggpi.ghm.base:GHMs",
    "greedy/1": "ggpi.policies.networks:Greedy",
    "gsp/1": "ggpi.switching:GSP",
    "gsps/1": "ggpi.switching:GSPs",
    "invertible-linear/1": "ggpi.ghm.spline_flow:InvertibleLinear",
    "jumps/1": "ggpi.planning.jumpy_graph:Jumps",
    "jumpy-graph/1": "ggpi.planning.jumpy_graph:JumpyGraph",
    "learned-reward/1": "ggpi.rewards.learned:LearnedReward",
    "linear-policy/1": "ggpi.policies.linear:LinearPolicy",
    "ll2td/1": "ggpi.learning.losses:LL2TD",
    "mc-cfm/1": "ggpi.learning.flow_losses:MCCFM",
    "mean-and-log-deviation/1": "ggpi.policies.networks:MeanAndLogDeviation",
    "mixed-policy/1": "ggpi.policies.linear:MixedPolicy",
    "mlp/1": "ggpi._jax.networks:MLP",
    "mode-policy/1": "ggpi.policies.action_heads:ModePolicy",
    "network/1": "ggpi.policies.networks:Network",
    "normaliser/1": "ggpi.policies.networks:Normaliser",
    "ogbench-walker/1": "ggpi.policies.symmetric:OGBenchWalker",
    "one-pass/1": "ggpi.ghm.one_pass:OnePass",
    "pendulum/1": "ggpi.envs.pendulum:Pendulum",
    "point-mass/1": "ggpi.envs.point_mass:PointMass",
    "policy-bank/1": "ggpi.policies.bank:PolicyBank",
    "q-values/1": "ggpi.evaluation.values:QValues",
    "recipe/1": "ggpi.learning.recipe:Recipe",
    "reward-network/1": "ggpi.rewards.learned:RewardNetwork",
    "reward/1": "ggpi.rewards.forms:Reward",
    "simulator/1": "ggpi.ghm.exact:Simulator",
    "solution/1": "ggpi.mdp.optimal:Solution",
    "spline-coupling/1": "ggpi.ghm.spline_flow:SplineCoupling",
    "spline-flow-config/1": "ggpi.ghm.spline_flow:FlowConfig",
    "spline-flow-layer/1": "ggpi.ghm.spline_flow:FlowLayer",
    "spline-flow/1": "ggpi.ghm.spline_flow:Flow",
    "squashed-gaussian-policy/1": "ggpi.policies.action_heads:SquashedGaussianPolicy",
    "state-spec/1": "ggpi.data.spec:StateSpec",
    "tabular-ghm/1": "ggpi.ghm.tabular:TabularGHM",
    "tabular-mdp/1": "ggpi.mdp.tabular:TabularMDP",
    "tabular-policy/1": "ggpi.policies.tabular:TabularPolicy",
    "tabular-sampler/1": "ggpi.ghm.exact:TabularSampler",
    "target/1": "ggpi.rewards.forms:Target",
    "td-cfm/1": "ggpi.learning.flow_losses:TDCFM",
    "td-dd/1": "ggpi.learning.flow_losses:TDDD",
    "td2-cfm/1": "ggpi.learning.flow_losses:TD2CFM",
    "td2-dd/1": "ggpi.learning.flow_losses:TD2DD",
    "timed-config/1": "ggpi.ghm.timed:TimedConfig",
    "timed-network/1": "ggpi.ghm.timed_network:TimedNetwork",
    "timed/1": "ggpi.ghm.timed:Timed",
    "transitions/1": "ggpi.data.transitions:Transitions",
    "unscaled/1": "ggpi.policies.networks:Unscaled",
    "vae-config/1": "ggpi.ghm.vae:VAEConfig",
    "vae/1": "ggpi.ghm.vae:VAE",
    "ways/1": "ggpi.planning.ways:Ways",
}
"""Tag → module and name of the class."""

BEFORE_TAGS = {
    "ggpi.categorical:AliasTable": "alias-table/1",
    "ggpi.data.spec:StateSpec": "state-spec/1",
    "ggpi.data.transitions:Transitions": "transitions/1",
    "ggpi.envs.linear_gaussian:LinearGaussian": "linear-gaussian/1",
    "ggpi.envs.pendulum:Pendulum": "pendulum/1",
    "ggpi.envs.point_mass:PointMass": "point-mass/1",
    "ggpi.envs.ring:Ring": "ring/1",
    "ggpi.evaluation.values:QValues": "q-values/1",
    "ggpi.ghm.base:GHMs": "ghms/1",
    "ggpi.ghm.batch_norm:BatchNorm": "batch-norm/1",
    "ggpi.ghm.exact:ExactGHM": "exact-ghm/1",
    "ggpi.ghm.exact:Simulator": "simulator/1",
    "ggpi.ghm.exact:TabularSampler": "tabular-sampler/1",
    "ggpi.ghm.flow:Flow": "spline-flow/1",
    "ggpi.ghm.flow:FlowConfig": "spline-flow-config/1",
    "ggpi.ghm.flow:FlowLayer": "spline-flow-layer/1",
    "ggpi.ghm.flow:InvertibleLinear": "invertible-linear/1",
    "ggpi.ghm.flow:SplineCoupling": "spline-coupling/1",
    "ggpi.ghm.frame:Frame": "coordinates/1",
    "ggpi.ghm.layers:MLP": "mlp/1",
    "ggpi.ghm.losses:CEMC": "cemc/1",
    "ggpi.ghm.losses:CETD": "cetd/1",
    "ggpi.ghm.losses:LL2TD": "ll2td/1",
    "ggpi.ghm.recipe:Recipe": "recipe/1",
    "ggpi.ghm.tabular:TabularGHM": "tabular-ghm/1",
    "ggpi.ghm.vae:VAE": "vae/1",
    "ggpi.ghm.vae:VAEConfig": "vae-config/1",
    "ggpi.mdp:TabularMDP": "tabular-mdp/1",
    "ggpi.optimal:Solution": "solution/1",
    "ggpi.policies.bank:PolicyBank": "policy-bank/1",
    "ggpi.policies.gaussian:GaussianPolicy": "gaussian-policy/1",
    "ggpi.policies.gaussian:MLP": "gaussian-mlp/1",
    "ggpi.policies.kinds:CategoricalPolicy": "categorical-policy/1",
    "ggpi.policies.kinds:ChoicePolicy": "choice-policy/1",
    "ggpi.policies.kinds:ClippedGaussianPolicy": "clipped-gaussian-policy/1",
    "ggpi.policies.kinds:DeterministicPolicy": "deterministic-policy/1",
    "ggpi.policies.kinds:ModePolicy": "mode-policy/1",
    "ggpi.policies.kinds:SquashedGaussianPolicy": "squashed-gaussian-policy/1",
    "ggpi.policies.linear:LinearPolicy": "linear-policy/1",
    "ggpi.policies.linear:MixedPolicy": "mixed-policy/1",
    "ggpi.policies.networks:FeatureLogNoise": "feature-log-noise/1",
    "ggpi.policies.networks:FeatureNoise": "feature-noise/1",
    "ggpi.policies.networks:FixedDeviation": "fixed-deviation/1",
    "ggpi.policies.networks:Greedy": "greedy/1",
    "ggpi.policies.networks:MeanAndLogDeviation": "mean-and-log-deviation/1",
    "ggpi.policies.networks:Network": "network/1",
    "ggpi.policies.networks:Normaliser": "normaliser/1",
    "ggpi.policies.networks:Unscaled": "unscaled/1",
    "ggpi.policies.symmetric:DirectedPolicy": "directed-policy/1",
    "ggpi.policies.tabular:TabularPolicy": "tabular-policy/1",
    "ggpi.reward_learning:LearnedReward": "learned-reward/1",
    "ggpi.reward_learning:RewardNetwork": "reward-network/1",
    "ggpi.rewards:Each": "each/1",
    "ggpi.rewards:Features": "features/1",
    "ggpi.rewards:Reward": "reward/1",
    "ggpi.rewards:Target": "target/1",
    "ggpi.switching:GSP": "gsp/1",
    "ggpi.switching:GSPs": "gsps/1",
}
"""Class before there were tags → tag. Entries are never removed, so that old directories stay loadable."""

UPGRADES = {"ghms/1": ("ghms/2", "ggpi.ghm.base:upgraded_from_1")}
"""Older tag → the current tag, and the function that converts the older fields."""

RETIRED = dict.fromkeys(
    ("diffusion/1", "diffusion-config/1", "field-network/1"),
    "flow matching and diffusion had other networks and solvers then; fit the models again",
)
"""Tags of trial versions that were never released → why they cannot be loaded."""

_TAG = re.compile(r"[a-z0-9][a-z0-9.-]*/[1-9][0-9]*")
_LIBRARY_TAGS = {place: tag for tag, place in LIBRARY.items()}
_registered: dict[str, type] = {}
_registered_tags: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def savable(tag: str) -> Callable[[Kind], Kind]:
    """Registers your own dataclass, so that `ggpi.save` and `ggpi.load` accept it.

        @ggpi.savable("mdn/1")
        class MDN(AbstractGHM): …

    Import the module of the class before `ggpi.load`. Registering a class of the same module and name again, as when
    a notebook cell is re-run, replaces it. If its fields change, register the new class as "mdn/2" and keep the old one
    under another name to load older directories.

    Args:
        tag: Lower-case words and a version, such as "mdn/1".
    """
    if not _TAG.fullmatch(tag):
        raise ValueError(f"a tag is lower-case words and a version, such as 'mdn/1', got {tag!r}")
    if tag in LIBRARY or tag in UPGRADES or tag in RETIRED:
        raise ValueError(f"the tag {tag!r} belongs to the library; choose another")

    def register(kind: Kind) -> Kind:
        _check_class(kind)
        with _lock:
            other = _registered.get(tag, kind)
            if _place(other) != _place(kind):
                raise ValueError(f"the tag {tag!r} is already registered for {_place(other)}; choose another")
            if _registered_tags.get(kind, tag) != tag:
                raise ValueError(f"{_place(kind)} is already registered as {_registered_tags[kind]!r}")
            _registered[tag] = kind
            _registered_tags[kind] = tag
        return kind

    return register


def _check_class(kind: type) -> None:
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind!r} is not a dataclass; an equinox.Module is one")
    if inspect.isabstract(kind):
        raise TypeError(f"{_place(kind)} is abstract; register its concrete subclasses")
    if _place(kind) in _LIBRARY_TAGS:
        raise ValueError(f"{_place(kind)} is registered already, as {_LIBRARY_TAGS[_place(kind)]!r}")


def tag_of(kind: type) -> str | None:
    """The tag of a class; None if it is not registered. Subclasses need a tag of their own."""
    return _LIBRARY_TAGS.get(_place(kind)) or _registered_tags.get(kind)


def class_of(name: str) -> type | None:
    """The class of a tag, an older tag, or a module path from before there were tags; None if there is none."""
    tag = BEFORE_TAGS.get(name, name)
    tag, _ = UPGRADES.get(tag, (tag, ""))
    return _found(LIBRARY[tag]) if tag in LIBRARY else _registered.get(tag)


def upgrade_of(name: str) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """The function that converts the fields of an older tag; None for a current tag."""
    tag = BEFORE_TAGS.get(name, name)
    return _found(UPGRADES[tag][1]) if tag in UPGRADES else None


def _found(place: str) -> Any:
    module, _, qualified = place.partition(":")
    return getattr(import_module(module), qualified)


def _place(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
