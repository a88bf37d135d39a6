"""What all planners share: the state of a search, sums over samples, counted draws, and the final report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ggpi.planning.chains import Problem, of_policy, returns
from ggpi.planning.choices import Sequences
from ggpi.planning.plans import Plans
from ggpi.switching import GSPs
from ggpi.types import Key, Numbers

Round = int | Int[Array, ""]


class Plan(NamedTuple):
    """What a planner chose. Rows are places in its set, or in `plans`."""

    value: Float[Array, ""]
    """V of the chosen plan, from fresh samples: the maximum of the search's own means would be biased upwards."""
    stderr: Float[Array, ""]
    best: Int[Array, ""]
    """The place of the chosen plan in the set."""
    head: Int[Array, ""] | Float[Array, "z"]
    """Its first policy; its code, where plans are made of codes."""
    action: Numbers
    """An action of the head."""
    draws: Int[Array, ""]
    """Jumps that were drawn, the value's included; a jump at a shared prefix counts once."""
    survivors: Int[Array, "rounds"]
    """Plans that were left after each round."""
    gap: Float[Array, ""]
    """With probability 1 − δ no plan is better than the chosen one by more than this; ∞ without a certificate."""
    mean: Float[Array, "N"]
    """The search's own estimate of every plan, over all rounds that sampled it."""
    samples: Int[Array, "N"]
    """How many samples it is the mean of."""
    plans: Sequences | None = None
    """The plans themselves, where they are not listed: of a search by shooting."""


class Search(eqx.Module):
    """A search between two rounds."""

    alive: Bool[Array, "N"]
    rows: Int[Array, "n"]
    """The plans that the next round samples, ascending; repeated at the end where there are fewer."""
    best: Int[Array, ""]
    mean: Float[Array, "N"]
    count: Int[Array, "N"]
    draws: Int[Array, ""]
    gap: Float[Array, ""]
    survivors: Int[Array, "rounds"]
    kept: Kept | None = None
    """What a search by shooting keeps: the candidates above are these."""

    def survived(self, i: Round, count: Int[Array, ""] | int) -> Int[Array, "rounds"]:
        """The survivors of all rounds, with those of round i."""
        return self.survivors.at[i].set(jnp.asarray(count, jnp.int32))


class AbstractPlanner(ABC):
    """Chooses a plan in rounds: `begin`, `advance` for each round, `finish`. Its settings are static."""

    value_samples: int

    @abstractmethod
    def check(self, problem: Problem) -> None:
        """Raises for settings that do not fit to the problem."""

    @abstractmethod
    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        """How many rounds a search takes."""

    @abstractmethod
    def num_alike(self, plans: Plans) -> int:
        """How many of them, at the end, are the same program: these take i as an array."""

    @abstractmethod
    def begin(self, problem: Problem, warm: Plan | None) -> Search:
        """A search before its first round."""

    @abstractmethod
    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        """The search after round i."""

    @abstractmethod
    def finish(self, problem: Problem, search: Search, *, key: Key) -> Plan:
        """The report on the best plan."""


class AbstractSetPlanner(AbstractPlanner):
    """Chooses a plan of a set that is listed."""

    gsps: GSPs | Plans | None

    def finish(self, problem: Problem, search: Search, *, key: Key) -> Plan:
        plans, samples = problem.plans, self.value_samples
        value_key, act_key = jax.random.split(key)
        fresh = returns(problem, search.best[None], plans.depth, samples, key=value_key)[0]
        value, stderr = mean_and_error(fresh)
        head = jnp.asarray(plans.policies)[search.best, 0]
        acting = of_policy(problem.sampler, head, plans.num_policies)
        action = acting.act(problem.state[None], key=act_key)[0]
        place = jnp.asarray(plans.place)
        mean, count = (jnp.zeros_like(part).at[place].set(part) for part in (search.mean, search.count))
        draws = search.draws + samples * plans.depth
        return Plan(
            value,
            stderr,
            place[search.best],
            head,
            action,
            draws,
            search.survivors,
            search.gap,
            mean,
            count,
        )


def mean_and_error(samples: Float[Array, "n"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean of some samples, and its standard error."""
    n = len(samples)
    return samples.mean(), jnp.sqrt(samples.var() / (n - 1)) if n > 1 else jnp.array(jnp.inf)


class Kept(eqx.Module):
    """What a search by shooting takes from one round to the next."""

    plans: Sequences
    last: Sequences | None
    """The plan that the last decision chose, in a warm start."""
    proposal: eqx.Module | None = None


class Moments(NamedTuple):
    """Sums over samples of D = G − G of the reference [n], and the sum of the latter's G."""

    total: Float[Array, "n"]
    positive: Float[Array, "n"]
    """Of max(D, 0)."""
    square: Float[Array, "n"]
    of_reference: Float[Array, ""]


def moments(
    problem: Problem,
    rows: Int[Array, "n"],
    level: int,
    batch: int,
    *,
    windows: Any = 1,
    count: Any = None,
    reference: Int[Array, ""] | None = None,
    key: Key,
) -> Moments:
    """Sums over `windows` · `batch` samples of the first `count` rows, as many at a time as memory allows."""
    n, width = len(rows), min(len(rows), problem.width(batch))
    if reference is None and width == n and isinstance(windows, int) and windows == 1:
        return _summed(returns(problem, rows, level, batch, key=key))
    padded = jnp.concatenate([rows, jnp.full(-n % width, rows[-1])])
    parts = -(-jnp.asarray(n if count is None else count) // width)

    def window(w: Array, sums: Moments) -> Moments:
        own = jax.random.fold_in(key, w)
        base = jnp.zeros(batch)
        if reference is not None:
            base = returns(problem, reference[None], level, batch, key=own)[0]

        def part(i: Array, sums: Moments) -> Moments:
            def added(old: Array, new: Array) -> Array:
                mine = jax.lax.dynamic_slice_in_dim(old, i * width, width) + new
                return jax.lax.dynamic_update_slice_in_dim(old, mine, i * width, 0)

            some = jax.lax.dynamic_slice_in_dim(padded, i * width, width)
            new = _summed(returns(problem, some, level, batch, key=own) - base)
            return Moments(
                added(sums.total, new.total),
                added(sums.positive, new.positive),
                added(sums.square, new.square),
                sums.of_reference,
            )

        sums = jax.lax.fori_loop(0, parts, part, sums)
        return sums._replace(of_reference=sums.of_reference + base.sum())

    found = jax.lax.fori_loop(0, windows, window, _summed(jnp.zeros((len(padded), 1))))
    return Moments(found.total[:n], found.positive[:n], found.square[:n], found.of_reference)


def _summed(d: Float[Array, "n batch"]) -> Moments:
    return Moments(d.sum(axis=1), jnp.maximum(d, 0.0).sum(axis=1), (d**2).sum(axis=1), jnp.zeros(()))


def distinct(plans: Plans, rows: Int[Array, "n"], level: int) -> Int[Array, ""]:
    """Distinct prefixes of up to `level` segments among some plans: what one sample of all of them draws."""
    number = jnp.asarray(plans.prefix)[rows, :level]
    return level + (number[1:] != number[:-1]).sum()
