"""The models that a set of policies needs: μ_γ of each, and μ_β for each α."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ggpi._jax.batching import stack
from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.conditioned import Conditioned, check_one_network
from ggpi.ghm.exact import ExactGHM, tabular_sampler
from ggpi.ghm.samplers import ModelSampler, Table, TableSampler
from ggpi.ghm.tabular import TabularGHM
from ggpi.mdp.tabular import TabularMDP, check_gamma
from ggpi.policies.bank import PolicyBank
from ggpi.policies.checks import listed
from ggpi.policies.family import check_same_family, codes_of, family_codes
from ggpi.policies.tabular import TabularPolicy
from ggpi.storage.objects import Foreign
from ggpi.storage.reading import short
from ggpi.switching import GSPs, beta_of
from ggpi.types import GHM, Actor, Scalar, reals

Models = eqx.Module | Sequence[ExactGHM]
"""The models of all policies at one horizon: one module with a leading axis over policies, or exact models in a row."""


@dataclass(frozen=True, eq=False)
class GHMs:
    """`models` are the μ^π of all policies at each horizon: at γ, then at β = γ(1−α) for each α, in this order.

    `one_step` is a learned P(·|x, a), the model at horizon 0, which is the same for all policies. Where one network
    has the models of all horizons, `with_alpha`, `with_gamma` and `with_policies` give others than those in `models`.
    """

    policies: Sequence[Any]
    gamma: float
    alphas: tuple[float, ...]
    models: tuple[Any, ...]
    one_step: Any = None

    def __post_init__(self):
        self._check_network()
        if self.network is not None and not any(isinstance(policy, Foreign) for policy in self.policies):
            self.network.check_codes(codes_of(self.policies))

    def _check_network(self) -> None:
        """All models of one network are its own, at their horizons."""
        if any(isinstance(models, Conditioned) for models in self.models):
            check_one_network(self.models, self.horizons)

    @property
    def network(self) -> Conditioned | None:
        """The network that has the models of all horizons; None for models that were trained apart."""
        return self.models[0] if self.models and isinstance(self.models[0], Conditioned) else None

    def with_alpha(self, alpha: Scalar | Sequence[Scalar]) -> GHMs:
        """Models for other switching probabilities, from the network for all horizons."""
        return self._at(self.gamma, tuple(dict.fromkeys(reals(alpha, "α").ravel().tolist())))

    def with_gamma(self, gamma: Scalar) -> GHMs:
        """Models for another discount, up to the one that the network was trained for, and the same α's."""
        return self._at(check_gamma(gamma), self.alphas)

    def with_policies(self, policies: Sequence[Any]) -> GHMs:
        """Models of other members of the family π(·|x, z) that the network was trained on."""
        policies, network = listed(policies), self.shared_network()
        check_same_family(policies, self.policies)
        network = network.with_codes(family_codes(policies))
        for policy in policies:
            _check_acts(policy, _world(network))
        return replace(self, policies=policies, models=tuple(map(network.at_horizon, self.horizons)))

    def of_any_policy(self, alpha: float | None = None) -> AbstractGHM:
        """The model of a policy that is not known, the mixture of those that were trained; horizons as in `segment`."""
        return self.shared_network().of_any_policy(self.horizon(alpha))

    def supporting(self, alphas: Iterable[float]) -> GHMs:
        """These models, or those of the network for further switching probabilities."""
        missing = sorted(set(alphas) - set(self.alphas))
        return self.with_alpha((*self.alphas, *missing)) if missing and self.network else self

    def shared_network(self) -> Conditioned:
        """The network that has the models of all horizons; raises if they were trained apart."""
        if self.network is None:
            raise ValueError(
                f"these models were trained apart, at the horizons {list(self.horizons)} only; "
                'ggpi.fit(…, alpha="any") trains one network for all of them'
            )
        return self.network

    def _at(self, gamma: float, alphas: tuple[float, ...]) -> GHMs:
        network = self.shared_network()
        horizons = gamma, *(beta_of(gamma, alpha) for alpha in alphas)
        return replace(self, gamma=gamma, alphas=alphas, models=tuple(map(network.at_horizon, horizons)))

    def segment(self, policy: int, alpha: float | None) -> Any:
        """The model of one segment: μ_β^π before a switch with probability α, μ_γ^π for the last (α = None)."""
        if not 0 <= policy < len(self.policies):
            raise IndexError(
                f"there are models of policies 0 to {len(self.policies) - 1}, {', '.join(self.names)}; got {policy}"
            )
        return _of_policy(self.models[0 if alpha is None else 1 + self._place(alpha)], policy)

    def horizon(self, alpha: float | None) -> float:
        """γ for the last segment (α = None), else β = γ(1−α) of one of these models' α's."""
        return self.horizons[0 if alpha is None else 1 + self._place(alpha)]

    @property
    def horizons(self) -> tuple[float, ...]:
        """γ, then β for each α: those of `models`."""
        return self.gamma, *(beta_of(self.gamma, alpha) for alpha in self.alphas)

    def _place(self, alpha: float) -> int:
        if alpha not in self.alphas:
            advice = f"fit with alpha={alpha}" if self.network is None else f"use ghms.with_alpha({alpha})"
            raise ValueError(f"there are models for α in {list(self.alphas)}, none for α = {alpha}; {advice}")
        return self.alphas.index(alpha)

    def check(self, gsps: GSPs) -> None:
        """Raises for GSPs over policies or α's that these models do not have."""
        if gsps.num_policies > len(self.policies):
            raise IndexError(
                f"the switching policies name base policy {gsps.num_policies - 1}, "
                f"but there are {len(self.policies)} (0 to {len(self.policies) - 1})"
            )
        for alpha in gsps.alphas:
            self._place(alpha)

    def lead_of(self, field: str) -> Lead:
        """Learned models are stacked over policies, unless they share a network."""
        is_stacked = self._is_stacked and self.network is None
        return (len(self.policies),) if field == "models" and is_stacked else ()

    @property
    def _is_stacked(self) -> bool:
        return all(isinstance(models, eqx.Module) for models in self.models)

    def check_parts(self, lead: Lead) -> None:
        """There is a model for each horizon and policy, and policies act in the states of the models."""
        check_gamma(self.gamma)
        if not self.policies or len(self.models) != len(self.horizons):
            raise ValueError(f"{len(self.models)} models, expected those of horizons {list(self.horizons)}")
        worlds = set()
        for horizon, models in zip(self.horizons, self.models, strict=True):
            each = [models] if self._is_stacked else list(models)
            if not self._is_stacked and len(each) != len(self.policies):
                raise ValueError(f"{len(each)} models at {horizon}, but {len(self.policies)} policies")
            worlds |= {_world(model) for model in each}
        if self.one_step is not None:
            worlds.add(_world(self.one_step))
        if len(worlds) > 1:
            raise ValueError(f"models of {len(worlds)} worlds: {sorted(map(str, worlds))[:3]}")
        for policy in self.policies:
            _check_acts(policy, next(iter(worlds)))

    @property
    def mdp(self) -> TabularMDP:
        """The finite MDP of exact models; learned ones have none."""
        model = self.segment(0, None)
        if not isinstance(model, ExactGHM):
            raise ValueError(
                f"exact evaluation needs the models of ggpi.exact_ghms, got learned ones: {type(model).__name__}. "
                "ggpi.GGPIAgent(ghms, reward, …).plan(state, key=…) estimates values from samples of any models"
            )
        return model.mdp

    @property
    def names(self) -> list[str]:
        return [policy.name for policy in self.policies]

    def sampler(self, terminal: Callable[[Any], Any] | None = None) -> ModelSampler | TableSampler:
        """What planners draw actions and future states from.

        Args:
            terminal: whether a state ends an episode, a JAX function of one state. A finite MDP knows it.
        """
        return self._sampler if terminal is None else replace(self._sampler, terminal=terminal)

    def one_step_sampler(self) -> ModelSampler | TableSampler | None:
        """P(·|x, a), of the finite MDP or learned, as a Sampler: the jump of policy 0 at horizon 0; None if unknown."""
        model = self.segment(0, None)
        if isinstance(model, ExactGHM):
            table = stack([ExactGHM(model.mdp, model.policy, 0.0).sampler])
            return replace(self._sampler, tables=(table,), horizons=(0.0,))
        if self.one_step is None:
            return None
        return replace(self._sampler, models=(stack([self.one_step]),), horizons=(0.0,))

    @cached_property
    def _sampler(self) -> ModelSampler | TableSampler:
        with (
            jax.ensure_compile_time_eval()
        ):  # the arrays are constants, also of a function that is being traced
            stacks = tuple(_stacked(models, self.policies) for models in self.models)
            bank = PolicyBank(tuple(self.policies))
            if isinstance(stacks[0], AbstractGHM):
                return ModelSampler(stacks, bank, None, self.gamma, self.horizons)
            model, terminal = self.segment(0, None), None
            if isinstance(model, ExactGHM) and model.mdp.terminal.any():
                terminal = Table(jnp.asarray(model.mdp.terminal))
            pi = jnp.asarray(np.stack([np.asarray(policy, np.float32) for policy in self.policies]))
            tables = cast("tuple[Any, ...]", stacks)
            return TableSampler(tables, bank, pi, terminal, self.gamma, self.horizons)


