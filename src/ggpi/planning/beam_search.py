"""Beam search: the best prefixes are extended by every policy, segment by segment.

A prefix is itself a plan, whose last policy acts forever. That is its score: the mean of a plan that the search could
stop with, and a lower bound of what its best extension reaches. Plans that are good only after their next switch look
no better than others before it: a beam that is narrow may lose them.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ggpi.planning.chains import Problem
from ggpi.planning.choices import Choices, Sequences
from ggpi.planning.plans import Plans
from ggpi.planning.search import Round, Search
from ggpi.planning.shooting import AbstractShooter, kept_of, scores
from ggpi.types import Key, whole


@dataclass(frozen=True, eq=False)
class BeamSearch(AbstractShooter):
    """The best prefixes of each length, and their extensions.

    Args:
        width: how many prefixes are extended.
        num_extensions: how many pairs of a policy and an α extend each prefix, drawn without repetition; by default all
            pairs of a listed policy and a listed α.

    The other arguments are those of `AbstractShooter`. A warm start adds the last decision's plan at the end only.
    """

    width: int = 8
    _: KW_ONLY
    num_extensions: int | None = None

    @property
    def most_kept(self) -> int:
        return self.width

    def check_own(self, choices: Choices) -> None:
        whole(self.width, "width")
        if self.num_extensions is not None:
            whole(self.num_extensions, "num_extensions")
        elif choices.alpha_range is not None:
            raise ValueError("a range of α's has too many to try them all: give num_extensions=")

    def proposal(self, choices: Choices) -> None:
        return None

    def num_rounds(self, plans: Plans, is_warm: bool) -> int:
        return self.depth

    def num_alike(self, plans: Plans) -> int:
        return self.depth

    def advance(self, problem: Problem, search: Search, i: Round, is_warm: bool, *, key: Key) -> Search:
        pool_key, extend_key, sample_key = jax.random.split(key, 3)
        choices, i = self.pooled(problem, key=pool_key), jnp.asarray(i)
        added = extensions(choices, self.num_extensions, key=extend_key)
        beam, is_open = kept_of(search).plans, jnp.isfinite(search.mean)
        first = (jnp.arange(self.width) == 0)[:, None] & added.is_new
        is_used = jnp.where(i == 0, first, is_open[:, None]).ravel()
        plans = extended(beam, added, i)
        if self.num_extensions is not None:
            plans, is_used = plans.joined(beam), jnp.concatenate([is_used, is_open & (i > 0)])
        found = scores(problem, plans, self.num_samples, key=sample_key)
        found = found._replace(mean=jnp.where(is_used, found.mean, -jnp.inf))
        return self.keep(search, i, plans, found, jnp.argsort(-found.mean)[: self.width])


class Extensions(NamedTuple):
    """Pairs of a policy and the α of the switch to it."""

    policies: Int[Array, "P"] | Float[Array, "P z"]
    alphas: Float[Array, "P"]
    is_new: Bool[Array, "P"]
    """Whether no earlier pair has this policy: at the start of a plan there is no switch."""


def extensions(choices: Choices, count: int | None, *, key: Key) -> Extensions:
    """All pairs of a policy and an α, or some of them; within a range of α's, policies by turns."""
    policy_key, alpha_key = jax.random.split(key)
    each = max(len(choices.alphas), 1)
    size = choices.num_policies * each
    pairs = jnp.arange(size) if count is None else jax.random.permutation(policy_key, size)
    if choices.alpha_range is None:
        pairs = pairs[:count]
        alphas = jnp.asarray(choices.alphas or (0.0,), jnp.float32)[pairs % each]
    else:
        pairs = jnp.resize(pairs, (count or size,))
        alphas = choices.draw_alphas(pairs.shape, key=alpha_key)
    policies = pairs // each
    is_new = jnp.argmax(policies[:, None] == policies[None], axis=1) == jnp.arange(len(pairs))
    return Extensions(policies if choices.codes is None else choices.codes[policies], alphas, is_new)


def extended(beam: Sequences, added: Extensions, i: Int[Array, ""]) -> Sequences:
    """Every prefix of i segments with every extension, which then acts forever."""
    width, count, depth = len(beam), len(added.alphas), beam.depth
    old = beam.at(jnp.repeat(jnp.arange(width), count))
    new = jax.tree.map(lambda leaf: jnp.tile(leaf, (width, *[1] * (leaf.ndim - 1))), added)
    is_later = jnp.arange(depth) >= i
    is_later = is_later.reshape(1, depth, *[1] * (old.policies.ndim - 2))
    policies = jnp.where(is_later, new.policies[:, None], old.policies)
    alphas = jnp.where(jnp.arange(depth - 1) >= i - 1, new.alphas[:, None], old.alphas)
    return Sequences(policies, alphas)
