"""Sequential halving (Karnin et al. 2013): a budget of draws in ⌈log₂ n⌉ equal rounds, the better half survives each.

Round r samples its n_r survivors ⌊T / (⌈log₂ n⌉ d_r)⌋ times, where d_r is the most distinct prefixes that n_r plans may
have: draws are counted over prefixes. Where that is 0 they are sampled once, and the rounds after that share what is
left; so T ≥ Σ d_r is enough, about three samples of every prefix, however many rounds there are. Means are over the
samples of all rounds. The bound of the paper on the error, 3 log₂n · exp(−T / (8 H₂ log₂ n)), is for rounds that
discard earlier samples; keeping them is a heuristic that helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from ggpi.planning.chains import Problem
from ggpi.planning.exhaustive import best_first, everything
from ggpi.planning.plans import Plans
from ggpi.planning.search import AbstractSetPlanner, Plan, Round, Search, distinct, moments
from ggpi.switching import GSPs
from ggpi.types import Key, real, whole

WARM = 4
"""A warm start without memory takes one of so many plans over from the last decision."""


@dataclass(frozen=True, eq=False)
class SequentialHalving(AbstractSetPlanner):
    """Spends a budget of draws on fewer and fewer plans.

    Args:
        budget: draws of a decision, those of the reported value included.
        gsps: the set; an agent gives its own.
        value_samples: fresh chains of the chosen plan, for the reported value.
        factor: one of so many plans survives each round. Fewer rounds give the first one more samples, which helps
            where rewards are rare, and compile faster.
        memory: what a sample of the last decision counts in a warm start, from 0 to less than 1. Right where values
            change little from one decision to the next. With 0 a warm start samples a quarter of the plans, those that
            survived longest, and counts no earlier samples.
    """

    budget: int
    gsps: GSPs | Plans | None = None
    value_samples: int = 32
    factor: int = 2
    memory: float = 0.0

    def check(self, problem: Problem) -> None:
        budget, plans = whole(self.budget, "budget"), problem.plans
        whole(self.value_samples, "value_samples")
        if whole(self.factor, "factor") < 2:
            raise ValueError(f"factor is at least 2, got {self.factor}")
        if not 0 <= real(self.memory, "memory") < 1:
            raise ValueError(f"memory lies in [0, 1), got {self.memory}")
        if (least := self.least(plans)) > budget:
            nodes = self.nodes(plans, False)
            raise ValueError(
                f"halving {len(plans):,} plans with {nodes[0]:,} distinct prefixes takes {len(nodes)} rounds of at "
                f"least one sample each: a budget of at least {least:,} draws, got {budget:,}. Give more, or a "
                "smaller set"
            )

    def survivors(self, plans: Plans, is_warm: bool) -> list[int]:
        """How many plans each round samples."""
        n, counts = -(-len(plans) // WARM) if is_warm and not self.memory else len(plans), []
        while n > 1:
            counts.append(n)
            n = -(-n // self.factor)
        return counts or [1]

    def nodes(self, plans: Plans, is_warm: bool) -> list[int]:
        """The most distinct prefixes that the plans of each round may have."""
        return [sum(min(n, size) for size in plans.sizes) for n in self.survivors(plans, is_warm)]

    def least(self, plans: Plans) -> int:
        """The smallest budget: one sample of each round's survivors, and the reported value."""
        return sum(self.nodes(plans, False)) + self.value_samples * plans.depth

    def samples(self, plans: Plans, is_warm: bool) -> list[int]:
        """How many samples each of them gets: equal shares of what is left, but at least one."""
        nodes, left = self.nodes(plans, is_warm), self.budget - self.value_samples * plans.depth
        counts = []
        for r, once in enumerate(nodes):
            counts.append(max(left // (len(nodes) - r) // once, 1))
            left -= counts[-1] * once
        return counts

    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        return len(self.survivors(plans, is_warm))

    def num_alike(self, plans: Plans) -> int:
        return 0

    def begin(self, problem: Problem, warm: Plan | None) -> Search:
        plans = problem.plans
        search = everything(plans, self.num_rounds(plans, warm is not None))
        if warm is None:
            return search
        place = jnp.asarray(plans.place)
        if self.memory:
            count = (self.memory * warm.samples[place]).astype(jnp.int32)
            return eqx.tree_at(lambda s: (s.mean, s.count), search, (warm.mean[place], count))
        longest = jnp.lexsort((-warm.mean[place], -warm.samples[place]))
        rows = jnp.sort(longest[: self.survivors(plans, True)[0]]).astype(jnp.int32)
        alive = jnp.zeros_like(search.alive).at[rows].set(True)
        return eqx.tree_at(lambda s: (s.alive, s.rows, s.best), search, (alive, rows, rows[0]))

    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        plans, rows, n = problem.plans, search.rows, self.samples(problem.plans, is_warm)[int(i)]
        sample_key, tie_key = jax.random.split(key)
        found = moments(problem, rows, plans.depth, n, key=sample_key)
        before = search.count[rows]
        mean = (search.mean[rows] * before + found.total) / (before + n)
        order = best_first(mean, tie_key)
        kept = jnp.sort(rows[order[: -(-len(rows) // self.factor)]])
        return Search(
            jnp.zeros_like(search.alive).at[kept].set(True),
            kept,
            rows[order[0]],
            search.mean.at[rows].set(mean),
            search.count.at[rows].add(n),
            search.draws + n * distinct(plans, rows, plans.depth),
            search.gap,
            search.survived(i, len(kept)),
        )
