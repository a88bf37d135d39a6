"""How much training do the ant's models need? Success of GGPI against training steps, and the models' errors.

Each budget is a training of its own, whose step size falls to zero at its end; the largest is the preset's.
"""

from dataclasses import dataclass, replace
from functools import partial

from ggpi.lab.agents import budget, planner
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import MPC, plain, planning_one_step, success
from ggpi.lab.ant.calibration import announce, calibrate
from ggpi.lab.ant.models import FitConfig, apart, models
from ggpi.lab.cells import Cells, Metrics, compute


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes and of the models."""
    preset: str = "paper"
    """How the models are trained: tiny, cpu or paper."""
    budgets: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    """Training steps, below the preset's own."""
    episodes: int = 100
    """Episodes of each agent."""
    samples: int = 100
    """Samples for each GSP of depth 2."""
    depths: tuple[int, ...] = (1, 2)
    """Depths of the plans."""


PRESETS = {
    "tiny": Config(seed=0, preset="tiny", budgets=(10,), episodes=2, samples=2),
    "cpu": Config(seed=0, preset="cpu", budgets=(100, 300, 1_000, 3_000), episodes=50, samples=50),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Success and calibration after each budget.

    Paper: Fig 19
    """
    whole = apart(config.preset, config.seed)
    fits = [replace(whole, recipe=replace(whole.recipe, steps=steps)) for steps in config.budgets] + [whole]
    targets = ant.Tasks(config.episodes, ant.REPORTED + 1_000_000 * config.seed)
    tasks: Metrics = {"plain": partial(plain, targets)}
    tasks |= {f"steps-{fit.recipe.steps}": partial(measure, config, fit, targets) for fit in fits}
    results = cells(tasks)
    return {
        "baselines": results["plain"],
        "steps": [fit.recipe.steps for fit in fits],
        "depths": config.depths,
        "episodes": config.episodes,
        "runs": [results[f"steps-{fit.recipe.steps}"] for fit in fits],
    }


def measure(config: Config, fit: FitConfig, tasks: ant.Tasks) -> Metrics:
    """How the models of one training are calibrated, then episodes of each depth and of one-step planning.

    Paper: Fig 19
    """
    ghms, ratios = models(fit), announce(calibrate(fit))
    found = {
        str(depth): success(planner(ghms, depth, budget(config.samples, depth), tasks.radius), tasks)
        for depth in config.depths
    }
    return {"success": found | {MPC: planning_one_step(fit, tasks)}, "ratios": ratios}
