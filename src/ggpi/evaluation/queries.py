"""Queries of a sampled evaluator: values of a set of switching policies in some states, in calls that fit into memory.

A query is an `equinox.Module`: its tree, its Sampler, its reward, the states [B, …] and the first actions to score
[K, B, C, …] (None leaves them to the heads, sample by sample). All arrays are arguments of one compiled program, so
that another reward of the same kind, another state or another agent of the same shapes compiles nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.jit import fast_jit
from ggpi.evaluation.rewards import OnHost, SampledReward, first_bad_sample
from ggpi.evaluation.tree import Drawn, Tree, draw, returns
from ggpi.ghm.network_sampler import NetworkSampler
from ggpi.ghm.samplers import ModelSampler
from ggpi.types import Key, Numbers, Sampler

LARGEST = 2**28
"""Numbers that one call may hold (1 GiB), samples and what models compute them with; larger queries take several."""


class Estimate(NamedTuple):
    """A sample mean and its standard error (∞ for a single sample).

    Paper: Eq 3
    """

    mean: Numbers
    stderr: Numbers


class AbstractQuery(eqx.Module):
    """Values of N switching policies in B states, for C first actions of each of K policies."""

    sampler: eqx.AbstractVar[Sampler]
    reward: eqx.AbstractVar[SampledReward]
    states: eqx.AbstractVar[Any]
    actions: eqx.AbstractVar[Any]

    @property
    @abstractmethod
    def num_segments(self) -> int:
        """Segments that are drawn for each sample of a state and first action."""

    @abstractmethod
    def draw(self, num_samples: int, *, key: Key) -> Any:
        """All samples, without a look at the reward."""

    @abstractmethod
    def returns(self, drawn: Any) -> Float[Array, "N B C n"]:
        """The return of each sample."""

    @abstractmethod
    def levels(self, drawn: Any) -> list[list[Drawn]]:
        """What was drawn at the ends of segments [nodes, B·C, n, …], as the tree has them."""

    @property
    def num_actions(self) -> int:
        """C; 1 if the heads choose."""
        return 1 if self.actions is None else self.actions.shape[2]

    @property
    def starts(self) -> Numbers:
        """The states [B·C, …] that chains start in: each once for every first action."""
        return self.repeated(self.states)

    @property
    def first(self) -> Numbers | None:
        """The first actions [K, B·C, …] of these chains; None if the heads choose."""
        actions = self.actions
        return None if actions is None else actions.reshape(len(actions), -1, *actions.shape[3:])

    def repeated(self, rows: Any) -> Any:
        """What belongs to the states [B, …], for the states that chains start in."""
        return rows if self.actions is None else jnp.repeat(rows, self.num_actions, axis=0)

    @abstractmethod
    def among(self, rows: np.ndarray) -> AbstractQuery:
        """The same in some of the states; `cut` does what all queries share."""

    def at(self, rows: np.ndarray) -> AbstractQuery:
        """The same in some of the states, or the query itself if these are all."""
        return self if np.array_equal(rows, np.arange(len(self.states))) else self.among(rows)


Query = TypeVar("Query", bound=AbstractQuery)


def cut(query: Query, rows: np.ndarray) -> Query:
    """A query in some of its states, with their first actions and rewards."""
    actions = None if query.actions is None else query.actions[:, rows]
    parts = query.states[rows], actions, query.reward.for_rows(lambda leaf: leaf[rows])
    return eqx.tree_at(
        lambda q: (q.states, q.actions, q.reward), query, parts, is_leaf=lambda part: part is None
    )


def draw_chains(query: AbstractQuery, tree: Tree, num_samples: int, *, key: Key) -> list[list[Drawn]]:
    """Samples of the segments of a tree, from the states and first actions of a query."""
    parts = tree, query.sampler, query.starts, query.first
    return draw(*parts, num_samples, form=query.reward.form, key=key)


class Jump(AbstractQuery):
    """Values by composing segments alone."""

    sampler: Sampler
    reward: SampledReward
    states: Any
    actions: Any
    tree: Tree

    @property
    def num_segments(self) -> int:
        return self.tree.num_nodes

    def draw(self, num_samples: int, *, key: Key) -> list[list[Drawn]]:
        return draw_chains(self, self.tree, num_samples, key=key)

    def returns(self, drawn: list[list[Drawn]]) -> Float[Array, "N B C n"]:
        found = returns(self.tree, self.reward.for_rows(self.repeated), self.starts, drawn)
        return found.reshape(len(found), len(self.states), self.num_actions, -1)

    def levels(self, drawn: list[list[Drawn]]) -> list[list[Drawn]]:
        return drawn

    def among(self, rows: np.ndarray) -> Jump:
        return cut(self, rows)


def summary(returns: Float[Array, "*shape n"]) -> Estimate:
    """The mean over samples, and its standard error."""
    n = returns.shape[-1]
    mean = returns.mean(axis=-1)
    if n == 1:
        return Estimate(mean, jnp.full(mean.shape, jnp.inf))
    return Estimate(mean, jnp.sqrt(returns.var(axis=-1) / (n - 1)))


def estimate(query: AbstractQuery, num_samples: int, *, largest: int, key: Key) -> Estimate:
    """Means and standard errors [N, B, C], in calls that draw at most about `largest` segments each."""
    parts = []
    for part, size, keys in _calls(query, num_samples, largest, key):
        parts.append(pooled([_moments(part, size, key) for key in keys], size))
    found = (np.concatenate(columns, axis=1)[:, : len(query.states)] for columns in zip(*parts, strict=True))
    return Estimate(*found)


def sampled_levels(query: AbstractQuery, num_samples: int, *, largest: int, key: Key) -> list[list[Any]]:
    """The states [nodes, B·C, n, …] at the ends of segments, those of the first call of `estimate` with this key."""
    parts = []
    for part, size, keys in _calls(query, num_samples, largest, key):
        drawn = part.levels(_drawn(part, size, keys[0]))
        parts.append([[np.asarray(block.x) for block in level] for level in drawn])
    count = len(query.states) * query.num_actions  # the padding of the last part is cut off
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1)[:, :count], *parts)


def largest_call(sampler: Sampler) -> int:
    """How many segments one call may draw."""
    return LARGEST // (sampler.working_size if isinstance(sampler, ModelSampler | NetworkSampler) else 1)


def _calls(
    query: AbstractQuery, num_samples: int, largest: int, key: Key
) -> Iterator[tuple[AbstractQuery, int, tuple[Key, ...]]]:
    """Parts of a query, how many samples a call draws, and the key of each call."""
    num_states = len(query.states)
    at_once, size = call_size(query, num_samples, largest)
    calls = -(-num_samples // size)
    for i, begin in enumerate(range(0, num_states, at_once)):
        rows = np.minimum(begin + np.arange(at_once), num_states - 1)  # equal shapes: one compilation
        yield query.at(rows), size, _keys(key, i, calls)


@partial(jax.jit, static_argnames="calls")
def _keys(key: Key, part: int | Array, calls: int) -> tuple[Key, ...]:
    return tuple(jax.random.split(jax.random.fold_in(key, part), calls))


def call_size(query: AbstractQuery, num_samples: int, largest: int) -> tuple[int, int]:
    """How many states, and samples of each, one call takes."""
    most = max(largest // (query.num_segments * query.num_actions), 1)
    at_once = min(len(query.states), most)
    calls = -(-num_samples // max(most // at_once, 1))
    return at_once, -(-num_samples // calls)


def pooled(parts: list[tuple[Numbers, Numbers]], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over calls of `size` samples each, from means and variances (∞ for a single sample).

    Paper: Eq 3
    """
    means = np.stack([np.asarray(mean, float) for mean, _ in parts])
    n = size * len(parts)
    variance = np.mean([np.asarray(variance, float) for _, variance in parts], axis=0) + means.var(axis=0)
    return means.mean(axis=0), np.sqrt(variance / (n - 1)) if n > 1 else np.full(means.shape[1:], np.inf)


