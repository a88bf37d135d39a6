"""Training one network at all horizons: each step draws its own, and long horizons may lean on shorter ones.

Every policy is trained at several horizons per step, one of each part of [0, u_max], u = −log(1−β): evenly over the
orders of magnitude of 1/(1−β). The condition of some models is dropped, so that the network also learns the mixture
over policies; their targets still come from the model of the policy.

Horizon consistency replaces the backup of m_γ in some rows by one through a shorter horizon β ≤ γ, exact for true
models and shorter by a factor of about 1−β in its number of backups:

    m_γ = (1−γ) P + γ(1−γ)/(1−β) P^π m_β + γ(γ−β)/(1−β) P^π m_β^π m_γ

Each of its three terms is regressed as in `ggpi.learning.flow_losses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi.data import Transitions
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.conditioned import Conditioned, over_paths
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.learning.flow_losses import PathLoss, Points, direct_points, regression
from ggpi.learning.losses import Batch, Problem, Step, act
from ggpi.learning.shares import Share, spread_times
from ggpi.learning.targets import Dataset, draw_rows
from ggpi.types import Key

NUM_HORIZONS = 4
"""Horizons at which each policy is trained in one step."""


@dataclass(frozen=True)
class AnyHorizon:
    """A loss of flow matching or diffusion, at horizons that change from step to step."""

    loss: PathLoss
    """The loss at each horizon."""
    largest: float
    """The largest horizon."""
    consistency: float = 0.0
    """The share of rows that are trained through a shorter horizon."""
    unknown: float = 0.1
    """The share of models whose policy is dropped from the condition."""

    def __post_init__(self):
        if not 0 < self.largest < 1:
            raise ValueError(
                f"horizons are trained from 0 to γ, which is between 0 and 1, got {self.largest}"
            )
        if not 0 <= self.consistency < 1:
            raise ValueError(f"consistency is a share from 0 to below 1, got {self.consistency}")

    @property
    def horizons(self) -> tuple[float, ...]:
        return spread(self.largest)

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return self.loss.dataset(data, num_policies, betas)

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        horizon_key, known_key, loss_key, shorter_key = jax.random.split(key, 4)
        problem, (models, slow) = drawn_conditions(problem, [sharing(models), sharing(slow)], key=horizon_key)
        known = jax.random.bernoulli(known_key, 1 - self.unknown, problem.betas.shape)
        models = models.among(models.condition_of(*_places(problem), known.astype(jnp.float32)))
        through = round(self.consistency * batch_size)
        losses, batch = self.loss.batch(models, slow, problem, batch_size - through, key=loss_key)
        if not through:
            return losses, batch
        found = self._through_shorter(models, slow, problem, through, key=shorter_key)
        return (1 - self.consistency) * losses + self.consistency * found, batch

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return self.loss.slow_copy(slow, models, step)

    def _through_shorter(
        self, models: Conditioned, slow: Conditioned, problem: Problem, count: int, *, key: Key
    ) -> Float[Array, "M"]:
        """The loss of rows whose targets come from m_β, and from m_γ where m_β leads."""
        keys = jax.random.split(key, 8)
        data, gamma = problem.data, problem.betas
        beta = gamma * jax.random.uniform(keys[0], gamma.shape)
        shorter = slow.among(slow.condition_of(_places(problem)[0], beta))
        rows = draw_rows(data, problem.num_horizons, count, key=keys[1])
        state, following = data.state[rows], data.next_state[rows]
        t = spread_times(self.loss.targets_per_solve, key=keys[2])
        acted = act(problem.bank, following, key=keys[3])
        led = partial(self._led, t=t)
        near, middle = over_paths(
            led, shorter, state, following, acted, jax.random.split(keys[4], len(gamma))
        )
        acted = act(problem.bank, middle, key=keys[5])
        far, _ = over_paths(led, slow, state, middle, acted, jax.random.split(keys[6], len(gamma)))
        shares = [
            Share(rows, following, weight / count)
            for weight in consistency_weights(gamma[:, None], beta[:, None], data.terminated[rows])
        ]
        direct = direct_points(models, problem, shares[0], t, key=keys[7])
        return regression(models, problem, shares, t, [direct, near, far])[0]

    def _led(
        self, slow: AbstractPathGHM, state: Array, start: Array, action: Array, key: Key, *, t: Array
    ) -> tuple[Points, Float[Array, "B D"]]:
        """Points of the loss for one model from `start`, in the coordinates of `state`, and a sample of it."""
        point_key, sample_key = jax.random.split(key)
        points = self.loss.moved(slow, state, start, action, t, key=point_key)
        noise = jax.random.normal(sample_key, (*start.shape[:-1], slow.noise_size))
        times = jnp.linspace(0.0, 1.0, self.loss.targets_per_solve * self.loss.steps_per_target + 1)
        return points, slow.frame.restore(start, slow.carry(slow.encode(start, action), noise, times)[2])


def consistency_weights(
    gamma: Float[Array, "*b"], beta: Float[Array, "*b"], terminated: Array
) -> tuple[Array, Array, Array]:
    """The weights of x′, of m_β and of m_γ after m_β; all of it is x′ where the episode ends."""
    goes_on = jnp.where(terminated, 0.0, gamma)
    return 1 - goes_on, goes_on * (1 - gamma) / (1 - beta), goes_on * (gamma - beta) / (1 - beta)


def spread(largest: float) -> tuple[float, ...]:
    """The largest horizon, and the middles of the parts from which others are drawn."""
    shares = (np.arange(NUM_HORIZONS - 1) + 0.5) / (NUM_HORIZONS - 1)
    return largest, *(-np.expm1(shares * np.log1p(-largest))).tolist()


def drawn_conditions(
    problem: Problem, networks: Sequence[Conditioned], *, key: Key
) -> tuple[Problem, list[Conditioned]]:
    """The problem at fresh horizons, and networks with the conditions of its policies there."""
    betas = spread_horizons(problem, networks[0].largest, key=key)
    problem = eqx.tree_at(lambda old: old.betas, problem, betas)
    return problem, [network.among(network.condition_of(*_places(problem))) for network in networks]


def _places(problem: Problem) -> tuple[Int[Array, "M"], Float[Array, "M"]]:
    """Policy and horizon of each model."""
    return jnp.arange(len(problem.betas)) % len(problem.data.num_starts), problem.betas


def spread_horizons(problem: Problem, largest: float, *, key: Key) -> Float[Array, "M"]:
    """For every policy the largest horizon, and one from each part of the range."""
    parts, count = problem.num_horizons - 1, len(problem.data.num_starts)
    share = (jnp.arange(parts)[:, None] + jax.random.uniform(key, (parts, count))) / parts
    share = jnp.concatenate([jnp.ones((1, count)), share]).ravel()
    return -jnp.expm1(share * jnp.log1p(-jnp.float32(largest)))


def sharing(models: AbstractGHM) -> Conditioned:
    """The models, if they share a network; else raises."""
    if not isinstance(models, Conditioned):
        raise TypeError(f"horizons are drawn for a network that all share, got a {type(models).__name__}")
    return models
