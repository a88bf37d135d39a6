"""The ant's geometric horizon models: four policies, two horizons.

`FitConfig` is the paper's way: each model learns for itself, from transitions of random switching. `WalkConfig` makes
all models from one network, by the ant's symmetry, with the time of a sample as its latent variable.

The one network of seed 0 is shipped. Other models, among them those of the experiments that reproduce the paper, are
trained when they are first needed and kept in the user's cache folder, where an interrupted training resumes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import jax

from ggpi._jax.batching import part_of
from ggpi.data import Transitions
from ggpi.envs.ant import SPEC, SparseAntVector
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.symmetric import DirectedGHM, four_models
from ggpi.ghm.timed import Timed, TimedConfig
from ggpi.ghm.vae import VAE
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.walks import LENGTH, walks
from ggpi.lab.cache import kept, trained_once
from ggpi.learning.energy_losses import EnergyMC
from ggpi.learning.fitting import fit
from ggpi.learning.log import Callback
from ggpi.learning.losses import CETD
from ggpi.learning.recipe import CPU, PAPER, Recipe
from ggpi.rollout.collection import collect
from ggpi.storage.objects import save
from ggpi.storage.pretrained import names, pretrained, provenance
from ggpi.types import Policy


def transitions(num_steps: int, seed: int) -> Transitions:
    """Transitions of the shipped policies under random switching, without target."""
    env = SparseAntVector(64, target=None)
    return collect(
        env, pretrained("ant-policies"), num_steps, switch_every=40, seed=ant.DATA + 1_000_000 * seed
    )


@dataclass(frozen=True)
class FitConfig:
    """How the ant's models are trained, each for itself."""

    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 1_000_000
    """Transitions under random switching."""
    recipe: Recipe = PAPER
    """How they are trained."""


ONE_NETWORK = Recipe(
    model=TimedConfig(width=88, longest=LENGTH, places=4.0),
    loss=EnergyMC(),
    steps=110_000,
    learning_rate=2e-3,
)


@dataclass(frozen=True)
class WalkConfig:
    """How one network for the ant's four policies is trained."""

    seed: int = 0
    """Seed of data and training."""
    num_walks: int = 40_000
    """Walks of one policy, see `ggpi.lab.ant.walks`."""
    recipe: Recipe = ONE_NETWORK
    """How the network is trained."""


AnyFit = FitConfig | WalkConfig
TOWARDS_X = "towards-x"
"""The folder of the training of one network."""

VAES = {
    "tiny": FitConfig(num_transitions=6_400, recipe=replace(CPU, steps=60, batch_size=64)),
    "cpu": FitConfig(recipe=replace(CPU, loss=CETD(n_step=100), steps=12_000)),
    "paper": FitConfig(),
}
"""Preset → how models are trained as in the paper, each for itself."""
FITS: dict[str, AnyFit] = {**VAES, "one-network": WalkConfig()}
"""Preset → how models are trained."""


def apart(preset: str, seed: int) -> FitConfig:
    """How models of a preset are trained each for itself; for one network, as at the `cpu` size."""
    return replace(VAES.get(preset, VAES["cpu"]), seed=seed)


def fit_models(config: AnyFit, out: Path | None = None, callbacks: Sequence[Callback] = ()) -> GHMs:
    """The models of the four policies at both horizons, unless `out` holds them already."""
    trained = partial(train_models, config, out, callbacks)
    return trained() if out is None else trained_once(out, pretrained("ant-policies"), trained)


def train_models(config: AnyFit, out: Path | None = None, callbacks: Sequence[Callback] = ()) -> GHMs:
    """Trains the models of the four policies; a training in `out` resumes, or continues with more steps."""
    policies = pretrained("ant-policies")
    if isinstance(config, FitConfig):
        return train(config, policies, ant.GAMMA, ant.ALPHA, out, callbacks)
    towards_x = fit(
        policies[:1],
        walks(config.num_walks, config.seed),
        gamma=ant.GAMMA,
        alpha=ant.ALPHA,
        recipe=config.recipe,
        spec=SPEC,
        out=out and out / TOWARDS_X,
        callbacks=callbacks,
        key=jax.random.key(config.seed),
    )
    four = four_models(part_of(towards_x.models[0], 0))
    base = cast("Timed", four.base)
    models = tuple(replace(four, base=base.at_horizon(horizon)) for horizon in towards_x.horizons)
    ghms = replace(towards_x, policies=policies, models=models)  # one network, on the disk as well
    if out is not None:
        save(out / "models", ghms)
    return ghms


def learn(
    config: FitConfig,
    policies: Sequence[Policy],
    gamma: float,
    alpha: float | tuple[float, ...],
    out: Path | None,
    callbacks: Sequence[Callback] = (),
) -> GHMs:
    """Models of any of the policies and horizons, trained as the config says, unless `out` holds them already."""
    trained = partial(train, config, policies, gamma, alpha, out, callbacks)
    return trained() if out is None else trained_once(out, policies, trained)


def train(
    config: FitConfig,
    policies: Sequence[Policy],
    gamma: float,
    alpha: float | tuple[float, ...],
    out: Path | None,
    callbacks: Sequence[Callback] = (),
) -> GHMs:
    """Trains each model for itself; a training in `out` resumes, or continues with more steps."""
    return fit(
        policies,
        transitions(config.num_transitions, config.seed),
        gamma=gamma,
        alpha=alpha,
        recipe=config.recipe,
        spec=SPEC,
        out=out,
        callbacks=callbacks,
        key=jax.random.key(config.seed),
    )


def models(config: AnyFit) -> GHMs:
    """The models of a config: shipped, kept, or trained now."""
    if "ant-ghms" in names() and provenance("ant-ghms")["config"] == asdict(config):
        return pretrained("ant-ghms")
    return fit_models(config, kept(config, "ant-ghms"))


def without_noise(ghms: GHMs) -> GHMs:
    """The models with what remains when decoder noise is left out: means of a VAE, one state for each time."""
    return replace(ghms, models=tuple(map(_quiet, ghms.models)))


def _quiet(model: AbstractGHM) -> AbstractGHM:
    if isinstance(model, DirectedGHM):
        return replace(model, base=_quiet(model.base))
    if isinstance(model, VAE | Timed):
        return replace(model, decoder_noise=0.0)
    raise TypeError(f"a {type(model).__name__} has no decoder noise to leave out")
