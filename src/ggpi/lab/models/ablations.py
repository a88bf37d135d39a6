"""What matters for a VAE model: learning rate, KL weight, latent size, and what it predicts.

The appendix names a light search: learning rates 3e-5 to 1e-3, KL weights 1 to 100. Here one setting at a time
departs from the default, and the paper's own (KL weight 20, constant rate 3e-4, one-step CETD) stands beside it.

    −ELBO    of true futures, at KL weight 1 whatever the loss's weight was
    energy   energy distance to true futures
    KL       mean KL(q ‖ p) of the latent in nats: 0 when the latent says nothing, and the model is one Gaussian

In frames of unit scale and after a few thousand steps, weights of 20 and more silence the latent altogether: the
library's default is 1. Small rates are merely slow. To predict the state itself costs much, eight latent
dimensions neither help nor hurt.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import jax

from ggpi.ghm.coordinates import Predict
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, compute
from ggpi.lab.models.benchmarks import WORLDS, check_worlds, gather
from ggpi.lab.models.losses import finite
from ggpi.lab.models.scores import energies, likelihoods, simulated_truth
from ggpi.learning.fitting import fit
from ggpi.learning.losses import CETD


@dataclass(frozen=True)
class Setting:
    """What is varied."""

    learning_rate: float = 1e-3
    """Adam's step size."""
    kl_weight: float = 1.0
    """Weight of the KL term in the loss."""
    latent: int = 1
    """Latent dimensions."""
    predict: Predict = "change"
    """The change of state, or the state itself."""
    n_step: int = 20
    """Recorded steps that CETD follows before the model is asked."""
    decay: Literal["linear", "constant"] = "linear"
    """Whether the step size falls to zero over the run."""
    batches: int = 1
    """How many times the config's batch."""
    ema_decay: float | None = None
    """If given, targets come from a running mean of past weights."""


DEFAULT = Setting()


SETTINGS = {
    "default": DEFAULT,
    **{f"rate-{rate:g}": replace(DEFAULT, learning_rate=rate) for rate in (3e-5, 1e-4, 3e-4)},
    **{f"kl-{weight}": replace(DEFAULT, kl_weight=float(weight)) for weight in (20, 50, 100)},
    "latent-8": replace(DEFAULT, latent=8),
    "state": replace(DEFAULT, predict="state"),
    "one-step": replace(DEFAULT, n_step=1),
    "one-step-batch": replace(DEFAULT, n_step=1, batches=4),
    "one-step-ema": replace(DEFAULT, n_step=1, ema_decay=0.99),
    "one-step-constant": replace(DEFAULT, n_step=1, decay="constant"),
    "paper": Setting(3e-4, 20.0, 1, "change", 1, "constant"),
}
"""The default (rate 1e-3, KL weight 1, one latent, change of state, n-step CETD), then one change at a time; and what
might help one-step CETD: a larger batch, slow targets, or harm it: a rate that does not fall."""


@dataclass(frozen=True)
class Config:
    worlds: tuple[str, ...] = ("point-mass", "pendulum")
    """Where: point-mass, pendulum."""
    settings: tuple[str, ...] = tuple(SETTINGS)
    """Which of the settings."""
    beta: float = 0.8
    """Horizon β of the models."""
    steps: int = 500_000
    """Training steps."""
    batch_size: int = 5_120
    """Transitions per model and step."""
    width: int = 128
    """Units of each hidden layer."""
    num_shared: int = 1_000_000
    """Transitions of random switching among all policies."""
    num_own: int = 100_000
    """Transitions of the evaluated policy, for each seed."""
    num_pairs: int = 4_096
    """Pairs (x, a) that models are scored on."""
    num_seeds: int = 5
    """Models of each kind."""
    seed: int = 0
    """Random seed of data and of training."""

    def __post_init__(self):
        check_worlds(self.worlds)
        unknown = [name for name in self.settings if name not in SETTINGS]
        if self.num_seeds < 1 or unknown or not self.settings:
            raise ValueError(
                f"settings are {', '.join(SETTINGS)} and num_seeds ≥ 1, got {unknown}, {self.num_seeds}"
            )


PRESETS = {
    "tiny": Config(
        worlds=("point-mass",),
        settings=("default", "kl-100"),
        steps=750,
        batch_size=64,
        width=32,
        num_shared=6_400,
        num_own=6_400,
        num_pairs=256,
        num_seeds=1,
    ),
    "cpu": Config(
        worlds=("point-mass",),
        steps=2_000,
        batch_size=256,
        num_shared=40_000,
        num_own=20_000,
        num_pairs=512,
        num_seeds=3,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> dict[str, Any]:
    """Trains models with each setting in each world.

    Paper: Fig 5
    """
    kinds = [(world, name) for world in config.worlds for name in config.settings]
    results = cells({f"{world}/{name}": partial(train, config, world, name) for world, name in kinds})
    return {
        "beta": config.beta,
        "steps": config.steps,
        "num_seeds": config.num_seeds,
        "worlds": config.worlds,
        "runs": [{"world": world, "setting": name, **results[f"{world}/{name}"]} for world, name in kinds],
    }


def train(config: Config, world_name: str, name: str) -> dict[str, Any]:
    """The final scores of one setting."""
    world, setting = WORLDS[world_name](), SETTINGS[name]
    data = gather(world, config.num_shared, config.num_own, config.num_seeds, config.seed)
    truth = simulated_truth(world, config.beta, config.num_pairs, config.seed + 1_000)
    ghms = fit(
        [world.policy] * config.num_seeds,
        data,
        config.beta,
        (),
        key=jax.random.key(config.seed),
        model=VAEConfig(config.width, 3, setting.latent, setting.kl_weight, setting.predict),
        loss=CETD(n_step=setting.n_step, ema_decay=setting.ema_decay),
        steps=config.steps,
        batch_size=setting.batches * config.batch_size,
        learning_rate=setting.learning_rate,
        decay=setting.decay,
        spec=world.spec,
    )
    models = ghms.models[config.beta]
    scores = {"energy": energies(models, truth), **likelihoods(models, truth)}
    return {name: {"seeds": values, **mean_interval(finite(values))} for name, values in scores.items()}
