"""Which model and which loss: VAEs and flows trained by CEMC, CETD and LL2TD, scored on true futures.

    CEMC           −log μ(X_T|x, a)                      X_T from recorded trajectories of π: no bootstrapping
    CETD           −log μ(x″|x, a), x″ ∼ T^π_β μ̄         after one recorded step the model itself is sampled
    CETD, n-step   the same after up to n recorded steps of π
    LL2TD          a squared difference of log-densities, biased (Def E.1); flows only

The paper's claims: a VAE trained by CETD ends near one trained by CEMC, though it bootstraps, and without a
target network; for flows the gap is large, and LL2TD is the worst and unstable.

At the `cpu` size one-step CETD falls short of CEMC for both models, n-step CETD closes most of the gap, and LL2TD
diverges early.

Scores are those of `ggpi.lab.models.scores`: −ELBO of VAEs at KL weight 1 whatever they were trained with, NLL of
flows, and for VAEs an importance-weighted bound of the NLL, so that the two can be compared. All on true futures
X_T ∼ μ^π_β(·|x, a) of pairs (x, a) that π visits, which no model was trained on.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np
from numpy.typing import ArrayLike

from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import mean_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.models.benchmarks import WORLDS, check_worlds, gather
from ggpi.lab.models.scores import energies, likelihoods, simulated_truth
from ggpi.learning.fitting import fit
from ggpi.learning.log import Report
from ggpi.learning.losses import CEMC, CETD, LL2TD, Loss
from ggpi.learning.recipe import CPU, PAPER, Recipe

METHODS = {
    "vae": {"cemc": "CEMC", "cetd": "CETD", "n-step": "CETD, n-step"},
    "flow": {"cemc": "CEMC", "cetd": "CETD", "ll2td": "LL2TD"},
}
RECIPE = replace(PAPER, loss=CETD(n_step=20))


@dataclass(frozen=True)
class Config:
    worlds: tuple[str, ...] = ("point-mass", "pendulum")
    """Where: point-mass, pendulum, ant."""
    beta: float = 0.8
    """Horizon β of the models."""
    recipe: Recipe = RECIPE
    """VAE, n-step CETD, and how all models are trained."""
    hidden: int = 256
    """Units of the flow's hidden layer."""
    sigma: float = 0.1
    """LL2TD's one-step standard deviation, in units of the one-step change."""
    num_shared: int = 1_000_000
    """Transitions of random switching among all policies."""
    num_own: int = 100_000
    """Transitions of the evaluated policy, for each seed."""
    num_pairs: int = 4_096
    """Pairs (x, a) that models are scored on."""
    num_seeds: int = 5
    """Models of each kind."""
    every: int = 5_000
    """Training steps between two scores: a multiple of 250."""
    seed: int = 0
    """Random seed of data and of training."""

    def __post_init__(self):
        check_worlds(self.worlds)
        if self.num_seeds < 1 or self.every < 250 or self.every % 250:
            raise ValueError(f"num_seeds ≥ 1, every a multiple of 250, got {self.num_seeds}, {self.every}")


PRESETS = {
    "tiny": Config(
        worlds=("point-mass",),
        recipe=Recipe(VAEConfig(width=32), steps=750, batch_size=64, learning_rate=3e-3),
        hidden=32,
        num_shared=6_400,
        num_own=6_400,
        num_pairs=256,
        num_seeds=1,
        every=250,
    ),
    "cpu": Config(
        recipe=replace(CPU, steps=3_000),
        num_shared=40_000,
        num_own=20_000,
        num_pairs=512,
        num_seeds=3,
        every=500,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Trains every model with every loss, all seeds at once.

    Paper: Fig 5, Fig 18, Def E.1
    """
    kinds = [(w, model, loss) for w in config.worlds for model, losses in METHODS.items() for loss in losses]
    results = cells({"/".join(kind): partial(train, config, *kind) for kind in kinds})
    return {
        "beta": config.beta,
        "steps": config.recipe.steps,
        "num_seeds": config.num_seeds,
        "worlds": config.worlds,
        "runs": [
            {"world": world, "model": model, "loss": loss, **results["/".join((world, model, loss))]}
            for world, model, loss in kinds
        ],
    }


def train(config: Config, world_name: str, model: str, loss: str) -> Metrics:
    """The scores of one kind of model along its training."""
    world = WORLDS[world_name]()
    data = gather(world, config.num_shared, config.num_own, config.num_seeds, config.seed)
    truth = simulated_truth(world, config.beta, config.num_pairs, config.seed + 1_000)
    curve: list[Metrics] = []

    def record(report: Report) -> None:
        if report.step % config.every == 0 or report.step == config.recipe.steps:
            scores = {"energy": energies(report.models, truth), **likelihoods(report.models, truth)}
            curve.append({"step": report.step, **scores})

    stopped = None
    try:
        fit(
            [world.policy] * config.num_seeds,
            data,
            gamma=config.beta,
            alpha=(),
            recipe=config.recipe,
            model=FlowConfig(hidden=config.hidden) if model == "flow" else None,
            loss=_loss(config, loss),
            spec=world.spec,
            callbacks=[record],
            key=jax.random.key(config.seed),
        )
    except FloatingPointError as error:
        stopped = str(error)
    names = [name for name in curve[0] if name != "step"]
    return {
        "step": [point["step"] for point in curve],
        **{name: [point[name] for point in curve] for name in names},
        "final": {name: mean_interval(finite(curve[-1][name])) for name in names},
        "stopped": stopped,
    }


def finite(values: ArrayLike) -> np.ndarray:
    """Scores with a large number in place of NaN and infinity."""
    return np.nan_to_num(np.asarray(values, float), nan=1e6, posinf=1e6, neginf=-1e6)


def _loss(config: Config, name: str) -> Loss:
    """CEMC, one-step CETD, the recipe's n-step CETD, or LL2TD."""
    others: dict[str, Loss] = {"cemc": CEMC(), "cetd": CETD(n_step=1), "ll2td": LL2TD(sigma=config.sigma)}
    return others.get(name, config.recipe.loss)
