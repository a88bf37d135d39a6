"""Probability paths from noise to targets, and models that follow them.

    Yₜ = aₜ y + sₜ ε,   ε ∼ N(0, I),   t from 0 (noise) to 1 (targets)

    straight      a = t              s = 1 − t
    curved        a = sin πt/2       s = cos πt/2
    diffusion     a = exp(−¼(1−t)²(β₁−β₀) − ½(1−t)β₀), s = √(1−a²), β₀ = .1, β₁ = 20: DDPM's, in continuous time

A model regresses a field on such pairs, a velocity or the noise, and a sample is carried from t = 0 to 1 by it. In
`frame.change` coordinates the paths of (x, a) and of a later (x′, a′) start from the same noise, but end δ apart,
δ = `frame.displacement`(x, x′). Adding aₜδ to Yₜ moves the second path onto the first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Num

from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.velocity import FieldNetwork

PathName = Literal["straight", "curved", "diffusion"]
BETAS = 0.1, 20.0
"""Smallest and largest rate of noise of the diffusion path."""

Times = Float[Array, "*n"]
Vectors = Float[Array, "*b d"]
Field = Callable[[Array, Array], Array]
"""Of y and t."""


class Levels(NamedTuple):
    """The factors of targets and of noise at a time, or their derivatives."""

    signal: Float[Array, "*n"]
    noise: Float[Array, "*n"]

    def mix(self, target: Float[Array, "..."], noise: Float[Array, "..."]) -> Float[Array, "..."]:
        """a y + s ε."""
        return self.signal[..., None] * target + self.noise[..., None] * noise


class Path(NamedTuple):
    """aₜ and sₜ as functions of t, and their derivatives."""

    levels: Callable[[Array], Levels]
    rates: Callable[[Array], Levels]


def _diffusion_levels(t: Times) -> Levels:
    log_signal = _log_signal(t)
    return Levels(jnp.exp(log_signal), jnp.sqrt(-jnp.expm1(2 * log_signal)))


def _diffusion_rates(t: Times) -> Levels:
    (signal, noise), (low, high) = _diffusion_levels(t), BETAS
    rate = 0.5 * (low + (1 - t) * (high - low)) * signal
    return Levels(rate, -signal * rate / noise)


def _log_signal(t: Times) -> Times:
    left, (low, high) = 1 - t, BETAS
    return -0.25 * left**2 * (high - low) - 0.5 * left * low


def diffusion_time(signal: Float[Array, "*n"]) -> Times:
    """The time at which the diffusion path has this level of the signal."""
    low, high = BETAS
    return 1 - 2 * (jnp.sqrt(low**2 / 4 - (high - low) * jnp.log(signal)) - low / 2) / (high - low)


def _curved_levels(t: Times) -> Levels:
    return Levels(jnp.sin(0.5 * jnp.pi * t), jnp.cos(0.5 * jnp.pi * t))


def _curved_rates(t: Times) -> Levels:
    return Levels(0.5 * jnp.pi * jnp.cos(0.5 * jnp.pi * t), -0.5 * jnp.pi * jnp.sin(0.5 * jnp.pi * t))


PATHS: dict[str, Path] = {
    "straight": Path(lambda t: Levels(t, 1 - t), lambda t: Levels(jnp.ones_like(t), -jnp.ones_like(t))),
    "curved": Path(_curved_levels, _curved_rates),
    "diffusion": Path(_diffusion_levels, _diffusion_rates),
}


class AbstractPathGHM(AbstractGHM):
    """A model whose samples are carried along a path from noise; see the module."""

    network: eqx.AbstractVar[FieldNetwork]
    num_steps: eqx.AbstractVar[int]
    """Solver steps of a sample."""
    path: eqx.AbstractVar[PathName]

    @abstractmethod
    def aim(self, t: Times, target: Float[Array, "..."], noise: Float[Array, "..."]) -> Float[Array, "..."]:
        """What the field at Yₜ is regressed on; linear in target and noise."""

    @abstractmethod
    def advance(self, field: Field, y: Vectors, t: Array, until: Array) -> tuple[Vectors, Vectors]:
        """One solver step from t to `until`, and the field at (y, t)."""

    @property
    def noise_size(self) -> int:
        return self.frame.target_size

    @property
    def loss_noise_size(self) -> int:
        return self.frame.target_size + 1

    @property
    def levels(self) -> Callable[[Array], Levels]:
        """aₜ and sₜ."""
        return PATHS[self.path].levels

    def encode(self, state: Float[Array, "*b D"], action: Num[Array, "..."]) -> Float[Array, "*b m"]:
        """What the field needs of (x, a)."""
        return self.network.encode(self.frame.inputs(state, action))

    def field(self, y: Vectors, t: Times, code: Float[Array, "..."]) -> Vectors:
        """The field at y and t: that of standard normal targets, corrected by the network.

        The estimates of target and noise are (a, s) y/(a² + s²) + (s, −a) n. The second part, n from the network, does
        not change a·target + s·noise = y, and needs no large factors where signal or noise are weak.

        Args:
            y: points, in the frame's coordinates.
            t: one time, or times that broadcast with the axes of y.
            code: `encode` of (x, a), with axes that broadcast with those of y.
        """
        levels = self.levels(t)
        turned = Levels(levels.noise, -levels.signal)
        along = y / (levels.signal**2 + levels.noise**2)[..., None]
        across = self.network(y, code, self.network.encode_time(t))
        return self.aim(t, levels.mix(along, across), turned.mix(along, across))

    def carry(
        self, code: Float[Array, "..."], noise: Vectors, times: Float[Array, "n"]
    ) -> tuple[Float[Array, "m *b d"], Float[Array, "m *b d"], Vectors]:
        """Points and fields at all times but the last, and the points at the last; noise is at the first."""

        def step(y: Array, span: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
            following, there = self.advance(lambda y, t: self.field(y, t, code), y, *span)
            return following, (y, there)

        end, (points, fields) = jax.lax.scan(step, noise, (times[:-1], times[1:]))
        return points, fields, end

    def push(
        self, state: Float[Array, "*b D"], action: Num[Array, "..."], noise: Vectors
    ) -> Float[Array, "*b D"]:
        times = jnp.linspace(0.0, 1.0, self.num_steps + 1)
        return self.frame.restore(state, self.carry(self.encode(state, action), noise, times)[2])

    def loss(
        self,
        state: Float[Array, "B D"],
        action: Num[Array, "B *A"],
        target: Float[Array, "B D"],
        noise: Float[Array, "B n"],
    ) -> Float[Array, "B"]:
        """The squared error of the field at one point on the path to each target; not a likelihood."""
        t, noise = ndtr(noise[:, 0]), noise[:, 1:]
        y = self.frame.change(state, target)
        found = self.field(self.levels(t).mix(y, noise), t, self.encode(state, action))
        return ((found - self.aim(t, y, noise)) ** 2).sum(-1)
