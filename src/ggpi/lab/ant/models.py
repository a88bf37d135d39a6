"""The ant's geometric horizon models: four policies, two horizons, learned from random switching.

The models of seed 0 at the `cpu` size are shipped; others are trained when they are first needed and kept in the
user's cache folder, where an interrupted training resumes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import jax

from ggpi.data import Transitions
from ggpi.envs.ant import SPEC, SparseAntVector
from ggpi.ghm.base import GHMs
from ggpi.lab.ant import episodes as ant
from ggpi.lab.cache import kept, trained_once
from ggpi.learning.fitting import fit
from ggpi.learning.log import Callback
from ggpi.learning.losses import CETD
from ggpi.learning.recipe import CPU, PAPER, Recipe
from ggpi.rollout.collection import collect
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
    """How the ant's models are trained."""

    seed: int = 0
    """Seed of data and training."""
    num_transitions: int = 1_000_000
    """Transitions under random switching."""
    recipe: Recipe = PAPER
    """How they are trained."""


FITS = {
    "tiny": FitConfig(num_transitions=6_400, recipe=replace(CPU, steps=60, batch_size=64)),
    "cpu": FitConfig(recipe=replace(CPU, loss=CETD(n_step=100), steps=12_000)),
    "paper": FitConfig(),
}
"""Preset → how the models are trained."""


def fit_models(config: FitConfig, out: Path | None = None) -> GHMs:
    """The models of the four policies at both horizons; a training in `out` resumes."""
    return learn(config, pretrained("ant-policies"), ant.GAMMA, ant.ALPHA, out)


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
    """Trains models as the config says; a training in `out` resumes, or continues with more steps."""
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


def models(config: FitConfig) -> GHMs:
    """The models of a config: shipped, kept, or trained now."""
    if "ant-ghms" in names() and provenance("ant-ghms")["config"] == asdict(config):
        return pretrained("ant-ghms")
    return fit_models(config, kept(config, "ant-ghms"))