def exact_ghms(
    mdp: TabularMDP, policies: Sequence[Any], gamma: Scalar, alpha: Scalar | Sequence[Scalar]
) -> GHMs:
    """μ_γ, and μ_β with β = γ(1−α) for every α given, of each policy."""
    if not len(policies):
        raise ValueError("exact_ghms needs at least one policy, got none")
    named = [p if isinstance(p, TabularPolicy) else TabularPolicy(p, f"π{i}") for i, p in enumerate(policies)]
    gamma, alphas = check_gamma(gamma), tuple(dict.fromkeys(reals(alpha, "α").ravel().tolist()))
    horizons = gamma, *(beta_of(gamma, alpha) for alpha in alphas)
    models = tuple(tuple(ExactGHM(mdp, policy, horizon) for policy in named) for horizon in horizons)
    return GHMs(tuple(named), gamma, alphas, models)


def joined_ghms(parts: Sequence[GHMs]) -> GHMs:
    """One set from the models of policies that were learned apart, in the given order; γ and the α's agree."""
    if not parts:
        raise ValueError("there is nothing to join: give at least one set of models")
    kinds = {(part.gamma, part.alphas) for part in parts}
    if len(kinds) > 1:
        raise ValueError(
            f"models that are joined have one γ and the same α's, got (γ, α's) in {sorted(kinds)}"
        )
    policies = tuple(policy for part in parts for policy in part.policies)
    models = tuple(map(_joined, zip(*(part.models for part in parts), strict=True)))
    return GHMs(policies, parts[0].gamma, parts[0].alphas, models, parts[0].one_step)


