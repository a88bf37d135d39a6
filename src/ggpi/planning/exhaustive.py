"""Every plan gets the same number of samples."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi.planning.chains import Problem
from ggpi.planning.plans import Plans
from ggpi.planning.search import AbstractSetPlanner, Plan, Round, Search, distinct, moments
from ggpi.switching import GSPs
from ggpi.types import Key, whole


@dataclass(frozen=True, eq=False)
class Exhaustive(AbstractSetPlanner):
    """`num_samples` chains of every plan.

    Args:
        gsps: the set; an agent gives its own.
        num_samples: chains of every plan.
        value_samples: fresh chains of the chosen plan, for the reported value.
    """

    gsps: GSPs | Plans | None = None
    num_samples: int = 100
    value_samples: int = 100

    def check(self, problem: Problem) -> None:
        whole(self.num_samples, "num_samples")
        whole(self.value_samples, "value_samples")

    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        return 1

    def num_alike(self, plans: Plans) -> int:
        return 0

    def begin(self, problem: Problem, warm: Plan | None) -> Search:
        return everything(problem.plans, 1)

    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        found = moments(problem, search.rows, problem.plans.depth, self.num_samples, key=key)
        mean = found.total / self.num_samples
        draws = search.draws + self.num_samples * distinct(problem.plans, search.rows, problem.plans.depth)
        best = best_first(mean, jax.random.fold_in(key, 1))[0]
        return Search(
            search.alive,
            search.rows,
            best,
            mean,
            search.count + self.num_samples,
            draws,
            search.gap,
            search.survived(i, 1),
        )


def everything(plans: Plans, num_rounds: int) -> Search:
    """A search before its first sample, with all plans as candidates."""
    n, zero = len(plans), jnp.zeros((), jnp.int32)
    return Search(
        alive=jnp.ones(n, bool),
        rows=jnp.arange(n, dtype=jnp.int32),
        best=zero,
        mean=jnp.zeros(n),
        count=jnp.zeros(n, jnp.int32),
        draws=zero,
        gap=jnp.array(jnp.inf, jnp.float32),
        survivors=jnp.zeros(num_rounds, jnp.int32),
    )


def best_first(mean: Float[Array, "n"], key: Key) -> Int[Array, "n"]:
    """Places from the best to the worst; ties are broken at random."""
    return jnp.lexsort((jax.random.uniform(key, mean.shape), -mean)).astype(jnp.int32)
