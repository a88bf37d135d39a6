"""Long horizons: flow matching and diffusion by temporal differences, against VAEs and spline flows.

    VAE, spline flow     CETD: a target x″ ∼ (T^π_γ)^L μ̄ is sampled, and its likelihood raised
    MC-CFM               flow matching on recorded futures X_T: no bootstrapping
    TD-CFM               flow matching on samples of the model itself, noised again
    TD-CFM(C)            the same with the noise that a sample came from
    TD²-CFM              regression on the model's own field along the way to a sample
    TD-DD, TD²-DD        diffusion in place of flow matching (options)

Each but MC-CFM follows one recorded step or n of them before it bootstraps; one-step is compared with one-step and
n-step with n-step. Farebrother et al., "Temporal difference flows", report for one step, γ = 0.99 and 3 million
updates that TD²-CFM has a third of the EMD of TD-CFM and a fortieth of its MSE(V) (their Table 1), and that on curved
paths the coupled loss breaks while TD² does not (their Table 2).

All methods have the same data, batch size, updates and slow copies. Models are compared with simulated futures of fresh
pairs (x, a) of π: exact EMD, NLL per dimension, MSE of the values of random rewards, share of samples inside walls. In
the maze Medium π walks a loop of 12 cells, 60 steps a lap: at γ = 0.99 futures spread over the whole loop.
"""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp

from ggpi.diagnosis.measures import NUM_REWARDS
from ggpi.diagnosis.samples import draw_each
from ggpi.diagnosis.truth import Truth
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.diffusion import DiffusionConfig
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import paired_difference
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.models.benchmarks import Benchmark, check_worlds
from ggpi.lab.models.td_flows_scores import (
    SHOWN,
    Scores,
    Stopwatch,
    benchmark,
    check_recorded,
    finished,
    floors,
    points,
    scores_of,
    transitions,
    true_clouds,
)
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM, PathLoss
from ggpi.learning.log import Report
from ggpi.learning.losses import CETD, Loss
from ggpi.learning.recipe import LOSSES, ModelConfig, Recipe

NAMES = {
    "vae": "VAE",
    "flow": "spline flow",
    "mc-cfm": "MC-CFM",
    "td-cfm": "TD-CFM",
    "td-cfm-c": "TD-CFM(C)",
    "td2-cfm": "TD²-CFM",
    "td-dd": "TD-DD",
    "td2-dd": "TD²-DD",
}
CURVED = ("td-cfm-c", "td2-cfm")
"""Losses that are also trained on curved paths, with the first of `n_steps`."""
BEST = {"td2-cfm": ("vae", "flow", "td-cfm", "td-cfm-c"), "td2-dd": ("td-dd",)}
"""Which losses are compared with which."""
COMPARED = ("emd", "value_mse")
"""Scores that are compared pair by pair."""

TD_FLOW = Recipe(
    FlowMatchingConfig(width=512),
    LOSSES["td2-cfm"],
    steps=3_000_000,
    batch_size=1024,
    learning_rate=1e-4,
    decay="constant",
)
"""Sizes of TD-Flow's experiments with one policy."""


