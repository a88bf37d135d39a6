"""The losses of geometric horizon models, for all models of a set at once.

    CEMC    −log μ(X_T|x, a)                                                 X_T from recorded trajectories
    CETD    −log μ(x″|x, a)                                                  x″ ∼ (T^π_β)^L μ̄
    LL2TD   ( log μ(x″|x, a) − log[(1−β) N(x″; x′, σ²) + β μ̄(x″|x′, a′)] )²   x″ ∼ μ̄(·|x′, a′)

μ̄ is the current model behind a stop-gradient, or a slowly moving copy. VAEs have a bound in place of −log μ.
Each loss is a frozen dataclass of its own settings; `Loss` is all that training needs of one, so a class of your own
with these methods works as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from ggpi._jax.batching import over_models
from ggpi._jax.densities import log_normal
from ggpi._jax.random import quick
from ggpi.data import Transitions
from ggpi.ghm.abstract import AbstractDensity, AbstractGHM
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.learning.targets import Dataset, draw_rows, follow, n_step_dataset, trajectory_dataset
from ggpi.policies.bank import PolicyBank
from ggpi.types import Key

Step = int | Int[Array, ""]


class Problem(eqx.Module):
    """What is learned: models of K policies at some horizons, M in all, horizon by horizon."""

    data: Dataset
    bank: PolicyBank
    betas: Float[Array, "M"]
    """The horizon of each model."""

    @property
    def num_horizons(self) -> int:
        return len(self.betas) // len(self.data.num_starts)


class Batch(NamedTuple):
    """(x, a) and targets for M models."""

    state: Float[Array, "M B D"]
    action: Num[Array, "M B *A"]
    target: Float[Array, "M B D"]


@runtime_checkable
class Loss(Protocol):
    """What training needs of a loss."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        """The transitions on the device; raises ValueError if nothing can be learned from them.

        Args:
            data: transitions of any behaviour.
            num_policies: how many policies are evaluated; `data.behaviour` holds their indices.
            betas: the horizons of the models.
        """
        ...

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        """The loss of each model on one batch, and the batch.

        Args:
            models: the stacked models, of which gradients are taken.
            slow: the models that targets come from: `slow_copy`, or `models` again.
            problem: data, policies and horizons.
            batch_size: transitions for each model.
            key: the source of all randomness of the step.
        """
        ...

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        """The models that the next targets come from; None if they come from the current models.

        Args:
            slow: the copy so far; None before the first step.
            models: the models after this step.
            step: the number of this step, from 0.
        """
        ...


@dataclass(frozen=True)
class CETD:
    """Cross-entropy temporal-difference learning, following at most `n_step` recorded steps.

    Paper: Eq 8
    """

    n_step: int = 20
    """Recorded steps that are followed before the model is sampled; 1 is the paper's loss."""
    ema_decay: float | None = None
    """If given, targets come from a running mean of past weights."""
    copy_every: int | None = None
    """If given, targets come from a copy made every so many steps."""

    def __post_init__(self):
        if self.n_step < 1:
            raise ValueError(f"n_step is at least 1, got {self.n_step}")

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return n_step_dataset(data, num_policies, self.n_step)

    def draw(self, models: AbstractGHM, problem: Problem, batch_size: int, *, key: Key) -> Batch:
        """Pairs and samples of (T^π_β)^L μ̄, where `models` are μ̄."""
        row_key, time_key, model_key = jax.random.split(key, 3)
        data = problem.data
        rows = draw_rows(data, problem.num_horizons, batch_size, key=row_key)
        reached, beyond = follow(data, rows, problem.betas, key=time_key)
        sampled = sample_ahead(models, problem.bank, reached, key=model_key)
        target = jnp.where(beyond[..., None], sampled, reached)
        return Batch(data.state[rows], data.action[rows], target)

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        draw_key, loss_key = jax.random.split(key)
        batch = jax.lax.stop_gradient(self.draw(slow, problem, batch_size, key=draw_key))
        return cross_entropy(models, batch, key=loss_key), batch

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return _slow_copy(slow, models, step, self.ema_decay, self.copy_every)


@dataclass(frozen=True)
class CEMC:
    """Cross-entropy on recorded futures of the evaluated policy.

    Paper: Eq 7
    """

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return trajectory_dataset(data, num_policies, betas)

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        row_key, time_key, loss_key = jax.random.split(key, 3)
        data = problem.data
        rows = draw_rows(data, problem.num_horizons, batch_size, key=row_key)
        reached, _ = follow(data, rows, problem.betas, key=time_key)
        batch = Batch(data.state[rows], data.action[rows], reached)
        return cross_entropy(models, batch, key=loss_key), batch

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return None


