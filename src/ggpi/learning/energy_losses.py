"""The losses of models that draw the time first: the energy score at known times.

    E‖Y − y‖ − ½ E‖Y − Y′‖,   Y, Y′ samples of the model at (x, a) and T ∼ Geometric(1−β)

    energy-MC    y = X_T, from recorded trajectories
    energy-TD    y = X_T if T ≤ L, else a sample of μ̄ at (X_L, a′) and the remaining time T − L, a′ ∼ π(·|X_L)

L are the recorded steps that can be followed, and μ̄ is a slow copy of the model. All of a row's times share what the
network computes of (x, a). A time is known when its target is, so the network need not infer it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ggpi._jax.random import quick
from ggpi.data import Transitions
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.timed import Timed, geometric_time
from ggpi.learning.losses import Batch, Problem, Step, act, running_mean
from ggpi.learning.targets import Dataset, draw_rows, n_step_dataset, trajectory_dataset
from ggpi.types import Key, whole


class Followed(NamedTuple):
    """Rows for M models, and what was recorded after them at n times."""

    rows: Int[Array, "M B"]
    times: Int[Array, "M B n"]
    target: Float[Array, "M B n D"]
    """X_T, or X_L where T lies beyond the record."""
    left: Int[Array, "M B n"]
    """T − L where T lies beyond the record, else 0."""


@dataclass(frozen=True)
class EnergyLoss(ABC):
    """What both losses share."""

    times_per_row: int = 4
    """Times at which each row is trained, one from each quantile of T."""
    samples: int = 2
    """Samples of the model for each target."""

    def __post_init__(self):
        whole(self.times_per_row, "times_per_row")
        whole(self.samples, "samples", least=2)

    @abstractmethod
    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        """As `Loss.dataset`."""

    @abstractmethod
    def targets(
        self, slow: Timed, problem: Problem, followed: Followed, *, key: Key
    ) -> tuple[Int[Array, "M B n"], Float[Array, "M B n D"]]:
        """Times and target states."""

    @abstractmethod
    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        """As `Loss.slow_copy`."""

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        draw_key, target_key, noise_key = jax.random.split(key, 3)
        if not (isinstance(models, Timed) and isinstance(slow, Timed)):
            raise TypeError(
                f'the energy losses need a model that knows the time: use model="timed", not a {type(models).__name__}'
            )
        followed = follow_at(problem, batch_size, self.times_per_row, models.longest, key=draw_key)
        times, target = self.targets(slow, problem, followed, key=target_key)
        state, action = problem.data.state[followed.rows], problem.data.action[followed.rows]
        shape = len(state), self.samples, *followed.times.shape[1:], models.network.noise_size
        noise = jax.random.normal(quick(noise_key), shape)

        def one(
            model: Timed, state: Array, action: Array, times: Array, target: Array, noise: Array
        ) -> Array:
            drawn = model.after(times, model.encode(state, action)[:, None], noise)
            y = model.frame.change(jnp.broadcast_to(state[:, None], target.shape), target)
            return model.score(drawn, y).mean()

        target = jax.lax.stop_gradient(target)
        losses = jax.vmap(one)(models, state, action, times, target, noise)
        return losses, Batch(state, action, target[:, :, 0])


class EnergyMC(EnergyLoss):
    """Recorded futures of the evaluated policy; a time beyond the record is replaced by its end."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return trajectory_dataset(data, num_policies, betas)

    def targets(
        self, slow: Timed, problem: Problem, followed: Followed, *, key: Key
    ) -> tuple[Int[Array, "M B n"], Float[Array, "M B n D"]]:
        return followed.times - followed.left, followed.target

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return None


@dataclass(frozen=True)
class EnergyTD(EnergyLoss):
    """Recorded futures as far as they go, then samples of the model for the remaining time."""

    n_step: int = 20
    """Recorded steps that are followed before the model is sampled."""
    ema_decay: float = 0.999
    """Targets come from a running mean of past weights, which starts shorter: the decay is at most (1+i)/(10+i)."""

    def __post_init__(self):
        EnergyLoss.__post_init__(self)
        whole(self.n_step, "n_step")
        if not 0 <= self.ema_decay < 1:
            raise ValueError(f"ema_decay is from 0 to below 1, got {self.ema_decay}")

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return n_step_dataset(data, num_policies, self.n_step)

    def targets(
        self, slow: Timed, problem: Problem, followed: Followed, *, key: Key
    ) -> tuple[Int[Array, "M B n"], Float[Array, "M B n D"]]:
        action_key, noise_key = jax.random.split(key)
        last = jnp.take_along_axis(
            followed.target, followed.left.argmax(axis=-1)[..., None, None], axis=2
        ).squeeze(2)
        acted = act(problem.bank, last, key=action_key)
        noise = jax.random.normal(quick(noise_key), (*followed.times.shape, slow.network.noise_size))

        def one(slow: Timed, last: Array, acted: Array, left: Array, noise: Array) -> Array:
            y = slow.after(jnp.maximum(left, 1), slow.encode(last, acted)[:, None], noise)
            return slow.frame.restore(jnp.broadcast_to(last[:, None], y.shape), y)

        sampled = jax.vmap(one)(slow, last, acted, followed.left, noise)
        return followed.times, jnp.where(followed.left[..., None] > 0, sampled, followed.target)

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        if slow is None:
            return jax.tree.map(jnp.array, models)
        return running_mean(slow, models, jnp.maximum(1 - self.ema_decay, 9 / (10.0 + step)))


def follow_at(problem: Problem, batch_size: int, num_times: int, longest: int, *, key: Key) -> Followed:
    """Rows, each with one time from every quantile of T, and the recorded states at these times."""
    row_key, time_key = jax.random.split(key)
    data, beta = problem.data, problem.betas[:, None, None]
    rows = draw_rows(data, problem.num_horizons, batch_size, key=row_key)
    u = jax.random.uniform(time_key, (*rows.shape, num_times))
    times = geometric_time((jnp.arange(num_times) + u) / num_times, beta, longest)
    policy = (jnp.arange(len(beta)) % len(data.num_starts))[:, None]
    length = data.length[policy, rows][..., None]
    last = rows[..., None] + jnp.minimum(times, length) - 1
    beyond: Bool[Array, "M B n"] = (times > length) & ~data.terminated[last]
    return Followed(rows, times, data.next_state[last], jnp.where(beyond, times - length, 0))
