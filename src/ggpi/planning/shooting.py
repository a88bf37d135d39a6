"""Shooting: draw plans instead of listing them, sample the drawn ones, keep the best.

Plans are made of policies, or of codes of a family, and of one α for each switch. A search keeps some plans from round
to round. At its end these, with all their suffixes, get fresh samples and the best of them is chosen: a suffix-closed
set. Theorem 4.2 is about one such set in all states, while a search draws its own in each. What carries over: let every
decision consider the plan ν that the last one chose, and its suffix ν′, which `warm=` does. With W_t the largest value
among the plans that decision t considers,

    V^ν(x) = E[r + γ((1−α) V^ν(x′) + α V^{ν′}(x′))] ≤ E[r + γ W_{t+1}(x′)],

so that acting gets at least W_t from every time on, up to errors of estimates. Without `warm=` there is no guarantee.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi.planning.chains import Problem
from ggpi.planning.choices import Choices, Sequences
from ggpi.planning.exhaustive import best_first
from ggpi.planning.search import AbstractPlanner, Kept, Plan, Round, Search, mean_and_error
from ggpi.planning.sequences import Move, choices_of, move_of, sequence_returns
from ggpi.types import ArrayLike, Key, Scalar, whole

Proposals = ArrayLike | Callable[..., Array]
"""Codes [C, z], or a function of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AbstractShooter(AbstractPlanner):
    """Searches plans that are drawn.

    Args:
        depth: segments of a plan.
        alphas: probabilities of a switch to choose from; by default those of the models.
        alpha_range: the least and the largest one, to choose any between them, where one network has all horizons.
        proposals: codes [C, z] of a family π(·|x, z) to choose policies from, such as those of states in the data, or a
            function (state, *, key) of them, such as `future_codes` makes; its codes are moved into the bounds of the
            models' own. Without it, policies are those of the models.
        num_samples: chains of a plan, in every round and at the end.
        first_actions: how many actions of each kept plan's head are scored by Q(x, a); None lets the head act.
        value_samples: fresh chains of the chosen plan, for the reported value.
    """

    depth: int = 2
    alphas: Scalar | tuple[Scalar, ...] | None = None
    alpha_range: tuple[Scalar, Scalar] | None = None
    proposals: Proposals | None = None
    num_samples: int = 32
    first_actions: int | None = None
    value_samples: int = 100

    @property
    @abstractmethod
    def most_kept(self) -> int:
        """Plans that a search keeps."""

    @abstractmethod
    def check_own(self, choices: Choices) -> None:
        """Raises for settings of this planner alone that do not fit."""

    @abstractmethod
    def proposal(self, choices: Choices) -> eqx.Module | None:
        """What plans are drawn from at first, where that changes from round to round."""

    def check(self, problem: Problem) -> None:
        for name in ("num_samples", "value_samples"):
            whole(getattr(self, name), name)
        if self.first_actions is not None:
            whole(self.first_actions, "first_actions")
        self.check_own(choices_of(problem))

    def begin(self, problem: Problem, warm: Plan | None) -> Search:
        choices, count = choices_of(problem), self.most_kept
        plans, last = choices.blank(count), None
        if warm is not None:
            plans, last = self._taken_over(warm, plans.policies.shape)
        rounds = self.num_rounds(problem.plans, warm is not None)
        zero = jnp.zeros((), jnp.int32)
        return Search(
            alive=jnp.ones(count, bool),
            rows=jnp.arange(count, dtype=jnp.int32),
            best=zero,
            mean=jnp.full(count, -jnp.inf),
            count=jnp.zeros(count, jnp.int32),
            draws=zero,
            gap=jnp.array(jnp.inf, jnp.float32),
            survivors=jnp.zeros(rounds, jnp.int32),
            kept=Kept(plans, last, self.proposal(choices)),
        )

    def _taken_over(self, warm: Plan, shape: tuple[int, ...]) -> tuple[Sequences, Sequences]:
        """The best plans of the last decision, the chosen one first."""
        if warm.plans is None:
            raise ValueError("warm is the last decision of a planner by shooting, got one of a listed set")
        if (found := warm.plans.policies.shape[1:]) != shape[1:]:
            raise ValueError(
                f"warm is the last decision with plans of the same kind, depth (and size of a code) {list(shape[1:])}, "
                f"got {list(found)}"
            )
        plans = Sequences(warm.plans.policies, warm.plans.alphas)
        score = of_distinct(plans, warm.mean.at[warm.best].set(jnp.inf))
        rows = jnp.resize(jnp.argsort(-score), (self.most_kept,))
        return plans.at(rows), plans.at(warm.best[None])

    def pooled(self, problem: Problem, *, key: Key) -> Choices:
        """What this round chooses from."""
        choices = choices_of(problem)
        if not callable(self.proposals):
            return choices
        codes = choices.known(self.proposals(problem.state, key=key))
        return dataclasses.replace(choices, codes=codes)

    def keep(
        self, search: Search, i: Round, plans: Sequences, found: Scores, rows: Int[Array, "n"]
    ) -> Search:
        """The search after a round, with some of its plans, the best first."""
        kept = dataclasses.replace(kept_of(search), plans=plans.at(rows))
        return dataclasses.replace(
            search,
            best=jnp.zeros((), jnp.int32),
            mean=found.mean[rows],
            count=jnp.full(len(rows), self.num_samples, jnp.int32),
            draws=search.draws + found.draws,
            survivors=search.survived(i, len(rows)),
            kept=kept,
        )

    def finish(self, problem: Problem, search: Search, *, key: Key) -> Plan:
        try_key, sample_key, tie_key, value_key, act_key = jax.random.split(key, 5)
        kept = kept_of(search)
        plans = kept.plans if kept.last is None else kept.plans.joined(kept.last)
        plans = plans.with_suffixes()
        if self.first_actions is not None:
            plans = tried(problem, plans, self.first_actions, key=try_key)
        found = scores(problem, plans, self.num_samples, key=sample_key)
        best = best_first(found.mean, tie_key)[0]
        fresh = sequence_returns(problem, plans.at(best[None]), self.value_samples, key=value_key)[0]
        value, stderr = mean_and_error(fresh)
        head = plans.policies[best, 0]
        action = head_of(problem, head).act(problem.state[None], key=act_key)[0]
        return Plan(
            value,
            stderr,
            best,
            head,
            action if plans.first is None else plans.first[best],
            search.draws + found.draws + self.value_samples * plans.depth,
            search.survivors,
            search.gap,
            found.mean,
            jnp.full(len(plans), self.num_samples, jnp.int32),
            plans,
        )


