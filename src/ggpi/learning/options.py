"""How models are trained, as options of `ggpi fit`: what its configs share, and what `ggpi.fit` is told of it."""

from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

from ggpi.ghm.vae import VAEConfig
from ggpi.learning.losses import CETD, LOSSES
from ggpi.learning.recipe import MODELS, PRESETS, Recipe

ModelName = Literal["vae", "flow"]
LossName = Literal["cetd", "cemc", "ll2td"]


@runtime_checkable
class Training(Protocol):
    """The fields that configs of trainings have in common; None means what is usual."""

    @property
    def steps(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def decay(self) -> Literal["linear", "constant"]: ...
    @property
    def n_step(self) -> int | None: ...
    @property
    def kl_weight(self) -> float | None: ...
    @property
    def latent(self) -> int | None: ...


def recipe_of(config: Training, model: ModelName = "vae", loss: LossName = "cetd") -> Recipe:
    """The recipe that a config describes; options that do not go together raise."""
    if loss != "cetd" and config.n_step is not None:
        raise ValueError(f"--n-step is an option of the loss cetd, not of {loss}; leave it out")
    for name in ("kl_weight", "latent"):
        if model != "vae" and getattr(config, name) is not None:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} is an option of the model vae, not of {model}; leave it out")
    if LOSSES[loss].needs_density and model == "vae":
        raise ValueError(f"--loss {loss} needs densities, which a VAE does not have; add --model flow")
    chosen = {name: getattr(config, name) for name in ("steps", "batch_size", "learning_rate", "decay")}
    shape = _given(kl_weight=config.kl_weight, latent=config.latent)
    return replace(
        PRESETS["cpu"],
        model=VAEConfig(**shape) if model == "vae" else MODELS[model],
        loss=CETD(**_given(n_step=config.n_step)) if loss == "cetd" else LOSSES[loss],
        **chosen,
    )


def arguments(recipe: Recipe) -> dict[str, Any]:
    """What `ggpi.fit` is told of a recipe."""
    names = ("model", "loss", "steps", "batch_size", "learning_rate", "decay")
    return {name: getattr(recipe, name) for name in names}


def note_on_rates(config: Training, has_more_steps: bool) -> str:
    """A line for the user whose fit was continued after its learning rate had fallen; else nothing."""
    if not has_more_steps or config.decay == "constant":
        return ""
    return (
        "\nnote:   these steps were added to a fit whose learning rate had fallen; with --decay constant from the "
        "start,\n        more steps give bit for bit the models of a longer fit"
    )


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
