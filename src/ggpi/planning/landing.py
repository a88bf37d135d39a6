"""A decision in a jumpy graph: one jump of every policy from the true state, and V of the graph where it lands."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi.evaluation.queries import AbstractQuery, cut, draw_chains
from ggpi.evaluation.rewards import SampledReward, over
from ggpi.evaluation.tree import Block, Drawn, Tree, returns
from ggpi.planning.jumpy_graph import JumpyGraph
from ggpi.planning.landmarks import Atlas, interpolation, shares
from ggpi.planning.ways import moved
from ggpi.types import Key, Sampler


class Landing(AbstractQuery):
    """U_k of every policy in B states, or Q_k of first actions there, from fresh jumps."""

    sampler: Sampler
    reward: SampledReward
    states: Any
    actions: Any
    tree: Tree
    """One segment of each policy at horizon β."""
    atlas: Atlas
    v: Float[Array, "R M"]
    """V of the graph for the reward of all states (R = 1), or for the reward of each."""
    discount: Float[Array, ""]
    """c, the discount of a jump."""

    @property
    def num_segments(self) -> int:
        return self.tree.num_nodes

    def draw(self, num_samples: int, *, key: Key) -> list[list[Drawn]]:
        return draw_chains(self, self.tree, num_samples, key=key)

    def returns(self, drawn: list[list[Drawn]]) -> Float[Array, "N B C n"]:
        x = drawn[0][0].x
        shape = x.shape[:3]
        if self.atlas.connected is not None:
            origin = jnp.broadcast_to(self.atlas.nearest(self.starts)[0][:, :1], shape)
            there = moved(self.atlas, x.reshape(-1, *x.shape[3:]), origin.ravel()).reshape(x.shape)
            if self.reward.terminal is not None:  # terminal states are not landmarks, and stay
                ended = over(self.reward.terminal, x)
                there = jnp.where(ended.reshape(*shape, *(1,) * (x.ndim - 3)), x, there)
            x = there
            drawn = [[drawn[0][0]._replace(x=x)]]
        rows, apart = self.atlas.nearest(x.reshape(-1, *x.shape[3:]))
        rows, apart = rows.reshape(*shape, -1), apart.reshape(*shape, -1)
        own = self.v if len(self.v) == 1 else self.repeated(self.v)
        v = own[jnp.arange(len(own))[None, :, None, None], rows]
        after = self.discount * (interpolation(apart) * v).sum(axis=-1)
        distance = apart[..., 0]
        if self.reward.terminal is not None:
            ended = over(self.reward.terminal, x)
            after, distance = jnp.where(ended, 0.0, after), jnp.where(ended, 0.0, distance)
        found = returns(self.tree, self.reward.for_rows(self.repeated), self.starts, drawn) + after
        found = _counted(found, shares(distance, self.atlas.reach))
        left = self.reward.has_ended(self.starts)
        found = found if left is None else jnp.where(left[:, None], 0.0, found)
        return found.reshape(len(found), len(self.states), self.num_actions, -1)

    def levels(self, drawn: list[list[Drawn]]) -> list[list[Drawn]]:
        return drawn

    def among(self, rows: np.ndarray) -> Landing:
        there = cut(self, rows)
        return there if len(self.v) == 1 else eqx.tree_at(lambda query: query.v, there, self.v[rows])


def landing(
    graph: JumpyGraph,
    v: Float[np.ndarray, "*R M"],
    sampler: Sampler,
    reward: SampledReward,
    states: Any,
    actions: Any = None,
) -> Landing:
    """The query of an agent in states [B, …].

    Args:
        graph: the graph.
        v: its solution for the reward, or for the reward of each state.
        sampler: the models.
        reward: the reward at sampled states.
        states: where the agent is.
        actions: first actions to score [K, B, C, …]; None lets the policies choose.
    """
    beta, count = graph.beta, graph.num_policies
    start = 0.0 if reward.form == "arrival" else 1.0
    end = (1.0 if reward.form == "arrival" else graph.gamma * (1 - graph.alpha)) / (1 - beta)
    starts, ends = (np.full(count, weight, np.float32) for weight in (start, end))
    block = Block(np.zeros(count, np.int32), starts, ends, beta, tuple(range(count)), is_leaf=True)
    tree = Tree(((block,),), np.arange(count))
    once = eqx.tree_at(lambda r: r.arriving, reward, np.asarray(1 - beta, np.float32))
    table = jnp.asarray(np.atleast_2d(v))
    return Landing(sampler, once, states, actions, tree, graph.atlas, table, jnp.float32(graph.discount))


def _counted(values: Float[Array, "K B n"], share: Float[Array, "K B n"]) -> Float[Array, "K B n"]:
    """Values whose mean and standard error are those of the jumps that count."""
    n, kept = values.shape[-1], (share > 0).sum(axis=-1, keepdims=True)
    mean = (share * values).sum(axis=-1, keepdims=True)
    stretch = jnp.sqrt(n * max(n - 1, 1) / (kept * jnp.maximum(kept - 1, 1)))
    spread = jnp.where(share > 0, stretch * (values - mean), 0.0)
    every = values - values.mean(axis=-1, keepdims=True)  # a single jump says nothing of its own error
    return mean + jnp.where(kept > 1, spread, every)
