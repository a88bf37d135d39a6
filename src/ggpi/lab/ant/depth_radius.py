"""When does depth help the ant? Success of depth 1 to 3 against the target's radius and its distance.

A large target is hit without a plan; a small one has to be planned for, and only a GSP that turns on the way puts
its samples there.
"""

from dataclasses import dataclass, replace
from functools import partial

from ggpi.lab.agents import budget, planner
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import MPC, plain, planning_one_step, success
from ggpi.lab.ant.calibration import announce, calibrate
from ggpi.lab.ant.models import FITS, AnyFit, apart, models
from ggpi.lab.cells import Cells, Metrics, compute


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes and of the models."""
    models: str = "paper"
    """How the models are trained: tiny, cpu, paper or one-network."""
    episodes: int = 100
    """Episodes of each agent at each setting."""
    samples: int = 100
    """Samples for each GSP of depth 2."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Depths of the plans."""
    radii: tuple[float, ...] = (0.2, 0.3, 0.5, 1.0)
    """Radii of the target, at a distance of 2 to 4."""
    distances: tuple[float, ...] = (1.0, 2.0, 4.0, 6.0)
    """Distances of the target, at the headline's radius."""


PRESETS = {
    "tiny": Config(
        seed=0, models="tiny", episodes=2, samples=2, depths=(1, 2), radii=(1.0,), distances=(1.0,)
    ),
    "cpu": Config(models="cpu", episodes=50, samples=40),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of each depth at each radius and at each distance."""
    fit = replace(FITS[config.models], seed=config.seed)
    one_step = apart(config.models, config.seed)
    settings = {f"radius-{r:g}": (r, None) for r in config.radii}
    settings |= {f"distance-{d:g}": (ant.RADIUS, d) for d in config.distances}
    ratios = announce(cells({"models": partial(calibrate, fit)})["models"])
    tasks: Metrics = {}
    for name, (radius, distance) in settings.items():
        targets = ant.Tasks(config.episodes, ant.REPORTED + 1_000_000 * config.seed, radius, distance)
        for depth in config.depths:
            tasks[f"{name}/depth-{depth}"] = partial(measure, config, fit, depth, targets)
        tasks[f"{name}/plain"] = partial(plain, targets)
        tasks[f"{name}/mpc"] = partial(planning_one_step, one_step, targets)
    results = cells(tasks)
    return {
        "ratios": ratios,
        "episodes": config.episodes,
        "depths": config.depths,
        "radii": config.radii,
        "distances": config.distances,
        "success": {
            name: {str(depth): results[f"{name}/depth-{depth}"] for depth in config.depths}
            | results[f"{name}/plain"]
            | {MPC: results[f"{name}/mpc"]}
            for name in settings
        },
    }


def measure(config: Config, fit: AnyFit, depth: int, tasks: ant.Tasks) -> dict[str, float]:
    """Success at one setting."""
    agent = planner(models(fit), depth, budget(config.samples, depth), tasks.radius)
    return success(agent, tasks)
