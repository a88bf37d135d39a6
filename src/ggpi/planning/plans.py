"""A set of switching policies as arrays, for searches whose survivors are known only while they run.

All plans are as long as the longest: a repeated last policy changes nothing. Rows are sorted, so that plans with a
common prefix are neighbours, and every distinct prefix of m segments has a number. After j segments

    G_j = Σ_{i≤j} weightᵢ · r,   and every completion has a value in  E[G_j] + rest_j · [lo, hi],

for rewards in [lo, hi]: weights of a plan sum to 1/(1−γ), and rest_j is what is left after j of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi.evaluation.rewards import SampledForm
from ggpi.switching import GSPs, check_alpha
from ggpi.types import Scalar, whole


class Plans(eqx.Module):
    """N plans of M segments."""

    policies: Int[np.ndarray, "N M"] | Int[Array, "N M"]
    alphas: Float[np.ndarray, "N M"] | Float[Array, "N M"]
    """The switch that ends each segment; 0 for the last."""
    prefix: Int[np.ndarray, "N M"] | Int[Array, "N M"]
    """The number of the distinct prefix that a segment ends."""
    place: Int[np.ndarray, "N"] | Int[Array, "N"]
    """Where each row is in the set that it was made from."""
    sizes: tuple[int, ...] = eqx.field(static=True)
    """How many distinct prefixes of each length there are."""
    levels: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    """The α's of each level's segments."""
    num_policies: int = eqx.field(static=True)

    def __len__(self) -> int:
        return self.policies.shape[0]

    @property
    def depth(self) -> int:
        return self.policies.shape[1]

    def weights(self, gamma: float, form: SampledForm, rows: Int[Array, "n"]) -> Weights:
        """What the rewards at both ends of every segment of some plans count, in units of Q."""
        return weights_of(jnp.asarray(self.alphas)[rows].astype(jnp.float32), gamma, form)


class Weights(NamedTuple):
    """[n, M] each."""

    start: Float[Array, "n M"]
    end: Float[Array, "n M"]
    rest: Float[Array, "n M"]


def weights_of(alphas: Float[Array, "n M"], gamma: float, form: SampledForm) -> Weights:
    """What the rewards at both ends of the segments of plans count, in units of Q.

    A reward that does not depend on the policy is known as soon as a segment ends, also the part of it that the next
    segment starts with.

    Args:
        alphas: the switch that ends each segment; 0 for the last.
        gamma: the discount.
        form: of the reward.
    """
    beta, (n, depth) = gamma * (1 - alphas), alphas.shape
    ratio = (gamma - beta) / (1 - beta)
    reached = jnp.cumprod(jnp.concatenate([jnp.ones((n, 1)), ratio[:, :-1]], axis=1), axis=1)
    is_last = jnp.arange(depth) == depth - 1
    w = reached * jnp.where(is_last, 1.0, (1 - gamma) / (1 - beta))
    scale = (1.0 if form == "arrival" else gamma) / (1 - gamma)
    first = jnp.zeros((n, 1)) + (0.0 if form == "arrival" else 1.0)
    if form in ("state", "arrival"):
        start, end = jnp.concatenate([first, jnp.zeros_like(w[:, 1:])], axis=1), scale * w
    else:
        start = jnp.concatenate([first, scale * (alphas * w)[:, :-1]], axis=1)
        end = scale * (1 - alphas) * w
    rest = 1 / (1 - gamma) - jnp.cumsum(start + end, axis=1)
    return Weights(start, end, jnp.where(is_last, 0.0, rest))


@lru_cache(maxsize=16)
def plans_of(gsps: GSPs) -> Plans:
    """The arrays of a set of GSPs."""
    depth = gsps.depth
    longest = next(gsp for gsp in gsps if len(gsp) == depth)
    policies, alphas = [], []
    for gsp in gsps:
        missing = depth - len(gsp)
        policies.append((*gsp.policies, *[gsp.policies[-1]] * missing))
        alphas.append((*gsp.alphas, *longest.alphas[len(gsp.alphas) :], 0.0))
    return _sorted(np.array(policies, np.int32), np.array(alphas))


def all_plans(num_policies: int, depth: int, alpha: Scalar) -> Plans:
    """Π_m as arrays: for sets that are too large to be listed as objects."""
    num_policies, depth = whole(num_policies, "num_policies"), whole(depth, "depth")
    policies = np.stack(np.unravel_index(np.arange(num_policies**depth), (num_policies,) * depth), axis=1)
    alphas = np.full(policies.shape, check_alpha(alpha))
    alphas[:, -1] = 0.0
    return _sorted(policies.astype(np.int32), alphas)


def _sorted(policies: np.ndarray, alphas: np.ndarray) -> Plans:
    columns = [column for m in range(policies.shape[1]) for column in (policies[:, m], alphas[:, m])]
    place = np.lexsort(columns[::-1])
    policies, alphas = policies[place], alphas[place]
    differs = (policies[1:] != policies[:-1]) | (alphas[1:] != alphas[:-1])
    is_new = np.logical_or.accumulate(differs, axis=1)
    prefix = np.concatenate([np.zeros_like(policies[:1]), np.cumsum(is_new, axis=0, dtype=np.int32)])
    levels = tuple(tuple(sorted(set(column.tolist()))) for column in alphas.T)
    sizes = tuple(int(count) + 1 for count in prefix[-1])
    return Plans(policies, alphas, prefix, place.astype(np.int32), sizes, levels, int(policies.max()) + 1)
