"""The recipe that the options of `ggpi fit --env` describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ggpi.ghm.vae import VAEConfig
from ggpi.learning.losses import CETD, LOSSES
from ggpi.learning.recipe import CPU, MODELS, Recipe

if TYPE_CHECKING:
    from ggpi.cli.fit_environment import WorldConfig

ModelName = Literal["vae", "flow"]
LossName = Literal["cetd", "cemc", "ll2td"]


def recipe_of(config: WorldConfig) -> Recipe:
    """The recipe that a config describes; options that do not go together raise."""
    if config.loss != "cetd" and config.n_step is not None:
        raise ValueError(f"--n-step is an option of the loss cetd, not of {config.loss}; leave it out")
    for option, value in (("--kl-weight", config.kl_weight), ("--latent", config.latent)):
        if config.model != "vae" and value is not None:
            raise ValueError(f"{option} is an option of the model vae, not of {config.model}; leave it out")
    if config.loss == "ll2td" and config.model == "vae":
        raise ValueError("--loss ll2td needs densities, which a VAE does not have; add --model flow")
    shape = _given(kl_weight=config.kl_weight, latent=config.latent)
    return replace(
        CPU,
        model=VAEConfig(**shape) if config.model == "vae" else MODELS[config.model],
        loss=CETD(**_given(n_step=config.n_step)) if config.loss == "cetd" else LOSSES[config.loss],
        steps=config.steps,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        decay=config.decay,
    )


def note_on_rates(recipe: Recipe, has_more_steps: bool) -> str:
    """A line for the user whose fit was continued after its learning rate had fallen; else nothing."""
    if not has_more_steps or recipe.decay == "constant":
        return ""
    return (
        "\nnote:   these steps were added to a fit whose learning rate had fallen; with --decay constant from the "
        "start,\n        more steps give bit for bit the models of a longer fit"
    )


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
