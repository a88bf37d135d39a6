"""The two parts of a batch of n-step temporal-difference regression, and the times at which rows are trained.

T ∼ Geometric(1−β) exceeds the L recorded steps of a row with probability β^L; if these end in a terminal state, the
future stays there, and nothing lies beyond. The loss of a row is (1−β^L) direct + β^L bootstrapped. With L = 1 that is
(1−β) and β exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi._jax.devices import over_devices
from ggpi.learning.losses import Problem
from ggpi.learning.targets import draw_rows
from ggpi.types import Key


class Share(NamedTuple):
    """Rows of one part of a batch, for M models."""

    rows: Int[Array, "M B"]
    reached: Float[Array, "M B D"]
    """X_T where the part is direct, X_L where it is bootstrapped."""
    weight: Float[Array, "M B"]


def compose(problem: Problem, num_direct: int, num_bootstrapped: int, *, key: Key) -> tuple[Share, Share]:
    """A direct and a bootstrapped part, whose weighted means add up to the loss.

    Of all drawn rows the first `num_direct` are direct, with the weight 1 − β^L. `num_bootstrapped` are chosen
    among all of them in proportion to β^L, by systematic resampling, and share the mean of β^L: the solver is spent
    on rows in proportion to what they bootstrap. Without bootstrapped rows T is cut at L.
    """
    row_key, time_key, choice_key = jax.random.split(key, 3)
    data, beta = problem.data, problem.betas[:, None]
    rows = draw_rows(data, problem.num_horizons, num_direct + num_bootstrapped, key=row_key)
    length = data.length[(jnp.arange(len(beta)) % len(data.num_starts))[:, None], rows]
    last = rows + length - 1
    beyond = (
        jnp.where(data.terminated[last], 0.0, beta**length) if num_bootstrapped else jnp.zeros(rows.shape)
    )
    first, left = over_devices(rows[:, :num_direct]), beyond[:, :num_direct]
    time = truncated_geometric(beta, left, key=time_key)
    reached = data.next_state[first + jnp.minimum(time, length[:, :num_direct]) - 1]
    direct = Share(first, reached, (1 - left) / num_direct)
    chosen = over_devices(resample(beyond, num_bootstrapped, key=choice_key))
    ahead = data.next_state[jnp.take_along_axis(last, chosen, axis=1)]
    weight = jnp.broadcast_to(beyond.mean(axis=1, keepdims=True) / max(num_bootstrapped, 1), chosen.shape)
    return direct, Share(jnp.take_along_axis(rows, chosen, axis=1), ahead, weight)


def truncated_geometric(
    beta: Float[Array, "M 1"], beyond: Float[Array, "M B"], *, key: Key
) -> Int[Array, "M B"]:
    """T ∼ Geometric(1−β) given that its upper tail, of probability `beyond`, is not reached."""
    u = jax.random.uniform(key, beyond.shape, minval=jnp.finfo(jnp.float32).tiny)
    steps = jnp.floor(jnp.log(beyond + (1 - beyond) * u) / jnp.log(jnp.maximum(beta, 1e-30)))
    return 1 + jnp.clip(steps, 0, 2.0**20).astype(jnp.int32)


def resample(weights: Float[Array, "M C"], count: int, *, key: Key) -> Int[Array, "M n"]:
    """`count` places in proportion to weights, by systematic resampling: each as often as expected, up to rounding."""
    ends = jnp.cumsum(weights, axis=1)
    u = jax.random.uniform(key, (len(weights), 1))
    points = (jnp.arange(count) + u) / max(count, 1) * ends[:, -1:]
    places = jax.vmap(lambda ends, points: jnp.searchsorted(ends, points, side="right"))(ends, points)
    return jnp.minimum(places, weights.shape[1] - 1)


def spread_times(count: int, *, key: Key) -> Float[Array, "n"]:
    """tⱼ = (j+u)/n: evenly spaced with one random offset, so that each is uniform over its part of [0, 1]."""
    return (jnp.arange(count) + jax.random.uniform(key)) / count
