"""Zero-shot transfer of the ant: reach a target that no policy was trained for, by planning with learned models.

Four policies walk right, up, left and down. A target lies between two directions: GPI (depth 1) cannot imagine a
turn, depth 2 can. All agents have the same starts and targets. They are compared with each base policy alone, random
switching, model-predictive control on a one-step model with as much time, and an *oracle*: the same planner with
samples of the simulator instead of models, which shows what perfect models would score at each depth.

Equal budgets: as in the paper n samples for each of 16 GSPs at depth 2 and 4n for each of 4 at depth 1; and n/4 for
each of 64 at depth 3. Models are compared with simulation first: a model that is too wide makes depth 1
look perfect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ggpi.envs.ant import AntDynamics
from ggpi.lab.agents import Decide, Timed, budget, oracle, planner
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import MPC, PLAIN, plain_agent
from ggpi.lab.ant.calibration import announce, calibration, ratios
from ggpi.lab.ant.models import FITS, AnyFit, FitConfig, apart, models, without_noise
from ggpi.lab.ant.mpc import mpc
from ggpi.lab.bootstrap import mean_interval, points_apart
from ggpi.lab.cells import Cells, Metrics, Tasks, compute
from ggpi.storage.pretrained import pretrained

LEVEL = 0.9
PAIR = (1, 2)
"""The depths that Table 1 compares."""
TRIED = 4
"""First actions of each head that are scored by themselves, with a quarter of the samples each."""
VARIANTS = {"first-actions": f"best of {TRIED} first actions", "decoder-means": "decoder means"}


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    models: str = "paper"
    """How the models are trained: tiny, cpu, paper or one-network."""
    num_models: int = 5
    """Seeds of models; the first is shipped for one-network."""
    episodes: int = 100
    """Episodes of each agent, the same for all."""
    samples: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    """Samples n for each GSP of depth 2."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Depths of the plans."""
    radius: float = ant.RADIUS
    """Radius of the target."""
    oracle_episodes: int = 30
    """Episodes of the oracle: the first ones of all."""
    oracle_samples: int = 20
    """The oracle's samples n for each GSP of depth 2: one of those above, to compare with models at."""

    def __post_init__(self):
        if self.oracle_samples not in self.samples:
            raise ValueError(f"oracle_samples is one of {self.samples}, got {self.oracle_samples}")


