"""The losses of models that follow a path from noise to targets: flow matching and diffusion.

Every loss regresses the field at points (t, Y) on values v. With β^L the probability that T exceeds the L recorded
steps that can be followed (0 if they end in a terminal state), x′ = X_L and a′ ∼ π(·|x′):

    (1 − β^L) ‖fieldₜ(aₜ y + sₜ ε|x, a) − aim‖²,     y = X_T given T ≤ L           direct
    + β^L     ‖fieldₜ(Y|x, a) − v‖²                                                bootstrapped from μ̄ at (x′, a′)

    MC-CFM                all of it direct, from recorded trajectories
    TD-CFM, TD-DD         Y on the path from fresh noise to Ȳ₁, v its aim
    TD-CFM(C)             Y on the path from the noise that Ȳ₁ came from
    TD²-CFM, TD²-DD       Y = Ȳₜ itself, v the field of μ̄ there

Ȳ is carried by a slow copy of the model; one solve gives several t. Coordinates that are predicted as a change are
moved from x′ to x, see `ggpi.ghm.paths`. Farebrother et al., "Temporal difference flows", without n steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from ggpi._jax.random import quick
from ggpi.data import Transitions
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.conditioned import over_paths
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.learning.losses import Batch, Problem, Step, act, running_mean
from ggpi.learning.shares import Share, compose, spread_times
from ggpi.learning.targets import Dataset, n_step_dataset, trajectory_dataset
from ggpi.types import Key, whole

Points = tuple[Float[Array, "*M n B d"], Float[Array, "*M n B d"]]
"""Y and v for one model, at n times."""


@dataclass(frozen=True)
class PathLoss(ABC):
    """What these losses share; a subclass says where bootstrapped points come from."""

    n_step: int = 20
    """Recorded steps that are followed before the model is sampled; 1 is TD-Flow's loss."""
    ema_decay: float = 0.999
    """Targets come from a running mean of past weights, which starts shorter: the decay is at most (1+i)/(10+i)."""
    bootstrapped: float = 0.5
    """Share of the rows of a batch that are bootstrapped; their weight does not depend on it."""
    targets_per_solve: int = 4
    """Times at which each row is trained, evenly spaced with a random offset: one solve serves all of them."""
    steps_per_target: int = 1
    """Solver steps from one of these times to the next."""
    far: tuple[int, ...] = ()
    """Places, coordinates of the state: more rows start near where the record leads far, as through a teleport."""

    def __post_init__(self):
        for name in ("n_step", "targets_per_solve", "steps_per_target"):
            whole(getattr(self, name), name)
        if not 0 <= self.ema_decay < 1:
            raise ValueError(f"ema_decay is from 0 to below 1, got {self.ema_decay}")
        if not 0 < self.bootstrapped < 1:
            raise ValueError(f"bootstrapped is a share between 0 and 1, got {self.bootstrapped}")

    @abstractmethod
    def points(
        self, slow: AbstractPathGHM, code: Float[Array, "B m"], t: Float[Array, "n"], *, key: Key
    ) -> Points:
        """Y and v of one model at times t, in the coordinates of (x′, a′), whose code is given."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return n_step_dataset(data, num_policies, self.n_step, self.far)

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        draw_key, action_key, time_key, direct_key, solve_key = jax.random.split(key, 5)
        count = min(max(1, round(self.bootstrapped * batch_size)), batch_size - 1)
        direct, ahead = compose(problem, batch_size - count, count, key=draw_key)
        acted = act(problem.bank, ahead.reached, key=action_key)
        t = spread_times(self.targets_per_solve, key=time_key)
        near = direct_points(models, problem, direct, t, key=direct_key)
        keys = jax.random.split(solve_key, len(problem.betas))
        state = problem.data.state[ahead.rows]

        def moved(slow: AbstractPathGHM, x: Array, reached: Array, acted: Array, key: Key) -> Points:
            return self.moved(slow, x, reached, acted, t, key=key)

        far = over_paths(moved, slow, state, ahead.reached, acted, keys)
        return regression(models, problem, [direct, ahead], t, [near, far])

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        if slow is None:
            return jax.tree.map(jnp.array, models)
        rate = jnp.maximum(1 - self.ema_decay, 9 / (10.0 + step))
        return running_mean(slow, models, rate)

    def moved(
        self,
        slow: AbstractPathGHM,
        state: Float[Array, "B D"],
        reached: Float[Array, "B D"],
        action: Num[Array, "B *A"],
        t: Float[Array, "n"],
        *,
        key: Key,
    ) -> Points:
        """Y and v of one model in the coordinates of x: those of x′, moved by aₜδ."""
        y, v = self.points(slow, slow.encode(reached, action), t, key=key)
        delta = slow.frame.displacement(state, reached)
        moved, faster = on_path(slow, t, delta, jnp.zeros_like(delta))
        return y + moved, v + faster

    def _noised_again(
        self, slow: AbstractPathGHM, code: Float[Array, "B m"], t: Float[Array, "n"], *, key: Key
    ) -> Points:
        """Points on the paths from fresh noise to samples."""
        solve_key, noise_key = jax.random.split(key)
        _, end = self._samples(slow, code, len(t), key=solve_key)
        return on_path(slow, t, end, jax.random.normal(quick(noise_key), (len(t), *end.shape)))

    def _coupled(
        self, slow: AbstractPathGHM, code: Float[Array, "B m"], t: Float[Array, "n"], *, key: Key
    ) -> Points:
        """Points on the paths from the noise that samples came from."""
        noise, end = self._samples(slow, code, len(t), key=key)
        return on_path(slow, t, end, noise)

    def _on_the_way(
        self, slow: AbstractPathGHM, code: Float[Array, "B m"], t: Float[Array, "n"], *, key: Key
    ) -> Points:
        """Points that samples pass, and the fields there; the solver stops at the last of them."""
        fine, ends = self.steps_per_target, jnp.concatenate([jnp.zeros(1), t])
        times = jnp.interp(jnp.arange(fine * len(t) + 1) / fine, jnp.arange(len(ends)), ends)
        points, fields, last = slow.carry(code, _noise(slow, code, key=key), times)
        y = jnp.append(points[fine::fine], last[None], axis=0)
        v = jnp.append(fields[fine::fine], slow.field(last, t[-1], code)[None], axis=0)
        return y, v

    def _samples(
        self, slow: AbstractPathGHM, code: Float[Array, "B m"], num_targets: int, *, key: Key
    ) -> tuple[Float[Array, "B d"], Float[Array, "B d"]]:
        """Noise, and the samples to which it is carried."""
        noise = _noise(slow, code, key=key)
        times = jnp.linspace(0.0, 1.0, self.steps_per_target * (num_targets + 1) + 1)
        return noise, slow.carry(code, noise, times)[2]


class TDCFM(PathLoss):
    """Flow matching to samples of μ̄, noised again with fresh noise."""

    points = PathLoss._noised_again


class CoupledTDCFM(PathLoss):
    """Flow matching to samples of μ̄, noised with the noise that they came from."""

    points = PathLoss._coupled


class TD2CFM(PathLoss):
    """Flow matching to the velocities of μ̄ at points on the way to its samples."""

    points = PathLoss._on_the_way


@dataclass(frozen=True)
class TDDD(PathLoss):
    """Diffusion to samples of μ̄, noised again with fresh noise."""

    steps_per_target: int = 2
    """Solver steps from one of these times to the next."""

    points = PathLoss._noised_again


@dataclass(frozen=True)
class TD2DD(PathLoss):
    """Diffusion to the noise that μ̄ predicts at points on the way to its samples."""

    steps_per_target: int = 2
    """Solver steps from one of these times to the next."""

    points = PathLoss._on_the_way


@dataclass(frozen=True)
class DirectLoss(ABC):
    """Recorded states alone, each at several times with fresh noise; a subclass says from which rows."""

    times_per_row: int = 4
    """Times at which each row is trained, evenly spaced with a random offset."""

    def __post_init__(self):
        whole(self.times_per_row, "times_per_row")

    @abstractmethod
    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        """As `Loss.dataset`."""

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        draw_key, time_key, noise_key = jax.random.split(key, 3)
        direct, _ = compose(problem, batch_size, 0, key=draw_key)
        t = spread_times(self.times_per_row, key=time_key)
        points = direct_points(models, problem, direct, t, key=noise_key)
        return regression(models, problem, [direct], t, [points])

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return None


class MCCFM(DirectLoss):
    """Recorded futures of the evaluated policy."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return trajectory_dataset(data, num_policies, betas)


