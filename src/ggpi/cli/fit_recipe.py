"""The recipe that the options of `ggpi fit --env` describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from ggpi.ghm.vae import VAEConfig
from ggpi.learning.losses import CETD
from ggpi.learning.recipe import CPU, LOSSES, MODELS, Recipe, any_horizon

if TYPE_CHECKING:
    from ggpi.cli.fit_environment import WorldConfig

ModelName = Literal["vae", "flow", "flow-matching", "diffusion"]
LossName = Literal["cetd", "cemc", "ll2td", "mc-cfm", "td-cfm", "td-cfm-c", "td2-cfm", "td-dd", "td2-dd"]
SUITED = {
    "vae": ("cetd", "cemc"),
    "flow": ("cetd", "cemc", "ll2td"),
    "flow-matching": ("td2-cfm", "td-cfm", "td-cfm-c", "mc-cfm", "ll2td"),
    "diffusion": ("td2-dd", "td-dd"),
}
"""The losses of each model, its default first."""
WITH_STEPS = ("cetd", "td-cfm", "td-cfm-c", "td2-cfm", "td-dd", "td2-dd")
"""Losses that follow a number of recorded steps."""
BOOTSTRAPPED = WITH_STEPS[1:]
"""Those of flow matching and diffusion."""


def with_loss(config: WorldConfig) -> WorldConfig:
    """The config with the loss that its model is trained with, unless it has one that suits."""
    if config.one_network and config.model == "vae":
        config = replace(config, model="flow-matching")
    suited = SUITED[config.model]
    if config.loss == "ll2td" and config.loss not in suited:
        raise ValueError(
            f"--loss ll2td needs densities, which a {config.model} does not have; add --model flow"
        )
    if config.loss not in (None, *suited):
        raise ValueError(
            f"--model {config.model} is trained by --loss {' or '.join(suited)}, not by {config.loss}"
        )
    return replace(config, loss=config.loss or suited[0])


def recipe_of(config: WorldConfig) -> Recipe:
    """The recipe that a config describes; options that do not go together raise."""
    config = with_loss(config)
    assert config.loss is not None
    loss = LOSSES[config.loss]
    if config.n_step is not None and config.loss not in WITH_STEPS:
        raise ValueError(
            f"--n-step is an option of the losses {', '.join(WITH_STEPS)}, not of {config.loss}; leave it out"
        )
    for option, value in (("--kl-weight", config.kl_weight), ("--latent", config.latent)):
        if config.model != "vae" and value is not None:
            raise ValueError(f"{option} is an option of the model vae, not of {config.model}; leave it out")
    if config.one_network and config.loss not in BOOTSTRAPPED:
        raise ValueError(
            f"--one-network is trained by the losses {', '.join(BOOTSTRAPPED)}, not by {config.loss}; add --model "
            "flow-matching, or leave it out"
        )
    if config.consistency and not config.one_network:
        raise ValueError("--consistency relates the horizons of one network; add --one-network")
    shape = _given(kl_weight=config.kl_weight, latent=config.latent)
    recipe = replace(
        CPU,
        model=VAEConfig(**shape) if config.model == "vae" else MODELS[config.model],
        loss=loss if config.n_step is None else replace(cast(CETD, loss), n_step=config.n_step),
        steps=config.steps,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        decay=config.decay,
    )
    if config.one_network:
        any_horizon(recipe, config.gamma, config.consistency)  # raises for shares that are none
    return recipe


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