def upgraded_from_1(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a saved "ghms/1", whose models were a dictionary from horizons to models."""
    gamma, models = check_gamma(fields["gamma"]), fields["models"]
    horizons = [gamma, *(beta_of(gamma, alpha) for alpha in fields["alphas"])]
    if models.keys() != set(horizons):
        raise ValueError(f"models of horizons {sorted(models)}, expected {sorted(set(horizons))}")
    return {**fields, "models": tuple(models[horizon] for horizon in horizons)}


def _of_policy(models: Any, policy: int) -> Any:
    if isinstance(models, Conditioned):
        return models.at(models.condition[policy])
    if isinstance(models, eqx.Module):
        return jax.tree.map(lambda leaf: leaf[policy], models)
    return models[policy]


def _stacked(models: Models, policies: Sequence[Any]) -> eqx.Module:
    if isinstance(models, TabularGHM):
        mus = np.asarray(models.mu, float)
        return stack([tabular_sampler(*pair) for pair in zip(mus, policies, strict=True)])
    if isinstance(models, Conditioned):
        return models.stacked()
    if isinstance(models, eqx.Module):
        return models
    return stack([model.sampler if isinstance(model, ExactGHM) else model for model in models])


def _joined(groups: Sequence[Models]) -> Models:
    if isinstance(groups[0], eqx.Module):
        apart = [group.stacked() if isinstance(group, Conditioned) else group for group in groups]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *apart)
    return tuple(model for group in groups for model in cast("Sequence[ExactGHM]", group))


def _world(model: Any) -> tuple[Any, ...]:
    """The size of a model's states and what its actions are; nothing for models that do not say it."""
    if isinstance(model, ExactGHM):
        return model.mdp.num_states, model.mdp.num_actions
    if isinstance(model, AbstractGHM):
        return model.frame.state_size, model.frame.action_form
    if not isinstance(model, GHM):
        raise ValueError(f"expected a model, got a {type(model).__name__}")
    return ()


def _check_acts(policy: Any, world: tuple[Any, ...]) -> None:
    if isinstance(policy, Foreign):
        return
    if not isinstance(policy, Actor):
        raise ValueError(f"expected a policy, got a {type(policy).__name__}")
    if isinstance(policy, TabularPolicy):
        check_shape(f"policy {short(policy.name)}", policy.pi, world or policy.pi.shape)
    elif world:
        check_policy(policy, *world)
