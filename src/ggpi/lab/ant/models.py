"""The ant's geometric horizon models: four policies, two horizons, learned from random switching.

The models of seed 0 at the `cpu` size are shipped; others are trained when they are first asked for and kept in the
user's cache folder, where an interrupted training goes on.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax

from ggpi.data import Transitions
from ggpi.envs.ant import SPEC, SparseAntVector
from ggpi.ghm.base import GHMs
from ggpi.lab.ant import episodes as ant
from ggpi.lab.cache import finished, kept
from ggpi.learning.fitting import fit
from ggpi.learning.options import arguments, recipe_of
from ggpi.rollout.collection import collect
from ggpi.storage.pretrained import names, pretrained, provenance


def transitions(num_steps: int, seed: int) -> Transitions:
    """Transitions of the shipped policies under random switching, without target."""
    env = SparseAntVector(64, target=None)
    return collect(
        env, pretrained("ant-policies"), num_steps, switch_every=40, seed=ant.DATA + 1_000_000 * seed
    )


@dataclass(frozen=True)
class FitConfig:
    """How the ant's models are trained."""

    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 1_000_000
    """Transitions under random switching."""
    steps: int = 500_000
    """Training steps."""
    batch_size: int = 5_120
    """Transitions per model and step; the paper's 256 trajectories of 20 steps are 5120."""
    learning_rate: float = 3e-4
    """Adam's step size."""
    decay: Literal["linear", "constant"] = "constant"
    """Whether the step size falls to zero over the run: linear or constant."""
    n_step: int = 1
    """Recorded steps that CETD follows before the model is asked."""
    kl_weight: float = 20.0
    """Weight of the KL term in the VAE's loss."""
    latent: int = 1
    """Latent dimensions."""


FITS = {
    "tiny": FitConfig(
        num_transitions=6_400,
        steps=60,
        batch_size=64,
        learning_rate=1e-3,
        decay="linear",
        n_step=20,
        kl_weight=1.0,
    ),
    "cpu": FitConfig(
        num_transitions=1_000_000,
        steps=12_000,
        batch_size=256,
        learning_rate=1e-3,
        decay="linear",
        n_step=100,
        kl_weight=1.0,
    ),
    "paper": FitConfig(),
}
"""Preset → how the models are trained."""


def fit_models(config: FitConfig, out: Path | None = None, **logging: Any) -> GHMs:
    """The models of the four policies at both horizons; kept in `out`, and taken up from there."""
    return learn(config, pretrained("ant-policies"), ant.GAMMA, ant.ALPHA, out, **logging)


def learn(
    config: FitConfig, policies: Sequence[Any], gamma: float, alpha: Any, out: Path | None, **logging: Any
) -> GHMs:
    """Models of any of the policies and horizons, trained as the config says, unless that is done already."""
    if out is not None and (found := finished(out, policies)):
        return found
    return train(config, policies, gamma, alpha, out, **logging)


def train(
    config: FitConfig, policies: Sequence[Any], gamma: float, alpha: Any, out: Path | None, **logging: Any
) -> GHMs:
    """Trains models as the config says; a training in `out` continues. `logging` is for `ggpi.fit`."""
    return fit(
        policies,
        transitions(config.num_transitions, config.seed),
        gamma,
        alpha,
        key=jax.random.key(config.seed),
        spec=SPEC,
        out=out,
        **arguments(recipe_of(config)),
        **logging,
    )


def models(config: FitConfig) -> GHMs:
    """The models of a config: shipped, kept, or trained now."""
    if "ant-ghms" in names() and provenance("ant-ghms")["config"] == dataclasses.asdict(config):
        return pretrained("ant-ghms")
    return fit_models(config, kept(config, "ant-ghms"))
