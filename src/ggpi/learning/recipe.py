"""How models are trained: model, loss and the numbers of the optimiser, with two presets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from ggpi.ghm.abstract import AbstractDensity, AbstractGHM
from ggpi.ghm.coordinates import Frame, Predict
from ggpi.ghm.diffusion import Diffusion, DiffusionConfig
from ggpi.ghm.flow_matching import FlowMatching, FlowMatchingConfig
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.timed import Timed, TimedConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.energy_losses import EnergyLoss, EnergyMC, EnergyTD
from ggpi.learning.flow_losses import MCCFM, TD2CFM, TD2DD, TDCFM, TDDD, CoupledTDCFM, PathLoss
from ggpi.learning.horizons import AnyHorizon
from ggpi.learning.losses import CEMC, CETD, LL2TD, Loss
from ggpi.types import Key, whole

T = TypeVar("T")


@runtime_checkable
class ModelConfig(Protocol):
    """The shape of a model; a frozen dataclass of your own with these two works as well."""

    @property
    def predict(self) -> Predict:
        """Whether the model predicts the change of state, or the state itself."""
        ...

    def build(self, frame: Frame, *, key: Key) -> AbstractGHM:
        """A model with fresh weights.

        Args:
            frame: normalisation of states and actions, fitted to the data of this model.
            key: the source of the weights.
        """
        ...


MODELS: dict[str, ModelConfig] = {
    "vae": VAEConfig(),
    "flow": FlowConfig(),
    "flow-matching": FlowMatchingConfig(),
    "diffusion": DiffusionConfig(),
    "timed": TimedConfig(),
}
LOSSES: dict[str, Loss] = {
    "cetd": CETD(),
    "cemc": CEMC(),
    "ll2td": LL2TD(),
    "mc-cfm": MCCFM(),
    "td-cfm": TDCFM(),
    "td-cfm-c": CoupledTDCFM(),
    "td2-cfm": TD2CFM(),
    "td-dd": TDDD(),
    "td2-dd": TD2DD(),
    "energy-mc": EnergyMC(),
    "energy-td": EnergyTD(),
}
DEFAULT_LOSSES: dict[type, str] = {
    FlowMatchingConfig: "td2-cfm",
    DiffusionConfig: "td2-dd",
    TimedConfig: "energy-td",
}
"""The losses of models that "cetd" does not train."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How models are trained."""

    model: ModelConfig = MODELS["vae"]
    """The shape of the models."""
    loss: Loss = LOSSES["cetd"]
    """What is minimised."""
    steps: int = 10_000
    """Training steps."""
    batch_size: int = 256
    """Transitions per model and step; the paper's 256 trajectories of 20 steps are 5120."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    decay: Literal["linear", "constant"] = "linear"
    """Whether the learning rate falls to zero over the run: linear or constant."""
    held_out: float = 0.05
    """Fraction of the episodes that are only used to score."""
    chunk: int = 250
    """Steps per compiled chunk; logging and checkpoints happen between chunks."""

    def __post_init__(self):
        for name in ("steps", "batch_size", "chunk"):
            whole(getattr(self, name), name)
        if not 0 <= self.learning_rate < math.inf:
            raise ValueError(f"learning_rate is a number from 0, got {self.learning_rate}")
        if self.decay not in ("linear", "constant"):
            raise ValueError(f"decay is 'linear' or 'constant', got {self.decay!r}")


CPU = Recipe()
"""For two cores: a VAE by n-step CETD, small batches, a learning rate that falls."""
PAPER = Recipe(
    model=VAEConfig(kl_weight=20.0),
    loss=CETD(n_step=1),
    steps=500_000,
    batch_size=256 * 20,
    learning_rate=3e-4,
    decay="constant",
)
"""The paper's numbers."""


def changed(
    recipe: Recipe, *, model: str | ModelConfig | None, loss: str | Loss | None, **numbers: Any
) -> Recipe:
    """The recipe with what is not None in its place; models and losses may be given by their names.

    A model of another kind than the recipe's brings its own loss, unless one is given.
    """
    model, loss = _named(model, MODELS, "model"), _named(loss, LOSSES, "loss")
    if loss is None and model is not None and type(model) is not type(recipe.model):
        loss = LOSSES[DEFAULT_LOSSES[type(model)]] if type(model) in DEFAULT_LOSSES else None
    changes = {"model": model, "loss": loss, **numbers}
    return dataclasses.replace(
        recipe, **{name: value for name, value in changes.items() if value is not None}
    )


def any_horizon(recipe: Recipe, largest: float, consistency: float = 0.0) -> Recipe:
    """The recipe for one network at all horizons up to the largest; a default that has none becomes flow matching."""
    if recipe.model == MODELS["vae"] and recipe.loss == LOSSES["cetd"]:
        recipe = changed(recipe, model="flow-matching", loss=None)
    if not isinstance(recipe.loss, PathLoss):
        raise TypeError(
            'alpha="any" trains one flow-matching or diffusion network by a loss that bootstraps: use '
            f'model="flow-matching" and loss="td2-cfm", got the loss {type(recipe.loss).__name__}'
        )
    return dataclasses.replace(recipe, loss=AnyHorizon(recipe.loss, largest, consistency))


def check_suited(loss: Loss, model: AbstractGHM) -> None:
    """Raises for a loss that a model cannot be trained with."""
    loss = loss.loss if isinstance(loss, AnyHorizon) else loss
    name, kind = type(loss).__name__, type(model).__name__
    for losses, needed, why, advice in (
        (LL2TD, AbstractDensity, "needs densities", "use a flow"),
        (EnergyLoss, Timed, "needs the time of a sample", "use the model timed"),
        (TDDD | TD2DD, Diffusion, "regresses noise", "use the model diffusion"),
        (
            TDCFM | CoupledTDCFM | TD2CFM | MCCFM,
            FlowMatching,
            "regresses velocities",
            "use the model flow-matching",
        ),
    ):
        if isinstance(loss, losses) and not isinstance(model, needed):
            raise TypeError(f"{name} {why}, which a {kind} does not have; {advice}")
    if isinstance(loss, CETD | CEMC) and isinstance(model, AbstractPathGHM | Timed):
        how, better = (
            "regression",
            "td2-cfm or td2-dd" if isinstance(loss, CETD) else "mc-cfm, td2-cfm or td2-dd",
        )
        if isinstance(model, Timed):
            how, better = "its samples", "energy-td" if isinstance(loss, CETD) else "energy-mc"
        raise TypeError(f"{name} needs likelihoods, but a {kind} is trained by {how}; use the loss {better}")


def _named(value: str | T | None, known: Mapping[str, T], what: str) -> T | None:
    if not isinstance(value, str):
        return value
    if value not in known:
        raise ValueError(f"unknown {what} {value!r}; there are {', '.join(known)}")
    return known[value]