PRESETS = {
    "tiny": Config(
        models="tiny",
        num_models=1,
        episodes=2,
        samples=(2,),
        depths=(1, 2),
        radius=2.0,
        oracle_episodes=1,
        oracle_samples=2,
    ),
    "cpu": Config(models="cpu", num_models=3),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of every agent.

    Paper: Alg 2, Fig 5, Table 1
    """
    fits = [replace(FITS[config.models], seed=s) for s in range(config.num_models)]
    found = cells({f"models/{s}": partial(calibrate, fit) for s, fit in enumerate(fits)})
    calibrated = list(found.values())
    mean_ratios = announce(_mean_ratios(calibrated))
    results = cells(_tasks(config, fits))
    return {
        "num_models": config.num_models,
        "episodes": config.episodes,
        "radius": config.radius,
        "samples": config.samples,
        "depths": config.depths,
        "oracle_samples": config.oracle_samples,
        "oracle_episodes": min(config.oracle_episodes, config.episodes),
        "calibration": calibrated,
        "ratios": mean_ratios,
        **_compared(config, results),
    }


def _tasks(config: Config, fits: Sequence[AnyFit]) -> Tasks:
    """All agents: GGPI, its variants, those without models, MPC and the oracle."""
    tasks: dict[str, Callable[[], Any]] = {
        f"depth-{depth}/samples-{n}/{s}": partial(plan, config, fit, depth, n)
        for n in config.samples[::-1]
        for depth in config.depths
        for s, fit in enumerate(fits)
    }
    for variant, depth in product(VARIANTS, PAIR):
        tasks[f"{variant}/depth-{depth}"] = partial(plan_otherwise, config, fits[0], depth, variant)
    for name in PLAIN:
        tasks[f"plain/{name.replace(' ', '-')}"] = partial(play_plain, config, name)
    for s in range(len(fits)):
        tasks[f"mpc/{s}"] = partial(plan_one_step, config, apart(config.models, s))
    for depth in config.depths:
        tasks[f"oracle/depth-{depth}"] = partial(true_plan, config, depth)
    return tasks


def _compared(config: Config, results: Metrics) -> Metrics:
    """What the tables and the figure show of all episodes."""
    seeds, depths = range(config.num_models), config.depths
    best = {
        d: [results[f"depth-{d}/samples-{max(config.samples)}/{s}"] for s in seeds] for d in {*depths, *PAIR}
    }
    return {
        "curves": {str(d): [_rate(results, config, d, n) for n in config.samples] for d in depths},
        "table": cases([[best[d][s] for d in PAIR] for s in seeds]),
        "variants": {
            f"depth {d}, {words}": summary([results[f"{variant}/depth-{d}"]])
            for variant, words in VARIANTS.items()
            for d in PAIR
        },
        "baselines": _baselines(results, config),
        "oracle": {
            str(d): summary([results[f"oracle/depth-{d}"]])
            | {
                "models_on_the_same": _same_starts(results, config, d),
                "difference": minus_oracle(results, config, d),
            }
            for d in depths
        },
        "seconds_per_plan": {
            str(d): float(np.mean([cell["seconds_per_plan"] for cell in best[d]])) for d in depths
        },
    }


def calibrate(fit: AnyFit) -> Metrics:
    """How close the models are to simulation, before any planning."""
    return calibration(models(fit))


def plan(config: Config, fit: AnyFit, depth: int, samples: int) -> Metrics:
    """Episodes of GGPI at a depth."""
    return play(config, planner(models(fit), depth, budget(samples, depth), config.radius))


def plan_otherwise(config: Config, fit: AnyFit, depth: int, variant: str) -> Metrics:
    """The same with several first actions scored, or with the decoder's means instead of samples."""
    ghms, samples = models(fit), budget(max(config.samples), depth)
    if variant == "first-actions":
        few = max(samples // TRIED, 1)
        return play(config, planner(ghms, depth, few, config.radius, first_actions=TRIED))
    return play(config, planner(without_noise(ghms), depth, samples, config.radius))


def play_plain(config: Config, name: str) -> Metrics:
    """Episodes of an agent without a model."""
    return play(config, plain_agent(name))


def plan_one_step(config: Config, fit: FitConfig) -> Metrics:
    """Episodes of model-predictive control on a one-step model."""
    return play(config, mpc(fit, config.radius))


def true_plan(config: Config, depth: int) -> Metrics:
    """Episodes of the same planner with the simulator instead of models."""
    agent = oracle(
        AntDynamics(),
        pretrained("ant-policies"),
        ant.GAMMA,
        ant.ALPHA,
        depth=depth,
        num_samples=budget(config.oracle_samples, depth),
        radius=config.radius,
    )
    return play(replace(config, episodes=config.oracle_episodes), agent)


def play(config: Config, decide: Decide) -> Metrics:
    """Steps to the target in each episode (0: not reached, −1: diverged), and the time of a decision."""
    timed = Timed(decide)
    tasks = ant.Tasks(config.episodes, ant.REPORTED + 1_000_000 * config.seed, config.radius)
    return {"steps": ant.episodes(timed, tasks).steps, "seconds_per_plan": timed.seconds_per_decision}


def _rate(results: Metrics, config: Config, depth: int, samples: int) -> Metrics:
    return summary([results[f"depth-{depth}/samples-{samples}/{s}"] for s in range(config.num_models)])


def summary(cells: list[Metrics]) -> Metrics:
    """Share of episodes that reached the target, with a bootstrap interval over all of them, and the mean steps."""
    steps = np.concatenate([cell["steps"] for cell in cells])
    reached = steps > 0
    per_model = [float(np.mean(np.array(cell["steps"]) > 0)) for cell in cells]
    mean_steps = float(steps[reached].mean()) if reached.any() else None
    return {**mean_interval(reached.astype(float), level=LEVEL), "steps": mean_steps, "per_model": per_model}


def _baselines(results: Metrics, config: Config) -> Metrics:
    found = {name: summary([results[f"plain/{name.replace(' ', '-')}"]]) for name in PLAIN}
    return found | {MPC: summary([results[f"mpc/{s}"] for s in range(config.num_models)])}


def _same_starts(results: Metrics, config: Config, depth: int) -> Metrics:
    """The learned models on the oracle's episodes, with as many samples."""
    parts = [results[f"depth-{depth}/samples-{config.oracle_samples}/{s}"] for s in range(config.num_models)]
    return summary([{"steps": part["steps"][: config.oracle_episodes]} for part in parts])


def minus_oracle(results: Metrics, config: Config, depth: int) -> dict[str, float]:
    """Targets that the models reach minus those that the oracle reaches, in points, with a 95% interval.

    Both have the same episodes and as many samples; episodes are resampled in pairs, and seeds of models.
    """
    parts = [results[f"depth-{depth}/samples-{config.oracle_samples}/{s}"] for s in range(config.num_models)]
    true = np.array(results[f"oracle/depth-{depth}"]["steps"]) > 0
    return points_apart([np.array(part["steps"][: len(true)]) > 0 for part in parts], true)


def cases(pairs: list[list[Metrics]]) -> list[dict[str, float]]:
    """Table 1: how often which agent succeeds or is faster, in percent, with intervals over all episodes.

    Paper: Table 1
    """
    one, two = (np.concatenate([pair[i]["steps"] for pair in pairs]) for i in (0, 1))
    won = one > 0, two > 0
    both = won[0] & won[1]
    kinds = [
        ~won[0] & won[1],
        both & (two < one),
        ~won[0] & ~won[1],
        both & (one < two),
        won[0] & ~won[1],
        both & (one == two),
    ]
    return [
        {key: 100 * value for key, value in mean_interval(kind.astype(float), level=LEVEL).items()}
        for kind in kinds
    ]


def _mean_ratios(found: list[Metrics]) -> dict[str, dict[str, float]]:
    each = [ratios(one) for one in found]
    return {
        horizon: {name: float(np.mean([one[horizon][name] for one in each])) for name in each[0][horizon]}
        for horizon in each[0]
    }
