"""Random shooting: draw many plans, sample them all, keep the best."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ggpi.planning.chains import Problem
from ggpi.planning.choices import Choices, Sequences
from ggpi.planning.plans import Plans
from ggpi.planning.search import Round, Search
from ggpi.planning.shooting import AbstractShooter, kept_of, scores
from ggpi.types import Key, whole


@dataclass(frozen=True, eq=False)
class RandomShooting(AbstractShooter):
    """Plans that are drawn uniformly; the best of them are sampled once more, with their suffixes.

    Args:
        num_plans: how many plans are drawn. A warm start replaces `num_kept` of them by those of the last decision.
        num_kept: how many are kept for the choice.

    The other arguments are those of `AbstractShooter`.
    """

    num_plans: int = 256
    _: KW_ONLY
    num_kept: int = 16

    @property
    def most_kept(self) -> int:
        return self.num_kept

    def check_own(self, choices: Choices) -> None:
        if whole(self.num_plans, "num_plans") < whole(self.num_kept, "num_kept"):
            raise ValueError(
                f"{self.num_kept} plans are to be kept: num_plans is at least that, got {self.num_plans}"
            )

    def proposal(self, choices: Choices) -> None:
        return None

    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        return 1

    def num_alike(self, plans: Plans) -> int:
        return 0

    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        pool_key, draw_key, sample_key = jax.random.split(key, 3)
        old = self.num_kept if is_warm else 0
        plans = self.pooled(problem, key=pool_key).draw(self.num_plans - old, key=draw_key)
        if is_warm:
            plans = kept_of(search).plans.joined(plans)
        found = scores(problem, plans, self.num_samples, key=sample_key)
        score = jnp.where(_is_repeated(plans), -jnp.inf, found.mean)
        rows = jnp.argsort(-score)[: self.num_kept]
        return self.keep(search, i, plans, found, rows)


def _is_repeated(plans: Sequences) -> Bool[Array, "N"]:
    """Whether a plan of policies with indices was drawn before; codes are taken as distinct."""
    if plans.policies.ndim == 3:
        return jnp.zeros(len(plans), bool)
    columns = [*plans.policies.T, *plans.alphas.T]
    order = jnp.lexsort(columns)
    equal = jnp.stack([column[order][1:] == column[order][:-1] for column in columns]).all(axis=0)
    return jnp.zeros(len(plans), bool).at[order[1:]].set(equal)