class Scores(NamedTuple):
    """The means of some plans, and how many jumps they took."""

    mean: Float[Array, "N"]
    draws: int


def scores(problem: Problem, plans: Sequences, num_samples: int, *, key: Key) -> Scores:
    """Sampled values of plans, with common random numbers."""
    mean = sequence_returns(problem, plans, num_samples, key=key).mean(axis=1)
    return Scores(mean, len(plans) * plans.depth * num_samples)


def tried(problem: Problem, plans: Sequences, count: int, *, key: Key) -> Sequences:
    """Each plan with `count` first actions of its head; equal heads have equal ones."""
    states = jnp.broadcast_to(problem.state, (count, *problem.state.shape))
    first = jax.vmap(lambda head: head_of(problem, head).act(states, key=key))(plans.policies[:, 0])
    repeated = plans.at(jnp.repeat(jnp.arange(len(plans)), count))
    return dataclasses.replace(repeated, first=first.reshape(-1, *first.shape[2:]))


def of_distinct(plans: Sequences, score: Float[Array, "N"]) -> Float[Array, "N"]:
    """The best score of each plan at its first row, −∞ at rows that repeat it for other first actions."""
    same = [
        (leaf[1:] == leaf[:-1]).reshape(len(leaf) - 1, -1).all(axis=1)
        for leaf in (plans.policies, plans.alphas)
    ]
    is_new = jnp.append(True, ~(same[0] & same[1]))
    group = jnp.cumsum(is_new) - 1
    best = jax.ops.segment_max(score, group, num_segments=len(score))
    return jnp.where(is_new, best[group], -jnp.inf)


def head_of(problem: Problem, policy: Int[Array, ""] | Float[Array, "z"]) -> Move:
    """A policy, its index or its code, as it acts."""
    return move_of(problem.sampler, choices_of(problem), policy, jnp.asarray(problem.sampler.gamma))


def kept_of(search: Search) -> Kept:
    """What a search by shooting has kept."""
    assert search.kept is not None
    return search.kept
