"""The models that a set of policies needs: μ_γ of each, and μ_β for each α."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ggpi._jax.shapes import Lead, check_policy, check_shape
from ggpi.mdp.tabular import check_gamma
from ggpi.policies.tabular import TabularPolicy
from ggpi.storage.objects import Foreign
from ggpi.storage.reading import short
from ggpi.switching import GSPs, beta_of


@dataclass(frozen=True, eq=False)
class GHMs:
    """`models[horizon]` are the μ^{πᵢ} at that horizon; horizons are γ and β = γ(1−α) for each α.

    Exact models are a sequence; learned ones are one module with a leading axis over policies. `one_step` is a
    learned P(·|x, a), the model at horizon 0, which is the same for all policies.
    """

    policies: Sequence[Any]
    gamma: float
    alphas: tuple[float, ...]
    models: Mapping[float, Any]
    one_step: Any = None

    def segment(self, policy: int, alpha: float | None) -> Any:
        """The model of one segment: μ_β^π before a switch with probability α, μ_γ^π for the last (α = None)."""
        models = self.models[self.horizon(alpha)]
        return (
            jax.tree.map(lambda leaf: leaf[policy], models)
            if isinstance(models, eqx.Module)
            else models[policy]
        )

    def horizon(self, alpha: float | None) -> float:
        """γ for the last segment (α = None), else β = γ(1−α) of one of these models' α's."""
        if alpha is None:
            return self.gamma
        if alpha not in self.alphas:
            raise ValueError(f"there are models for α in {list(self.alphas)}, none for α = {alpha}")
        return beta_of(self.gamma, alpha)

    def check(self, gsps: GSPs) -> None:
        """Refuses GSPs over policies or α's that these models do not have."""
        if gsps.num_policies > len(self.policies):
            raise IndexError(
                f"the switching policies name base policy {gsps.num_policies - 1}, "
                f"but there are {len(self.policies)} (0 to {len(self.policies) - 1})"
            )
        for alpha in {alpha for gsp in gsps for alpha in gsp.alphas}:
            self.horizon(alpha)

    def lead_of(self, field: str) -> Lead:
        """Learned models are stacked over policies."""
        return (len(self.policies),) if field == "models" and self._is_stacked else ()

    @property
    def _is_stacked(self) -> bool:
        return all(isinstance(models, eqx.Module) for models in self.models.values())

    def check_parts(self, lead: Lead) -> None:
        """Horizons are γ and the β's, there is a model for each policy, and policies act where models live."""
        check_gamma(self.gamma)
        expected = {self.gamma, *(beta_of(self.gamma, alpha) for alpha in self.alphas)}
        if not self.policies or self.models.keys() != expected:
            raise ValueError(f"models of horizons {sorted(self.models)}, expected {sorted(expected)}")
        worlds = set()
        for horizon, models in self.models.items():
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
    def mdp(self) -> Any:
        """The finite MDP of exact models; learned ones have none."""
        model = self.segment(0, None)
        if not hasattr(model, "mdp"):
            raise ValueError(
                f"exact evaluation needs the models of ggpi.exact_ghms, got learned ones: {type(model).__name__}. "
                "ggpi.GGPIAgent(ghms, reward, …).plan(state, key=…) estimates values from samples of any models"
            )
        return model.mdp

    @property
    def names(self) -> list[str]:
        return [policy.name for policy in self.policies]


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
    models = {horizon: _in_a_row([part.models[horizon] for part in parts]) for horizon in parts[0].models}
    return GHMs(policies, parts[0].gamma, parts[0].alphas, models, parts[0].one_step)


def _world(model: Any) -> tuple[Any, ...]:
    """The size of a model's states and what its actions are; nothing for models that do not say it."""
    if not (hasattr(model, "sample") or hasattr(model, "sampler")):
        raise ValueError(f"expected a model, got a {type(model).__name__}")
    if hasattr(model, "mdp"):
        return model.mdp.num_states, model.mdp.num_actions
    return (model.frame.state_size, model.frame.action_form) if hasattr(model, "frame") else ()


def _check_acts(policy: Any, world: tuple[Any, ...]) -> None:
    if isinstance(policy, Foreign):
        return
    if not hasattr(policy, "sample"):
        raise ValueError(f"expected a policy, got a {type(policy).__name__}")
    if isinstance(policy, TabularPolicy):
        check_shape(f"policy {short(policy.name)}", policy.pi, world or policy.pi.shape)
    elif world:
        check_policy(policy, *world)


def _in_a_row(groups: Sequence[Any]) -> Any:
    if isinstance(groups[0], eqx.Module):
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *groups)
    return [model for group in groups for model in group]
