"""The losses of geometric horizon models, for all models of a set at once.

    CEMC    −log μ(X_T|x, a)                                                 X_T from the record
    CETD    −log μ(x″|x, a)                                                  x″ ∼ (T^π_β)^L μ̄
    LL2TD   ( log μ(x″|x, a) − log[(1−β) N(x″; x′, σ²) + β μ̄(x″|x′, a′)] )²   x″ ∼ μ̄(·|x′, a′)

μ̄ is the current model behind a stop-gradient, or a slowly moving copy. VAEs put a bound in place of −log μ.
Each loss is a frozen dataclass: its numbers are the loss's own, `record` prepares the data and `batch` gives
the loss of every model on one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi._jax.random import quick
from ggpi.data import Transitions
from ggpi.ghm.base import AbstractDensityGHM, AbstractGHM
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.learning.targets import Record, draw_rows, follow, full_record, record
from ggpi.policies.bank import PolicyBank
from ggpi.types import Key


class Batch(NamedTuple):
    """(x, a) and targets for M models."""

    state: Float[Array, "M B D"]
    action: Array
    target: Float[Array, "M B D"]


@dataclass(frozen=True)
class CETD:
    """Cross-entropy temporal-difference learning, following at most `n_step` recorded steps.

    Paper: Eq 8
    """

    n_step: int = 20
    """Recorded steps to follow before the model is asked; 1 is the paper's loss."""
    ema_decay: float | None = None
    """If given, targets come from a running mean of past weights."""
    copy_every: int | None = None
    """If given, targets come from a copy made every so many steps."""
    needs_density: ClassVar[bool] = False

    def __post_init__(self):
        if self.n_step < 1:
            raise ValueError(f"n_step is at least 1, got {self.n_step}")

    def record(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Record:
        return record(data, num_policies, self.n_step)

    def draw(self, models, recorded: Record, bank: PolicyBank, betas, batch_size: int, *, key: Key) -> Batch:
        """Pairs and samples of (T^π_β)^L μ̄; `models` are those to ask."""
        row_key, time_key, model_key = jax.random.split(key, 3)
        rows = draw_rows(recorded, len(betas) // len(recorded.num_starts), batch_size, key=row_key)
        reached, beyond = follow(recorded, rows, betas, key=time_key)
        asked = ask(models, bank, reached, key=model_key)
        target = jnp.where(beyond[..., None], asked, reached)
        return Batch(recorded.state[rows], recorded.action[rows], target)

    def batch(self, models, slow, recorded, bank, betas, batch_size: int, *, key: Key) -> tuple[Any, Batch]:
        draw_key, loss_key = jax.random.split(key)
        batch = jax.lax.stop_gradient(self.draw(slow, recorded, bank, betas, batch_size, key=draw_key))
        return cross_entropy(models, batch, key=loss_key), batch


@dataclass(frozen=True)
class CEMC:
    """Cross-entropy on recorded futures of the evaluated policy.

    Paper: Eq 7
    """

    ema_decay: ClassVar[None] = None
    copy_every: ClassVar[None] = None
    needs_density: ClassVar[bool] = False

    def record(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Record:
        return full_record(data, num_policies, betas)

    def batch(self, models, slow, recorded, bank, betas, batch_size: int, *, key: Key) -> tuple[Any, Batch]:
        row_key, time_key, loss_key = jax.random.split(key, 3)
        rows = draw_rows(recorded, len(betas) // len(recorded.num_starts), batch_size, key=row_key)
        reached, _ = follow(recorded, rows, betas, key=time_key)
        batch = Batch(recorded.state[rows], recorded.action[rows], reached)
        return cross_entropy(models, batch, key=loss_key), batch


@dataclass(frozen=True)
class LL2TD:
    """The squared difference of log-densities of Janner et al.; its minimiser is biased.

    Paper: Def E.1
    """

    sigma: float = 0.1
    """Standard deviation of the one-step density around x′, in units of the one-step change's own scale."""
    ema_decay: ClassVar[None] = None
    copy_every: int | None = 200
    needs_density: ClassVar[bool] = True

    def record(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Record:
        return record(data, num_policies, 1)

    def batch(self, models, slow, recorded, bank, betas, batch_size: int, *, key: Key) -> tuple[Any, Batch]:
        row_key, action_key, model_key = jax.random.split(key, 3)
        rows = draw_rows(recorded, len(betas) // len(recorded.num_starts), batch_size, key=row_key)
        x, a, following = recorded.state[rows], recorded.action[rows], recorded.next_state[rows]
        acted = act(bank, following, key=action_key)
        noise = jax.random.normal(quick(model_key), (*rows.shape, models.noise_size))
        drawn = jax.lax.stop_gradient(each(lambda m, *args: m.push(*args), slow, following, acted, noise))
        drawn = jnp.where(recorded.terminated[rows][..., None], following, drawn)
        density = each(lambda m, *args: m.log_prob(*args), slow, drawn, following, acted)
        one_step = _log_normal(drawn, following, self.sigma * _scale(recorded.next_state - recorded.state))
        beta = betas[:, None]
        goal = jnp.logaddexp(jnp.log1p(-beta) + one_step, jnp.log(jnp.maximum(beta, 1e-30)) + density)
        ours = each(lambda m, *args: m.log_prob(*args), models, drawn, x, a)
        return ((ours - jax.lax.stop_gradient(goal)) ** 2).mean(axis=1), Batch(x, a, drawn)


Loss = CETD | CEMC | LL2TD
LOSSES: dict[str, Loss] = {"cetd": CETD(), "cemc": CEMC(), "ll2td": LL2TD()}


def check_supported(loss: Loss, model: AbstractGHM) -> None:
    """Refuses a loss that needs densities for a model that has none."""
    if loss.needs_density and not isinstance(model, AbstractDensityGHM):
        raise TypeError(
            f"{type(loss).__name__} needs densities, which a {type(model).__name__} has not; use a flow"
        )


def cross_entropy(models: AbstractGHM, batch: Batch, *, key: Key) -> Float[Array, "M"]:
    """The mean over a batch of each model's bound of −log μ(target|x, a)."""
    noise = jax.random.normal(quick(key), (*batch.state.shape[:2], models.loss_noise_size))
    return jax.vmap(lambda model, *args: model.losses(*args))(models, *batch, noise).mean(axis=1)


def ask(models: AbstractGHM, bank: PolicyBank, states: Float[Array, "M B D"], *, key: Key) -> Array:
    """x″ ∼ μ(·|x′, a′) with a′ ∼ π(·|x′), each model with its own policy."""
    action_key, model_key = jax.random.split(key)
    noise = jax.random.normal(quick(model_key), (*states.shape[:2], models.noise_size))
    return each(lambda m, *args: m.push(*args), models, states, act(bank, states, key=action_key), noise)


def act(bank: PolicyBank, states: Float[Array, "M B D"], *, key: Key) -> Array:
    """Actions of policy m mod K for the states of model m."""
    num_models, batch_size = states.shape[:2]
    by_policy = states.reshape(-1, len(bank), *states.shape[1:]).swapaxes(0, 1)
    actions = bank.sample_each(by_policy, key=key)
    return actions.swapaxes(0, 1).reshape(num_models, batch_size, *actions.shape[3:])


def each(function, models: AbstractGHM, *arguments: Array) -> Array:
    """function(model, …) for every model and every entry of its batch."""
    return jax.vmap(lambda model, *args: jax.vmap(lambda *one: function(model, *one))(*args))(
        models, *arguments
    )


def _scale(changes: Float[Array, "N D"]) -> Float[Array, "D"]:
    """The deviation of each number; one that never changes has the smallest scale of a frame."""
    deviation = jnp.std(changes, axis=0)
    return jnp.where(deviation > 0, deviation, SMALLEST_SCALE)


def _log_normal(x, mean, scale):
    return (-0.5 * ((x - mean) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)).sum(-1)
