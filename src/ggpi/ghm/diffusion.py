"""Diffusion: a sample is standard normal noise, denoised step by step.

    Yₜ = aₜ y + sₜ ε,   ε̂ₜ(Yₜ|x, a) is regressed on ε
    Yₜ′ = aₜ′ (Yₜ − sₜ ε̂)/aₜ + sₜ′ ε̂                                   (DDIM, deterministic)

t runs from noise at 0 to the target at 1, in continuous time. Ho et al., "Denoising diffusion probabilistic models";
Song et al., "Denoising diffusion implicit models". Such a model can be sampled, but has no density here.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
from jaxtyping import Array, Float

from ggpi.ghm.coordinates import Frame, Predict
from ggpi.ghm.paths import AbstractPathGHM, Field, PathName, Times, Vectors
from ggpi.ghm.velocity import FieldNetwork, field_network
from ggpi.types import Key, whole


@dataclass(frozen=True)
class DiffusionConfig:
    """The shape of a diffusion model, and how it is sampled."""

    width: int = 128
    """Units of each layer."""
    depth: int = 3
    """Residual layers of the network that predicts the noise."""
    num_steps: int = 20
    """DDIM steps of a sample."""
    predict: Predict = "change"
    """The change of state, or the state itself."""

    def __post_init__(self):
        for name in ("width", "depth", "num_steps"):
            whole(getattr(self, name), name)

    def build(self, frame: Frame, *, key: Key) -> Diffusion:
        """A model with fresh weights; its samples are standard normal in the frame."""
        network = field_network(frame.state_size, frame.input_size, self.width, self.depth, key=key)
        return Diffusion(frame, network, self.num_steps)


class Diffusion(AbstractPathGHM):
    """μ(x′|x, a) as standard normal noise that is denoised."""

    frame: Frame
    network: FieldNetwork
    num_steps: int = eqx.field(static=True)
    path: PathName = eqx.field(static=True, default="diffusion")

    def aim(self, t: Times, target: Float[Array, "..."], noise: Float[Array, "..."]) -> Float[Array, "..."]:
        return noise

    def advance(self, field: Field, y: Vectors, t: Array, until: Array) -> tuple[Vectors, Vectors]:
        noise, (signal, spread) = field(y, t), self.levels(t)
        return self.levels(until).mix((y - spread * noise) / signal, noise), noise
