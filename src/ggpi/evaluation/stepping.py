"""First actions scored by one explicit step before the jump.

    Q^ν(x, a) = E[ r + γ ((1−α₁) V^ν(X′) + α₁ V^ν′(X′)) ],   X′ ∼ P(·|x, a),

where ν′ is what is left of ν after its first switch; a suffix-closed set has both. Of μ_γ(·|x, a) the first step is a
part of 1−γ, so a learned one hardly depends on the first action; a one-step model depends on nothing else but the
state. All first actions of a state share their noise: their values differ by what the actions do.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi.evaluation.queries import AbstractQuery, cut
from ggpi.evaluation.rewards import SampledReward, stay
from ggpi.evaluation.tree import Drawn, Tree, draw, returns
from ggpi.switching import GSPs
from ggpi.types import Key, Numbers, Sampler


class Suffixes(eqx.Module):
    """How each switching policy of a suffix-closed set continues after one step."""

    place: np.ndarray | Array
    """[N]: the place of ν′; a single policy's own."""
    alpha: np.ndarray | Array
    """[N]: α₁; 0 for a single policy."""

    def __init__(self, gsps: GSPs):
        places = {gsp: i for i, gsp in enumerate(gsps)}
        self.place = np.array([places[gsp.suffix or gsp] for gsp in gsps], np.int32)
        self.alpha = np.array([(*gsp.alphas, 0.0)[0] for gsp in gsps], np.float32)


class Step(AbstractQuery):
    """Values of discrete first actions, the same for all policies, by one step of `one_step` and jumps from there."""

    sampler: Sampler
    reward: SampledReward
    states: Any
    actions: Any
    tree: Tree
    one_step: Sampler
    """Its jump at horizon 0, for policy 0, is P(·|x, a)."""
    suffixes: Suffixes

    @property
    def num_segments(self) -> int:
        return self.tree.num_nodes

    def draw(self, num_samples: int, *, key: Key) -> tuple[Array, list[list[Drawn]]]:
        """Next states [C, B, n, …], and one chain from each: parts are [nodes, C·B·n, 1, …]."""
        step_key, chain_key = jax.random.split(key)
        size = (len(self.states), num_samples)
        x = jnp.broadcast_to(self.states[:, None], (*size, *self.states.shape[1:]))
        x = x.reshape(1, -1, *self.states.shape[1:])

        def after(action: Array) -> tuple[Array, list[list[Drawn]]]:
            # No index of the action in its keys: the noise of one is that of all.
            a = jnp.repeat(action, num_samples)[None]
            following = stay(self.sampler.terminal, x, self.one_step.jump((0,), 0.0, x, a, key=step_key))[0]
            chains = draw(self.tree, self.sampler, following, None, 1, form=self.reward.form, key=chain_key)
            return following.reshape(*size, *following.shape[1:]), chains

        following, chains = jax.vmap(after, in_axes=1)(self.actions[0])
        return following, jax.tree.map(
            lambda part: jnp.moveaxis(part, 0, 1).reshape(len(part[0]), -1, *part.shape[3:]), chains
        )

    def returns(self, drawn: tuple[Array, list[list[Drawn]]]) -> Float[Array, "N B C n"]:
        x, chains = drawn
        shape = x.shape[:3]
        reward = self.reward.for_rows(lambda leaf: _spread(leaf, shape))
        left, entered = _spread(self.states, shape), x.reshape(-1, *x.shape[3:])
        taken = jnp.broadcast_to(self.actions[0].T[:, :, None], shape).ravel()
        r = _first_reward(reward, left, taken, entered)
        v = returns(self.tree, reward, entered, chains)[..., 0]
        alpha = self.suffixes.alpha[:, None]
        q = r + self.sampler.gamma * ((1 - alpha) * v + alpha * v[self.suffixes.place])
        ended = reward.has_ended(left)
        q = q if ended is None else jnp.where(ended, 0.0, q)
        return jnp.moveaxis(q.reshape(len(q), *shape), 1, 2)

    def levels(self, drawn: tuple[Array, list[list[Drawn]]]) -> list[list[Drawn]]:
        x, chains = drawn
        shape = x.shape[:3]

        def arranged(part: Array) -> Array:
            own = part.reshape(len(part), *shape, *part.shape[3:])
            return jnp.moveaxis(own, 1, 2).reshape(len(part), -1, shape[2], *part.shape[3:])

        return jax.tree.map(arranged, chains)

    def among(self, rows: np.ndarray) -> Step:
        return cut(self, rows)


def _first_reward(reward: SampledReward, left: Numbers, action: Numbers, entered: Numbers) -> Array:
    """The rewards of steps [P], the arrival in a terminal state in full."""
    x, a = (entered, None) if reward.form == "arrival" else (left, action)
    once = eqx.tree_at(lambda r: r.terminal, reward, None, is_leaf=lambda part: part is None)
    return once((), x[None, :, None], None if a is None else a[None, :, None])[0, :, 0]


def _spread(rows: Numbers, shape: tuple[int, ...]) -> Array:
    """Rows [B, …] for each of C first actions and n samples: [C·B·n, …]."""
    return jnp.broadcast_to(rows[None, :, None], (*shape, *rows.shape[1:])).reshape(-1, *rows.shape[1:])