@dataclass(frozen=True)
class LL2TD:
    """The squared difference of log-densities of Janner et al.; its minimiser is biased.

    Paper: Def E.1
    """

    sigma: float = 0.1
    """Standard deviation of the one-step density around x′, in units of the one-step change's own scale."""
    copy_every: int | None = 200
    """Targets come from a copy made every so many steps; None for the current models."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return n_step_dataset(data, num_policies, 1)

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        row_key, action_key, model_key = jax.random.split(key, 3)
        data, bank = problem.data, problem.bank
        rows = draw_rows(data, problem.num_horizons, batch_size, key=row_key)
        x, a, following = data.state[rows], data.action[rows], data.next_state[rows]
        acted = act(bank, following, key=action_key)
        noise = jax.random.normal(quick(model_key), (*rows.shape, models.noise_size))
        drawn = jax.lax.stop_gradient(over_models(_push, slow, following, acted, noise))
        drawn = jnp.where(data.terminated[rows][..., None], following, drawn)
        density = over_models(_log_prob, slow, drawn, following, acted)
        one_step = log_normal(drawn, following, self.sigma * _scale(data.next_state - data.state))
        beta = problem.betas[:, None]
        goal = jnp.logaddexp(jnp.log1p(-beta) + one_step, jnp.log(jnp.maximum(beta, 1e-30)) + density)
        ours = over_models(_log_prob, models, drawn, x, a)
        return ((ours - jax.lax.stop_gradient(goal)) ** 2).mean(axis=1), Batch(x, a, drawn)

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return _slow_copy(slow, models, step, None, self.copy_every)


def cross_entropy(models: AbstractGHM, batch: Batch, *, key: Key) -> Float[Array, "M"]:
    """The mean over a batch of each model's bound of −log μ(target|x, a)."""
    noise = jax.random.normal(quick(key), (*batch.state.shape[:2], models.loss_noise_size))
    return jax.vmap(lambda model, *args: model.loss(*args))(models, *batch, noise).mean(axis=1)


def sample_ahead(
    models: AbstractGHM, bank: PolicyBank, states: Float[Array, "M B D"], *, key: Key
) -> Float[Array, "M B D"]:
    """x″ ∼ μ(·|x′, a′) with a′ ∼ π(·|x′), each model with its own policy."""
    action_key, model_key = jax.random.split(key)
    noise = jax.random.normal(quick(model_key), (*states.shape[:2], models.noise_size))
    return over_models(_push, models, states, act(bank, states, key=action_key), noise)


def act(bank: PolicyBank, states: Float[Array, "M B D"], *, key: Key) -> Num[Array, "M B *A"]:
    """Actions of policy m mod K for the states of model m."""
    num_models, batch_size = states.shape[:2]
    by_policy = states.reshape(-1, len(bank), *states.shape[1:]).swapaxes(0, 1)
    actions = bank.sample_each(by_policy, key=key)
    return actions.swapaxes(0, 1).reshape(num_models, batch_size, *actions.shape[3:])


def _push(model: AbstractGHM, state: Array, action: Array, noise: Array) -> Array:
    return model.push(state, action, noise)


def _log_prob(model: AbstractDensity, target: Array, state: Array, action: Array) -> Array:
    return model.log_prob(target, state, action)


def _slow_copy(
    slow: AbstractGHM | None,
    models: AbstractGHM,
    step: Step,
    ema_decay: float | None,
    copy_every: int | None,
) -> AbstractGHM | None:
    """A running mean of the weights, or a copy made every so many steps; at first the models themselves."""
    if ema_decay is None and copy_every is None:
        return None
    if slow is None:
        return jax.tree.map(jnp.array, models)
    if ema_decay is not None:
        return running_mean(slow, models, 1 - ema_decay)
    is_due = (step + 1) % (copy_every or 1) == 0
    return jax.tree.map(lambda old, new: jnp.where(is_due, new, old), slow, models)


def running_mean(slow: AbstractGHM, models: AbstractGHM, rate: float | Float[Array, ""]) -> AbstractGHM:
    """The slow copy, moved towards the models; what both have in common, such as their frames, stays bit for bit."""
    return jax.tree.map(lambda old, new: old + rate * (new - old), slow, models)


def _scale(changes: Float[Array, "N D"]) -> Float[Array, "D"]:
    """The standard deviation of each coordinate; one that never changes has the smallest scale of a frame."""
    deviation = jnp.std(changes, axis=0)
    return jnp.where(deviation > 0, deviation, SMALLEST_SCALE)
