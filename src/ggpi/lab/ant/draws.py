"""The ant at depth 2: success against the draws of a decision, for planners that spend them adaptively.

A draw is one jump of a model. n samples for each of the 16 GSPs of depth 2 take 20n draws, because GSPs with the same
first policy share their first jump; `exhaustive` spends them all alike, as `ant-transfer` does. The settings of halving
were chosen on other episodes.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from ggpi.lab.agents import Decide, Timed, WarmPlanner, planner
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import FITS, FitConfig, models
from ggpi.lab.ant.transfer import summary
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.planning import SequentialHalving

MEMORY, FACTOR = 0.8, 4
"""Of halving, with and without a start from the last decision."""
PER_SAMPLE = 20
"""Draws of one sample of all GSPs: 4 first jumps and 16 second ones."""
PLANNERS = ("exhaustive", "halving", "halving-memory")
"""Branch and bound is left out: it compiles for minutes here."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    preset: str = "paper"
    """How the models are trained: tiny, cpu or paper."""
    num_models: int = 5
    """Seeds of models; the first is shipped for cpu."""
    episodes: int = 100
    """Episodes of each planner, the same for all."""
    draws: tuple[int, ...] = (500, 1_000, 2_000)
    """Draws of a decision."""
    radius: float = ant.RADIUS
    """Radius of the target."""


PRESETS = {
    "tiny": Config(preset="tiny", num_models=1, episodes=2, draws=(120,), radius=2.0),
    "cpu": Config(preset="cpu", num_models=1),
    "paper": Config(draws=(250, 500, 1_000, 2_000, 4_000)),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of every planner with every budget."""
    fits = [replace(FITS[config.preset], seed=s) for s in range(config.num_models)]
    settings = list(product(config.draws[::-1], PLANNERS))
    results = cells(
        {
            f"{name}/draws-{draws}/{s}": partial(play, config, fit, name, draws)
            for (draws, name), (s, fit) in product(settings, enumerate(fits))
        }
    )
    rows = []
    for draws, name in settings:
        parts = [results[f"{name}/draws-{draws}/{s}"] for s in range(config.num_models)]
        seconds = float(np.mean([part["seconds_per_plan"] for part in parts]))
        rows.append({"planner": name, "draws": draws, "ms": 1e3 * seconds, **summary(parts)})
    return {
        "num_models": config.num_models,
        "episodes": config.episodes,
        "radius": config.radius,
        "draws": config.draws,
        "rows": rows,
    }


def play(config: Config, fit: FitConfig, name: str, draws: int) -> Metrics:
    """Steps to the target in each episode (0: not reached, −1: diverged), and the time of a decision."""
    timed = Timed(decider(config, fit, name, draws))
    tasks = ant.Tasks(config.episodes, ant.REPORTED + 1_000_000 * config.seed, config.radius)
    return {"steps": ant.episodes(timed, tasks).steps, "seconds_per_plan": timed.seconds_per_decision}


def decider(config: Config, fit: FitConfig, name: str, draws: int) -> Decide:
    """An agent of depth 2 with a budget of draws for each decision."""
    ghms = models(fit)
    halving = SequentialHalving(draws, value_samples=1, factor=FACTOR)
    match name:
        case "exhaustive":
            return planner(ghms, 2, draws // PER_SAMPLE, config.radius)
        case "halving":
            return planner(ghms, 2, 1, config.radius, planner=halving)
        case _:
            return WarmPlanner(ghms, 2, config.radius, replace(halving, memory=MEMORY))
