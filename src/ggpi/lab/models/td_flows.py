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

All methods have the same data, batch size and number of updates; their times are reported. Models are compared with
simulated futures of fresh pairs (x, a) of π: exact EMD, NLL per dimension, MSE of the values of random rewards, and
the share of samples inside walls. In the maze Medium π walks a loop of 12 cells, 60 steps a lap: from every start,
futures at γ = 0.99 spread over the whole loop.
"""

import math
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ggpi.data import Transitions
from ggpi.diagnosis.distances import emds
from ggpi.diagnosis.likelihood import likelihood_each
from ggpi.diagnosis.measures import NUM_REWARDS, clouds, value_errors
from ggpi.diagnosis.samples import draw_each
from ggpi.diagnosis.truth import Truth, possible_in, simulate_pairs
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.diffusion import DiffusionConfig
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import mean_interval, paired_difference
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.models.benchmarks import WORLDS, Benchmark, check_worlds, gather, pairs
from ggpi.learning.fitting import fit
from ggpi.learning.log import Report
from ggpi.learning.losses import CETD, Loss
from ggpi.learning.recipe import LOSSES, ModelConfig, Recipe
from ggpi.learning.targets import TAIL

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
SCORED = 32
"""Futures of each start on which the NLL is taken."""
SHOWN = 200
"""Samples that the figure shows."""
FAR = 1e3
"""Where a sample that is not finite is put."""

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
    """The flow-matching model, whose width all others have, and the numbers of all trainings."""
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
        if not self.n_steps or min(self.n_steps) < 1:
            raise ValueError(f"n_steps are at least 1, got {self.n_steps}")
        if not all(0 < gamma < 1 for gamma in self.gammas):
            raise ValueError(f"gammas are between 0 and 1, got {self.gammas}")


CPU = Recipe(FlowMatchingConfig(width=128), LOSSES["td2-cfm"], steps=4_000, batch_size=256)
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
    "cpu": Config(recipe=CPU, num_shared=50_000, num_own=50_000, num_starts=16, num_samples=512, every=1_000),
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
    jobs = {f"{w}/{g:g}/truth": partial(floors, config, w, g) for w, g in problems}
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
    """What a row is compared with: other losses with as many steps; a curved path with the straight one."""
    if row.path == "curved":
        return [other for other in found if other == row._replace(path="straight")]
    rivals = [row._replace(loss=loss) for loss in BEST.get(row.loss, ())]
    return [other for other in rivals if other in found]


def _compared(row: Method, other: Method, found: dict[Method, Metrics]) -> Metrics:
    """Differences over seeds and starts; the ratio is how many times lower the row is."""
    scores = ("emd", "value_mse")
    return {
        "row": row._asdict(),
        "other": other._asdict(),
        **{
            name: paired_difference(found[row]["by_start"][name], found[other]["by_start"][name])
            for name in scores
        },
    }


def floors(config: Config, world_name: str, gamma: float) -> Metrics:
    """What a second set of true futures scores, and some of the first."""
    world, truth = benchmark(world_name), simulated(config, world_name, gamma)
    assert truth.again is not None
    scores = _scores(truth, truth.again[None], gamma)
    return {name: float(np.mean(values)) for name, values in scores.items()} | {
        "coordinates": [world.spec.names[i] for i in world.shown],
        "start": truth.state[0, list(world.shown)],
        "shown": _shown(world, truth.future[0]),
    }


def train(config: Config, world_name: str, gamma: float, method: Method) -> Metrics:
    """The scores of one kind of model along its training, and of the finished models."""
    world, truth = benchmark(world_name), simulated(config, world_name, gamma)
    data, recipe = transitions(config, world_name, gamma), recipe_of(config, world, method)
    curve: list[Metrics] = []
    latest: list[AbstractGHM] = []
    watch = Stopwatch()

    def record(report: Report) -> None:
        if report.step % config.every == 0 or report.step == recipe.steps:
            watch.stop()
            curve.append({"step": report.step, **_scores_of(report.models, truth, gamma)})
            latest[:] = [jax.tree.map(jnp.array, report.models)]  # training reuses the memory of its models
            watch.start()

    stopped = None
    try:
        watch.start()
        policies = [world.policy] * config.num_seeds
        key = jax.random.key(config.seed)
        settings = {"gamma": gamma, "alpha": (), "recipe": recipe, "spec": world.spec, "key": key}
        fit(policies, data, callbacks=[record], **settings)
    except FloatingPointError as error:
        stopped = str(error)
    watch.stop()
    return {
        "step": [point["step"] for point in curve],
        **{name: [np.mean(point[name], axis=1) for point in curve] for name in ("emd", "value_mse")},
        "by_start": {name: curve[-1][name] for name in ("emd", "value_mse")},
        **finished(config, world_name, gamma, latest[0], curve[-1]),
        "seconds": watch.wall,
        "core_seconds": watch.cores,
        "stopped": stopped,
    }


def finished(config: Config, world_name: str, gamma: float, models: AbstractGHM, point: Metrics) -> Metrics:
    """The scores at the end, with intervals over seeds; and those with other numbers of solver steps."""
    world, truth = benchmark(world_name), simulated(config, world_name, gamma)
    seeds = {name: np.mean(values, axis=1) for name, values in point.items() if name != "step"}
    few = replace(truth, future=truth.future[:, :SCORED])
    scores = likelihood_each(models, few, key=jax.random.key(config.seed))
    if "nll" in scores:
        seeds["nll"] = scores["nll"] / truth.state.shape[1]
    solver = {}
    for steps in config.solver_steps if isinstance(models, AbstractPathGHM) else ():
        again = _scores_of(replace(models, num_steps=steps), truth, gamma)
        solver[steps] = {name: mean_interval(np.mean(again[name], axis=1)) for name in ("emd", "value_mse")}
    drawn = draw_each(models, truth.state[:1], truth.action[:1], SHOWN, key=jax.random.key(1))
    return {
        "final": {name: mean_interval(_finite(values)) for name, values in seeds.items()},
        "solver": solver,
        "shown": _shown(world, _finite(drawn[0, 0])),
    }


class Stopwatch:
    """Seconds on the clock and of the cores, while it runs."""

    def __init__(self):
        self.wall = self.cores = 0.0

    def start(self) -> None:
        self._begun = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._begun[0]
        self.cores += time.process_time() - self._begun[1]


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
    return replace(config.recipe, model=model, loss=_loss(method))


def _loss(method: Method) -> Loss:
    if method.loss in ("vae", "flow"):
        return CETD(n_step=method.n_step)
    loss = LOSSES[method.loss]
    return replace(cast(CETD, loss), n_step=method.n_step) if method.n_step else loss


@cache
def benchmark(name: str) -> Benchmark:
    """The environment; one object for all cells, so that they share compiled programs."""
    return WORLDS[name]()


def transitions(config: Config, world: str, gamma: float) -> Transitions:
    """The data of all methods; own trajectories are long enough for MC-CFM."""
    length = math.ceil(1.5 * math.log(TAIL) / math.log(gamma))
    return _transitions(world, config.num_shared, config.num_own, config.num_seeds, config.seed, length)


@cache
def _transitions(world: str, shared: int, own: int, seeds: int, seed: int, length: int) -> Transitions:
    return gather(benchmark(world), shared, own, seeds, seed, length)


def simulated(config: Config, world: str, gamma: float) -> Truth:
    """Two sets of true futures of fresh pairs of π."""
    return _simulated(world, gamma, config.num_starts, config.num_samples, config.seed + 1_000)


@cache
def _simulated(name: str, gamma: float, num_starts: int, num_samples: int, seed: int) -> Truth:
    world = benchmark(name)
    state, action = pairs(world, num_starts, seed)
    future, again = (
        simulate_pairs(world.dynamics, world.policy, state, action, gamma, num_samples, seed=seed + i)
        for i in (1, 2)
    )
    return Truth(state, action, future, again, possible=possible_in(world.dynamics))


def _scores_of(models: AbstractGHM, truth: Truth, gamma: float) -> dict[str, np.ndarray]:
    count = truth.future.shape[1]
    drawn = draw_each(models, truth.state, truth.action, count, key=jax.random.key(0))
    return _scores(truth, _finite(drawn), gamma)


def _scores(truth: Truth, drawn: np.ndarray, gamma: float) -> dict[str, np.ndarray]:
    """Of samples [seeds, starts, n, D]: EMD and MSE(V), and the share of impossible ones, of each seed and start."""
    true = clouds(truth, truth.future)
    scores = {
        "emd": np.stack([emds(true, clouds(truth, futures)) for futures in drawn]),
        "value_mse": np.stack([value_errors(truth, futures, gamma) for futures in drawn]),
    }
    if truth.possible is not None:
        scores["impossible"] = 1 - truth.possible(drawn).mean(axis=-1)
    return scores


def _finite(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.asarray(values, float), nan=FAR, posinf=FAR, neginf=-FAR)


def _shown(world: Benchmark, points: np.ndarray) -> np.ndarray:
    return np.round(points[:SHOWN, list(world.shown)].astype(float), 3)
