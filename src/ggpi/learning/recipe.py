"""How models are trained: the numbers of a training, and two presets of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.losses import CETD, LOSSES, Loss
from ggpi.types import whole

ModelConfig = VAEConfig | FlowConfig
MODELS: dict[str, ModelConfig] = {"vae": VAEConfig(), "flow": FlowConfig()}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How models are trained."""

    model: ModelConfig = MODELS["vae"]
    loss: Loss = LOSSES["cetd"]
    steps: int = 10_000
    batch_size: int = 256
    """Transitions per model and step; the paper's 256 trajectories of 20 steps are 5120."""
    learning_rate: float = 1e-3
    decay: Literal["linear", "constant"] = "linear"
    """Whether the learning rate falls to zero over the run."""
    held_out: float = 0.05
    """Fraction of the episodes that are only used to score."""
    chunk: int = 250
    """Steps between two looks of Python at the training."""

    def __post_init__(self):
        for name in ("steps", "batch_size", "chunk"):
            whole(getattr(self, name), name)
        if not 0 <= self.learning_rate < math.inf:
            raise ValueError(f"learning_rate is a number from 0, got {self.learning_rate}")
        if self.decay not in ("linear", "constant"):
            raise ValueError(f"decay is 'linear' or 'constant', got {self.decay!r}")


PRESETS = {
    "cpu": Recipe(),
    "paper": Recipe(VAEConfig(kl_weight=20.0), CETD(n_step=1), 500_000, 256 * 20, 3e-4, "constant"),
}