@dataclass(frozen=True)
class Config:
    worlds: tuple[str, ...] = ("medium-maze",)
    """Where: point-mass, pendulum, ant, umaze, medium-maze."""
    gammas: tuple[float, ...] = (0.99,)
    """Horizons γ of the models."""
    losses: tuple[str, ...] = ("vae", "flow", "mc-cfm", "td-cfm", "td-cfm-c", "td2-cfm")
    """What is trained; vae and flow by CETD; td-dd and td2-dd are diffusion models."""
    n_steps: tuple[int, ...] = (1, 50)
    """Recorded steps that are followed before a model is sampled."""
    paths: tuple[Literal["straight", "curved"], ...] = ("straight", "curved")
    """Paths of flow matching; curved ones only for td-cfm-c and td2-cfm."""
    recipe: Recipe = TD_FLOW
    """The flow-matching model, whose width all others have, and the numbers of all trainings. The loss has the settings
    of all others, and CETD its slow copy; its n_step is that of a row."""
    num_shared: int = 1_000_000
    """Transitions of random switching among all policies."""
    num_own: int = 1_000_000
    """Transitions of the evaluated policy, for each seed."""
    num_starts: int = 64
    """Pairs (x, a) at which models are compared with the truth."""
    num_samples: int = 2_048
    """Samples and true futures of each; the EMD takes their cube in time."""
    solver_steps: tuple[int, ...] = (1, 2, 5, 10, 20)
    """Steps of the solver with which finished models are sampled once more."""
    num_seeds: int = 3
    """Models of each kind."""
    every: int = 250_000
    """Updates between two scores: a multiple of 250."""
    seed: int = 0
    """Random seed of data and of training."""

    def __post_init__(self):
        check_worlds(self.worlds)
        if self.num_seeds < 1 or self.every < 250 or self.every % 250:
            raise ValueError(f"num_seeds ≥ 1, every a multiple of 250, got {self.num_seeds}, {self.every}")
        unknown = [loss for loss in self.losses if loss not in NAMES]
        if unknown or not self.losses:
            raise ValueError(f"losses are among {', '.join(NAMES)}, got {self.losses}")
        if not self.n_steps or min(self.n_steps + self.solver_steps) < 1:
            raise ValueError(f"n_steps, solver_steps: at least 1, got {self.n_steps}, {self.solver_steps}")
        if not all(0 < gamma < 1 for gamma in self.gammas):
            raise ValueError(f"gammas are between 0 and 1, got {self.gammas}")


CPU = Recipe(FlowMatchingConfig(width=128), TD2CFM(ema_decay=0.95), steps=6_000, batch_size=256)
"""Slow copies follow 50 times as fast as TD-Flow's, because there are thousands of updates, not millions."""
PRESETS = {
    "tiny": Config(
        worlds=("point-mass",),
        gammas=(0.9,),
        losses=("vae", "mc-cfm", "td-cfm", "td2-cfm"),
        n_steps=(1, 10),
        paths=("straight",),
        recipe=replace(CPU, model=FlowMatchingConfig(width=32, depth=2), steps=750, learning_rate=3e-3),
        num_shared=6_400,
        num_own=6_400,
        num_starts=4,
        num_samples=64,
        solver_steps=(1, 10),
        num_seeds=2,
        every=250,
    ),
    "cpu": Config(recipe=CPU, num_shared=50_000, num_own=50_000, num_starts=16, num_samples=512, every=1_500),
    "paper": Config(),
}


class Method(NamedTuple):
    """One row of the tables."""

    loss: str
    n_step: int
    """0 for MC-CFM, which follows all recorded steps."""
    path: str

    @property
    def cell(self) -> str:
        return f"{self.loss}-{self.n_step}-{self.path}"


