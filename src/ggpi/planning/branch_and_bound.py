"""Branch and bound with confidence: prefixes that cannot hold the best plan are dropped, and the answer is certified.

Round i samples the surviving prefixes of some length j, all with common random numbers, and compares each with a
reference, the leader of the round before: D = G_j − G_j of the reference, which lies in [−w, w] with
w = (hi − lo) · (weight after the last common jump). E D lies in the interval of `confidence`, at the level

    L = ln(EVENTS · rounds · prefixes / δ),

in all rounds and for all prefixes at once, with probability 1 − δ. Every completion of a prefix lies in
E[G_j] + rest_j · [lo, hi], so that a prefix is dropped when its upper bound is below the best lower bound. The first
rounds look at short prefixes, the later ones at whole plans with twice as many draws each. Each round takes fresh
samples, so that their number and the reference do not depend on them; the leader is chosen by those of all rounds. It
stops when one plan is left, or when none can be better by more than ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi.evaluation.rewards import PolicyReward
from ggpi.ghm.samplers import Table
from ggpi.planning.chains import Problem
from ggpi.planning.confidence import EVENTS, interval
from ggpi.planning.exhaustive import everything
from ggpi.planning.plans import Plans
from ggpi.planning.search import AbstractSetPlanner, Moments, Plan, Round, Search, distinct, moments
from ggpi.rewards import Each, Target
from ggpi.switching import GSPs
from ggpi.types import Key, real, whole

LAST_ROUNDS = 7
SHARE_OF_PREFIXES = 0.25
"""Of the budget, for prefixes that are shorter than a plan."""


@dataclass(frozen=True, eq=False)
class BranchAndBound(AbstractSetPlanner):
    """Stops as soon as the best plan is known.

    Args:
        budget: draws of a decision at most, those of the reported value included.
        delta: the probability that the certified gap is wrong.
        epsilon: the gap that is small enough, as a share of (hi − lo)/(1−γ), the range of all values.
        bounds: lo and hi of the reward; known for arrays and targets.
        gsps: the set; an agent gives its own.
        batch: samples that are drawn at a time.
        value_samples: fresh chains of the chosen plan, for the reported value.
    """

    budget: int
    delta: float = 0.05
    epsilon: float = 0.05
    bounds: tuple[float, float] | None = None
    gsps: GSPs | Plans | None = None
    batch: int = 16
    value_samples: int = 32

    def check(self, problem: Problem) -> None:
        budget, plans = whole(self.budget, "budget"), problem.plans
        whole(self.value_samples, "value_samples")
        for name in ("delta", "epsilon"):
            if not 0 < real(getattr(self, name), name) < 1:
                raise ValueError(f"{name} lies in (0, 1), got {getattr(self, name)}")
        self._bounds(problem)
        once = whole(self.batch, "batch") * sum(sum(plans.sizes[: m + 1]) for m in range(plans.depth))
        if (least := once + self.value_samples * plans.depth) > budget:
            raise ValueError(
                f"{len(plans):,} plans with batches of {self.batch} take a budget of at least {least:,} draws, got "
                f"{budget:,}. Give more, smaller batches, or a smaller set"
            )

    def _bounds(self, problem: Problem) -> tuple[Array, Array]:
        """lo and hi; with terminal states, which are left without reward, 0 is among the rewards."""
        values = problem.reward.values
        values = values.values if isinstance(values, Each) else values
        if self.bounds is not None:
            lo, hi = jnp.asarray(self.bounds[0]), jnp.asarray(self.bounds[1])
        elif isinstance(values, Table | PolicyReward):
            table = values.values if isinstance(values, Table) else values.r
            lo, hi = table.min(), table.max()
        elif isinstance(values, Target):
            lo, hi = jnp.array(0.0), jnp.array(1.0)
        else:
            raise ValueError(
                "BranchAndBound needs the least and the largest reward: give bounds=(lo, hi), or use "
                "SequentialHalving, which needs none"
            )
        if problem.reward.terminal is None:
            return lo, hi
        return jnp.minimum(lo, 0.0), jnp.maximum(hi, 0.0)

    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        return plans.depth - 1 + LAST_ROUNDS

    def num_alike(self, plans: Plans) -> int:
        return LAST_ROUNDS

    def _round(self, plans: Plans, i: Round) -> tuple[int, Float[Array, ""] | float]:
        """The length of the prefixes of a round, and its share of the budget."""
        shorter = plans.depth - 1
        if isinstance(i, int) and i < shorter:
            return i + 1, SHARE_OF_PREFIXES / shorter
        left = 1.0 - SHARE_OF_PREFIXES if shorter else 1.0
        return plans.depth, left * 2.0 ** (i - shorter) / (2.0**LAST_ROUNDS - 1)

    def begin(self, problem: Problem, warm: Plan | None) -> Search:
        search = everything(problem.plans, self.num_rounds(problem.plans, False))
        if warm is None:
            return search
        best = jnp.argmax(jnp.asarray(problem.plans.place) == warm.best).astype(jnp.int32)
        return eqx.tree_at(lambda s: s.best, search, best)

    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        plans = problem.plans
        level, share = self._round(plans, i)
        rows, count = _leads(plans, search, level)
        cost = self.batch * distinct(plans, rows, level)
        allowed = self.budget - self.value_samples * plans.depth
        is_open = (search.alive.sum() > 1) & (search.gap > self._enough(problem))
        later = self.batch * sum(sum(plans.sizes[: m + 1]) for m in range(level, plans.depth))
        most = (allowed - later - search.draws) // cost
        wanted = jnp.maximum(jnp.asarray(share * allowed).astype(jnp.int32) // cost, 1)
        windows = jnp.where(is_open, jnp.clip(wanted, 0, jnp.maximum(most, 0)), 0)
        found = moments(
            problem, rows, level, self.batch, windows=windows, count=count, reference=search.best, key=key
        )
        judged = self._judge(problem, rows, count, search.best, level, windows * self.batch, found)
        after = _after(plans, search, rows, level, windows * self.batch, judged, found)
        draws = (search.draws + cost * windows).astype(jnp.int32)
        survivors = search.survived(i, after.alive.sum())
        return eqx.tree_at(lambda s: (s.draws, s.survivors), after, (draws, survivors))

    def _enough(self, problem: Problem) -> Array:
        lo, hi = self._bounds(problem)
        return self.epsilon * (hi - lo) / (1 - problem.sampler.gamma)

    def _judge(
        self,
        problem: Problem,
        rows: Int[Array, "n"],
        count: Array,
        best: Array,
        level: int,
        n: Array,
        found: Moments,
    ) -> _Judged:
        """Bounds on the best and the worst completion of each prefix, relative to the reference's G."""
        plans, w, (lo, hi) = problem.plans, problem.weights(rows), self._bounds(problem)
        prefix = jnp.asarray(plans.prefix)
        differs = prefix[rows, :level] != prefix[best, :level]
        widest = (hi - lo) * ((w.start + w.end)[:, :level] * differs).sum(axis=1)
        samples = jnp.maximum(n, 1)
        failures = EVENTS * self.num_rounds(plans, False) * plans.sizes[level - 1]
        sums = found.total, found.positive, found.square
        inside = interval(*sums, samples, widest, jnp.log(failures / self.delta))
        is_used, rest = jnp.arange(len(rows)) < count, w.rest[:, level - 1]
        mean = found.total / samples
        upper = jnp.clip(inside.upper, -widest, widest) + rest * hi
        lower = jnp.clip(inside.lower, -widest, widest) + rest * lo
        return _Judged(
            jnp.where(is_used, mean, -jnp.inf),
            jnp.where(is_used, lower, -jnp.inf),
            jnp.where(is_used, upper, -jnp.inf),
        )


