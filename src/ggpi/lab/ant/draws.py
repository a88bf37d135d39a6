"""The ant: success against the draws of a decision, for plans of depth 1 to 3, adaptive planners and the closed loop.

A draw is one jump of a model. n samples for each of the 16 GSPs of depth 2 take 20n draws, because GSPs with the same
first policy share their first jump; `exhaustive` spends them all alike, as `ant-transfer` does. The settings of halving
were chosen on other episodes.

    depth-1, depth-3   plans of another depth, with as many draws
    closed-loop        one jump of every policy, and values of a jumpy graph that is built once; those of the default
                       sizes, from states of the data
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import jax
import numpy as np

from ggpi.lab.agents import Decide, Timed, WarmPlanner, closed_loop, planner
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import FITS, AnyFit, FitConfig, models, transitions
from ggpi.lab.ant.transfer import summary
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.planning import JumpyGraph, SequentialHalving
from ggpi.planning.graph_building import jumpy_graph

MEMORY, FACTOR = 0.8, 4
"""Of halving, with and without a start from the last decision."""
PER_SAMPLE = {1: 4, 2: 20, 3: 84}
"""Draws of one sample of all GSPs of a depth: 4 first jumps, 16 second ones, 64 third ones."""
PLANNERS = {
    "exhaustive": "exhaustive, depth 2",
    "halving": "halving, depth 2",
    "halving-memory": "halving with memory, depth 2",
    "depth-1": "exhaustive, depth 1",
    "depth-3": "exhaustive, depth 3",
    "closed-loop": "closed loop",
}
"""Branch and bound is left out: it compiles for minutes here."""
LANDMARKS_FROM = 200_000
"""Transitions whose states are landmarks of the closed loop."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes."""
    models: str = "paper"
    """How the models are trained: tiny, cpu, paper or one-network."""
    num_models: int = 5
    """Seeds of models; the first is shipped for one-network."""
    episodes: int = 100
    """Episodes of each planner, the same for all."""
    draws: tuple[int, ...] = (500, 1_000, 2_000)
    """Draws of a decision."""
    planners: tuple[str, ...] = ("exhaustive", "halving", "halving-memory")
    """Of exhaustive, halving, halving-memory, depth-1, depth-3, closed-loop."""
    radius: float = ant.RADIUS
    """Radius of the target."""

    def __post_init__(self):
        if not self.planners or not set(self.planners) <= set(PLANNERS):
            raise ValueError(f"planners are some of {list(PLANNERS)}, got {list(self.planners)}")


PRESETS = {
    "tiny": Config(models="tiny", num_models=1, episodes=2, draws=(120,), radius=2.0),
    "cpu": Config(models="cpu", num_models=1),
    "paper": Config(draws=(250, 500, 1_000, 2_000, 4_000)),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of every planner with every budget."""
    fits = [replace(FITS[config.models], seed=s) for s in range(config.num_models)]
    settings = list(product(config.draws[::-1], config.planners))
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


def play(config: Config, fit: AnyFit, name: str, draws: int) -> Metrics:
    """Steps to the target in each episode (0: not reached, −1: diverged), and the time of a decision."""
    timed = Timed(decider(config, fit, name, draws))
    tasks = ant.Tasks(config.episodes, ant.REPORTED + 1_000_000 * config.seed, config.radius)
    return {"steps": ant.episodes(timed, tasks).steps, "seconds_per_plan": timed.seconds_per_decision}


def decider(config: Config, fit: AnyFit, name: str, draws: int) -> Decide:
    """An agent with a budget of draws for each decision."""
    ghms = models(fit)
    halving = SequentialHalving(draws, value_samples=1, factor=FACTOR)
    match name:
        case "closed-loop":
            return closed_loop(ghms, graph_of(fit), draws // len(ghms.policies), config.radius)
        case "halving":
            return planner(ghms, 2, 1, config.radius, planner=halving)
        case "halving-memory":
            return WarmPlanner(ghms, 2, config.radius, replace(halving, memory=MEMORY))
        case _:
            depth = 2 if name == "exhaustive" else int(name.removeprefix("depth-"))
            return planner(ghms, depth, draws // PER_SAMPLE[depth], config.radius)


@lru_cache(maxsize=1)
def graph_of(fit: AnyFit) -> JumpyGraph:
    """The graph of the models' jumps, from states of their data."""
    count = min(LANDMARKS_FROM, fit.num_transitions) if isinstance(fit, FitConfig) else LANDMARKS_FROM
    states = transitions(count, fit.seed).state
    return jumpy_graph(models(fit), states, key=jax.random.key(fit.seed))