class NextStateCFM(DirectLoss):
    """Recorded next states, for models at horizon 0."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return n_step_dataset(data, num_policies, 1)


def on_path(
    model: AbstractPathGHM, t: Float[Array, "n"], target: Float[Array, "B d"], noise: Float[Array, "..."]
) -> Points:
    """Points at times t on the paths from noise to targets, and what the field there is regressed on."""
    t, noise = t[:, None], jnp.broadcast_to(noise, (len(t), *target.shape))
    return model.levels(t).mix(target, noise), model.aim(t, target, noise)


def _noise(model: AbstractPathGHM, code: Float[Array, "B m"], *, key: Key) -> Float[Array, "B d"]:
    """Standard normal noise for each row."""
    return jax.random.normal(quick(key), (*code.shape[:-1], model.noise_size))


def direct_points(
    models: AbstractGHM, problem: Problem, direct: Share, t: Float[Array, "n"], *, key: Key
) -> Points:
    """Points on the paths from fresh noise to recorded states, for all models."""
    state = problem.data.state[direct.rows]
    noise = jax.random.normal(quick(key), (len(state), len(t), *state.shape[1:-1], models.noise_size))

    def one(model: AbstractPathGHM, state: Array, target: Array, noise: Array) -> Points:
        return on_path(model, t, model.frame.change(state, target), noise)

    return over_paths(one, models, state, direct.reached, noise)


def regression(
    models: AbstractGHM,
    problem: Problem,
    shares: Sequence[Share],
    t: Float[Array, "n"],
    points: Sequence[Points],
) -> tuple[Float[Array, "M"], Batch]:
    """The weighted squared error of each model, summed over dimensions, and the batch."""
    rows, reached, weight = (jnp.concatenate(parts, axis=1) for parts in zip(*shares, strict=True))
    y, v = (jax.lax.stop_gradient(jnp.concatenate(parts, axis=2)) for parts in zip(*points, strict=True))
    batch = Batch(problem.data.state[rows], problem.data.action[rows], reached)

    def one(model: AbstractPathGHM, state: Array, action: Array, y: Array, v: Array) -> Array:
        found = model.field(y, t[:, None], model.encode(state, action))
        return ((found - v) ** 2).sum(axis=-1).mean(axis=0)

    errors = over_paths(one, models, batch.state, batch.action, y, v)
    return (weight * errors).sum(axis=1), batch
