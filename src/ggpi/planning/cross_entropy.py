"""The cross-entropy method (Rubinstein 1999): draw plans, fit their distribution to the best of them, and so on.

Positions of a plan are independent. Policies with indices and listed α's have probabilities, moved to their shares
among the elites; codes and log α within a range have Gaussians, moved to the elites' means and standard deviations.
The elites of a round are sampled again with the plans of the next.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi.planning.chains import Problem
from ggpi.planning.choices import Choices, Sequences
from ggpi.planning.plans import Plans
from ggpi.planning.search import Kept, Round, Search
from ggpi.planning.shooting import AbstractShooter, kept_of, scores
from ggpi.types import Key, real, whole

NARROWEST = 0.02
"""The least standard deviation of a Gaussian, as a share of its range."""


class Proposal(eqx.Module):
    """A distribution of plans."""

    policies: tuple[Array, ...]
    """Probabilities [M, K]; or means and standard deviations [M, z] of codes."""
    alphas: tuple[Array, ...]
    """Probabilities [M − 1, A]; or means and standard deviations [M − 1] of log α."""

    def draw(self, choices: Choices, count: int, *, key: Key) -> Sequences:
        """Plans of this distribution, within the range of the choices."""
        policy_key, alpha_key = jax.random.split(key)
        policies = _drawn(self.policies, count, policy_key)
        alphas = _drawn(self.alphas, count, alpha_key)
        policies = choices.known(policies)
        if choices.alpha_range is not None:
            alphas = jnp.clip(jnp.exp(alphas), *choices.alpha_range)
        else:
            alphas = jnp.asarray(choices.alphas or (0.0,), jnp.float32)[alphas]
        return Sequences(policies, alphas)


def _drawn(parameters: tuple[Array, ...], count: int, key: Key) -> Array:
    shape = (count, *parameters[0].shape)
    if len(parameters) == 1:
        return jax.random.categorical(key, jnp.log(parameters[0]), shape=shape[:-1])
    mean, deviation = parameters
    return mean + deviation * jax.random.normal(key, shape)


def widest(choices: Choices) -> Proposal:
    """As wide as the choices are."""
    switches, count = choices.depth - 1, max(len(choices.alphas), 1)
    policies = (jnp.full((choices.depth, choices.num_policies), 1 / choices.num_policies),)
    if choices.bounds is not None:
        policies = _over(*choices.bounds, (choices.depth, *choices.bounds[0].shape))
    if choices.alpha_range is None:
        return Proposal(policies, (jnp.full((switches, count), 1 / count),))
    lo, hi = jnp.log(jnp.asarray(choices.alpha_range))
    return Proposal(policies, _over(lo, hi, (switches,)))


def _over(lo: Array, hi: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Mean and standard deviation of a uniform distribution."""
    return jnp.broadcast_to((lo + hi) / 2, shape), jnp.broadcast_to((hi - lo) / jnp.sqrt(12.0), shape)


def fitted(choices: Choices, plans: Sequences) -> Proposal:
    """The distribution of some plans."""
    if choices.bounds is None:
        policies = (jax.nn.one_hot(plans.policies, choices.num_policies).mean(axis=0),)
    else:
        policies = _gaussian(plans.policies, NARROWEST * (choices.bounds[1] - choices.bounds[0]))
    if choices.alpha_range is not None:
        lo, hi = jnp.log(jnp.asarray(choices.alpha_range))
        return Proposal(policies, _gaussian(jnp.log(plans.alphas), NARROWEST * (hi - lo)))
    listed = jnp.asarray(choices.alphas or (0.0,), jnp.float32)
    return Proposal(policies, ((plans.alphas[..., None] == listed).mean(axis=0, dtype=jnp.float32),))


def _gaussian(samples: Float[Array, "n ..."], narrowest: Array) -> tuple[Array, ...]:
    return samples.mean(axis=0), jnp.maximum(samples.std(axis=0), narrowest)


@dataclass(frozen=True, eq=False)
class CrossEntropy(AbstractShooter):
    """Rounds of plans, drawn from a distribution that is fitted to the best ones of the round before.

    Args:
        num_plans: plans of each round, elites of the round before included.
        rounds: how many rounds there are; the first draws plans as `RandomShooting` does.
        num_elites: how many plans the distribution is fitted to.
        smoothing: the share of the distribution that stays as it was, from 0 to less than 1.

    The other arguments are those of `AbstractShooter`.
    """

    num_plans: int = 64
    rounds: int = 4
    _: KW_ONLY
    num_elites: int = 8
    smoothing: float = 0.1

    @property
    def most_kept(self) -> int:
        return self.num_elites

    def check_own(self, choices: Choices) -> None:
        whole(self.rounds, "rounds")
        if whole(self.num_plans, "num_plans") <= whole(self.num_elites, "num_elites"):
            raise ValueError(
                f"{self.num_elites} elites: num_plans is at least {self.num_elites + 1}, got {self.num_plans}"
            )
        if not 0 <= real(self.smoothing, "smoothing") < 1:
            raise ValueError(f"smoothing lies in [0, 1), got {self.smoothing}")

    def proposal(self, choices: Choices) -> Proposal:
        return widest(choices)

    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        return self.rounds

    def num_alike(self, plans: Plans) -> int:
        return self.rounds

    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        pool_key, draw_key, fit_key, sample_key = jax.random.split(key, 4)
        choices, kept = self.pooled(problem, key=pool_key), kept_of(search)
        is_first = jnp.asarray(i) == 0
        drawn = choices.draw(self.num_plans, key=draw_key)
        later = _proposal(kept).draw(choices, self.num_plans - self.num_elites, key=fit_key)
        old = kept.plans if is_warm else _either(is_first, drawn.at(jnp.arange(self.num_elites)), kept.plans)
        new = _either(is_first, drawn.at(jnp.arange(self.num_elites, self.num_plans)), later)
        plans = old.joined(new)
        found = scores(problem, plans, self.num_samples, key=sample_key)
        after = self.keep(search, i, plans, found, jnp.argsort(-found.mean)[: self.num_elites])
        elites = kept_of(after).plans
        moved = jax.tree.map(
            lambda old, new: self.smoothing * old + (1 - self.smoothing) * new,
            _proposal(kept),
            fitted(choices, elites),
        )
        return eqx.tree_at(lambda s: s.kept.proposal, after, moved)


def _proposal(kept: Kept) -> Proposal:
    assert isinstance(kept.proposal, Proposal)
    return kept.proposal


def _either(flag: Array, one: Sequences, other: Sequences) -> Sequences:
    return jax.tree.map(lambda *pair: jnp.where(flag, *pair), one, other)