def _moments(query: AbstractQuery, num_samples: int, key: Key) -> tuple[Numbers, Numbers]:
    """Means and variances over samples; compiled, unless the Sampler or the reward runs on the host."""
    if isinstance(query.reward.values, OnHost) or not isinstance(query.sampler, eqx.Module):
        mean, variance = _mean_and_variance(query.returns(_drawn(query, num_samples, key)))
    else:
        mean, variance = _compiled(query, num_samples, key)
    if not np.isfinite(mean).all():
        _explain(query, _drawn(query, num_samples, key))
    return mean, variance


def _drawn(query: AbstractQuery, num_samples: int, key: Key) -> Any:
    """Samples, by a program that serves all rewards."""
    bare = eqx.tree_at(lambda q: q.reward.values, query, None)
    program: Callable[..., Any] = _compiled_draw if isinstance(query.sampler, eqx.Module) else _draw
    return program(bare, num_samples, key)


def _draw(query: AbstractQuery, num_samples: int, key: Key) -> Any:
    return query.draw(num_samples, key=key)


def _mean_and_variance(returns: Float[Array, "N B C n"]) -> tuple[Array, Array]:
    return returns.mean(axis=-1), returns.var(axis=-1)


_compiled_draw = fast_jit(_draw)


@fast_jit
def _compiled(query: AbstractQuery, num_samples: int, key: Key) -> tuple[Array, Array]:
    return _mean_and_variance(query.returns(query.draw(num_samples, key=key)))


def _explain(query: AbstractQuery, drawn: Any) -> None:
    """Says which sample made a value infinite or NaN."""
    reward = query.reward.for_rows(lambda leaf: jnp.repeat(leaf, query.num_actions, axis=0))
    for part in (part for level in query.levels(drawn) for part in level):
        if not np.isfinite(np.asarray(part.x, float)).all():
            raise ArithmeticError("a model sampled states that are not finite; look at it with ggpi.diagnose")
        action = () if part.end_action is None else (part.end_action,)
        if reward.form != "policy" and (said := first_bad_sample(reward.values, part.x, *action)):
            raise ValueError(f"{said}; rewards are finite numbers")
    raise ValueError("the reward of the state itself is not a finite number")