class _Judged(NamedTuple):
    mean: Float[Array, "n"]
    lower: Float[Array, "n"]
    upper: Float[Array, "n"]


def _leads(plans: Plans, search: Search, level: int) -> tuple[Int[Array, "n"], Array]:
    """The first surviving plan of every surviving prefix, and their number; the last one is repeated."""
    n = len(plans)
    alive = jnp.nonzero(search.alive, size=n, fill_value=-1)[0].astype(jnp.int32)
    alive = jnp.where(alive < 0, alive.max(), alive)
    number = jnp.asarray(plans.prefix)[alive, level - 1]
    is_new = jnp.concatenate([jnp.ones(1, bool), number[1:] != number[:-1]])
    rows = alive[jnp.nonzero(is_new, size=plans.sizes[level - 1], fill_value=n - 1)[0]]
    return rows, is_new.sum()


def _after(
    plans: Plans,
    search: Search,
    rows: Int[Array, "n"],
    level: int,
    n: Array,
    judged: _Judged,
    found: Moments,
) -> Search:
    """Drops what is certainly not best; without samples nothing changes."""
    sampled, is_used = n > 0, jnp.isfinite(judged.mean)
    mean, count, score = search.mean, search.count, judged.mean
    if level == plans.depth:
        before = count[rows]
        own = judged.mean * n + found.of_reference
        score = (mean[rows] * before + own) / jnp.maximum(before + n, 1)
        written = jnp.where(sampled & is_used, rows, len(plans))  # out of range for the repeated last row
        mean = mean.at[written].set(score, mode="drop")
        count = count.at[written].add(n.astype(jnp.int32), mode="drop")
    is_possible = jnp.maximum(judged.upper, judged.lower) >= judged.lower.max()
    leader = jnp.where(is_used & is_possible, score, -jnp.inf).argmax()
    others = jnp.arange(len(rows)) != leader
    dropped = sampled & is_used & ~is_possible & others
    number = jnp.asarray(plans.prefix)[:, level - 1]
    is_dropped = jnp.zeros(plans.sizes[level - 1], bool).at[number[rows]].max(dropped)
    rivals = jnp.where(others & ~dropped, judged.upper, -jnp.inf).max()
    if level < plans.depth:
        rivals = jnp.maximum(rivals, judged.upper[leader])
    gap = jnp.maximum(rivals - judged.lower[leader], 0.0)
    return Search(
        search.alive & ~is_dropped[number],
        search.rows,
        jnp.where(sampled, rows[leader], search.best).astype(jnp.int32),
        mean,
        count,
        search.draws,
        jnp.where(sampled, gap, search.gap),
        search.survivors,
    )
