"""Diffusion: a sample is standard normal noise, denoised step by step.

    Y = cos φ y + sin φ ε,   φ from π/2 (noise) to 0 (targets);   ε̂(Y|x, a) is regressed on ε
    dY/dφ = v,   v = cos φ ε̂ − sin φ ŷ = (ε̂ − sin φ Y)/cos φ

    ddim        Y′ = cos Δ Y + sin Δ v(Y)                                one evaluation per step, of first order
    midpoint    Y′ = Y + 2 sin(Δ/2) v(Y″),  Y″ a DDIM step of Δ/2        two evaluations, of second order

Both are exact for a single target. Standard normal targets have v = 0: DDIM shrinks them by cos Δ in each step, and the
midpoint not at all. A model that learns from its own samples pays for it again in every backup: if a sample keeps the
share ρ² = Π cos² Δ of the variance, that of TD-DD's fixed point is (1−β)/(1−βρ²) of what it should be.

Time t runs from noise at 0 to the target at 1. Ho et al., "Denoising diffusion probabilistic models"; Song et al.,
"Denoising diffusion implicit models". Such a model can be sampled, but has no density here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Never

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ggpi.ghm.coordinates import Frame, Predict
from ggpi.ghm.paths import AbstractPathGHM, Field, Levels, PathName, Times, Vectors, diffusion_time
from ggpi.ghm.velocity import FieldNetwork, field_network
from ggpi.types import Key, whole

DenoiserName = Literal["ddim", "midpoint"]


@dataclass(frozen=True)
class DiffusionConfig:
    """The shape of a diffusion model, and how it is sampled."""

    width: int = 128
    """Units of each layer."""
    depth: int = 3
    """Residual layers of the network that predicts the noise."""
    num_steps: int = 10
    """Solver steps of a sample."""
    solver: DenoiserName = "midpoint"
    """ddim takes one evaluation of the network per step, and shrinks samples; midpoint takes two."""
    predict: Predict = "change"
    """The change of state, or the state itself."""

    def __post_init__(self):
        for name in ("width", "depth", "num_steps"):
            whole(getattr(self, name), name)
        if self.solver not in ("ddim", "midpoint"):
            raise ValueError(f"solver is one of ddim, midpoint, got {self.solver!r}")

    def build(self, frame: Frame, *, key: Key) -> Diffusion:
        """A model with fresh weights; its samples are standard normal in the frame."""
        network = field_network(frame.target_size, frame.input_size, self.width, self.depth, key=key)
        return Diffusion(frame, network, self.num_steps, solver=self.solver)


class Diffusion(AbstractPathGHM):
    """μ(x′|x, a) as standard normal noise that is denoised."""

    frame: Frame
    network: FieldNetwork
    num_steps: int = eqx.field(static=True)
    path: PathName = eqx.field(static=True, default="diffusion")
    solver: DenoiserName = eqx.field(static=True, default="midpoint")

    def aim(self, t: Times, target: Float[Array, "..."], noise: Float[Array, "..."]) -> Float[Array, "..."]:
        return noise

    def advance(self, field: Field, y: Vectors, t: Array, until: Array) -> tuple[Vectors, Vectors]:
        here, there, noise = self.levels(t), self.levels(until), field(y, t)
        if self.solver == "ddim":
            return _denoised(y, noise, here, there), noise
        angles = [jnp.arctan2(level.noise, level.signal) for level in (here, there)]
        half = (angles[0] + angles[1]) / 2
        middle = Levels(jnp.cos(half), jnp.sin(half))
        between = _denoised(y, noise, here, middle)
        found = field(between, diffusion_time(middle.signal))
        rate = (found - middle.noise * between) / middle.signal
        return y + 2 * jnp.sin((angles[1] - angles[0]) / 2) * rate, noise

    def log_prob(self, target: object, state: object, action: object) -> Never:
        """Raises: there is no density."""
        raise TypeError(
            'a diffusion model can only be sampled; model="flow-matching" and "flow" have densities'
        )


def _denoised(y: Vectors, noise: Vectors, here: Levels, there: Levels) -> Vectors:
    """Where a step of DDIM leads, given the noise that is predicted."""
    return there.mix((y - here.noise * noise) / here.signal, noise)