def methods(config: Config) -> list[Method]:
    """All rows: on straight paths for each number of steps, then on curved ones."""
    rows = [
        Method(loss, n, "straight")
        for n in config.n_steps
        for loss in config.losses
        if loss != "mc-cfm" and "straight" in config.paths
    ]
    rows += [Method(loss, 0, "straight") for loss in config.losses if loss == "mc-cfm"]
    curved = [loss for loss in config.losses if loss in CURVED and "curved" in config.paths]
    return rows + [Method(loss, config.n_steps[0], "curved") for loss in curved]


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Trains every model with every loss, all seeds at once."""
    problems, rows = [(world, gamma) for world in config.worlds for gamma in config.gammas], methods(config)
    if "mc-cfm" in config.losses:
        check_recorded(problems)
    jobs = {f"{w}/{g:g}/truth": partial(floor, config, w, g) for w, g in problems}
    jobs |= {f"{w}/{g:g}/{row.cell}": partial(train, config, w, g, row) for row in rows for w, g in problems}
    results = cells(jobs)
    return {
        "steps": config.recipe.steps,
        "num_seeds": config.num_seeds,
        "num_starts": config.num_starts,
        "num_samples": config.num_samples,
        "num_rewards": NUM_REWARDS,
        "problems": [
            _problem(w, g, results[f"{w}/{g:g}/truth"], {r: results[f"{w}/{g:g}/{r.cell}"] for r in rows})
            for w, g in problems
        ],
    }


def _problem(world: str, gamma: float, truth: Metrics, found: dict[Method, Metrics]) -> Metrics:
    """All numbers of one environment and horizon."""
    return {
        "world": world,
        "gamma": gamma,
        "truth": truth,
        "runs": [row._asdict() | {"name": NAMES[row.loss]} | result for row, result in found.items()],
        "compared": [_compared(row, other, found) for row in found for other in _others(row, found)],
    }


def _others(row: Method, found: dict[Method, Metrics]) -> list[Method]:
    """Other losses with as many steps; for a curved path the straight one."""
    if row.path == "curved":
        return [other for other in found if other == row._replace(path="straight")]
    rivals = [row._replace(loss=loss) for loss in BEST.get(row.loss, ())]
    return [other for other in rivals if other in found]


def _compared(row: Method, other: Method, found: dict[Method, Metrics]) -> Metrics:
    """Differences over seeds and starts; the ratio is how many times lower the row is."""
    return {
        "row": row._asdict(),
        "other": other._asdict(),
        **{
            name: paired_difference(found[row]["by_start"][name], found[other]["by_start"][name])
            for name in COMPARED
        },
    }


def truth_of(config: Config, world: str, gamma: float) -> Truth:
    return true_clouds(world, gamma, config.num_starts, config.num_samples, config.seed + 1_000)


def floor(config: Config, world: str, gamma: float) -> Metrics:
    """What true futures score."""
    return floors(world, gamma, truth_of(config, world, gamma))


def train(config: Config, world_name: str, gamma: float, method: Method) -> Metrics:
    """The scores of one kind of model along its training, and of the finished models."""
    world, truth, seeds = benchmark(world_name), truth_of(config, world_name, gamma), config.num_seeds
    data = transitions(world_name, gamma, config.num_shared, config.num_own, seeds, config.seed)
    recipe, key = recipe_of(config, world, method), jax.random.key(config.seed)
    curve: dict[int, Scores] = {}
    latest: list[AbstractGHM] = []
    watch = Stopwatch()

    def record(report: Report) -> None:
        if report.step % config.every == 0 or report.step == recipe.steps:
            watch.stop()
            curve[report.step] = scores_of(report.models, truth, gamma)
            latest[:] = [jax.tree.map(jnp.array, report.models)]  # training reuses the memory of its models
            watch.start()

    stopped = None
    watch.start()
    try:
        settings = {"gamma": gamma, "alpha": (), "recipe": recipe, "spec": world.spec, "key": key}
        fit([world.policy] * seeds, data, callbacks=[record], **settings)
    except FloatingPointError as error:
        stopped = str(error)
    watch.stop()
    (models,), last = latest, curve[max(curve)]
    drawn = draw_each(models, truth.state[:1], truth.action[:1], SHOWN, key=jax.random.key(1))
    return {
        "step": list(curve),
        **{name: [found[name].mean(axis=1) for found in curve.values()] for name in COMPARED},
        "by_start": {name: last[name] for name in COMPARED},
        **finished(models, truth, gamma, last, config.solver_steps),
        "shown": points(world_name, drawn[0, 0]),
        "seconds": watch.wall,
        "core_seconds": watch.cores,
        "stopped": stopped,
    }


def recipe_of(config: Config, world: Benchmark, method: Method) -> Recipe:
    """The recipe with a method's model, loss and path; all models are of one width."""
    shape = cast(FlowMatchingConfig, config.recipe.model)
    others: dict[str, ModelConfig] = {
        "vae": VAEConfig(width=shape.width, predict=world.predict),
        "flow": FlowConfig(hidden=shape.width, predict=world.predict),
        "td-dd": DiffusionConfig(width=shape.width, depth=shape.depth, predict=world.predict),
    }
    others["td2-dd"] = others["td-dd"]
    path = cast(Literal["straight", "curved"], method.path)
    model = others.get(method.loss, replace(shape, path=path, predict=world.predict))
    return replace(config.recipe, model=model, loss=_loss(config, method))


def _loss(config: Config, method: Method) -> Loss:
    """A loss of flow matching or diffusion, or CETD, with the settings of the recipe's loss."""
    loss, settings = LOSSES.get(method.loss), cast(PathLoss, config.recipe.loss)
    if loss is None:
        return CETD(method.n_step, settings.ema_decay)
    if not isinstance(loss, PathLoss):
        return loss
    own: dict[str, Any] = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return replace(type(loss)(**own), n_step=method.n_step)
