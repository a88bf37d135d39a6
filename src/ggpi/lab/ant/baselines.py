"""Agents without geometric models, on the same episodes as GGPI: they stand in every table of the ant.

Each base policy alone, random switching, and model-predictive control on a one-step model with as much time.
"""

from functools import partial
from typing import Any

import numpy as np

from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.models import FitConfig
from ggpi.lab.ant.mpc import mpc
from ggpi.lab.bootstrap import mean_interval

PLAIN = {f"{name} alone": partial(ant.alone, k) for k, name in enumerate(ant.NAMES)} | {
    "random switching": ant.random_switching
}
"""Those that need no model."""
MPC = "MPC, one-step model"


def success(decide: ant.Decide, *episodes: Any) -> dict[str, float]:
    """The share of episodes in which an agent reaches its target, with a 90% interval."""
    return mean_interval(ant.episodes(decide, *episodes).reached.astype(float), level=0.9)


def plain(*episodes: Any) -> dict[str, dict[str, float]]:
    """Success of all agents that need no model; arguments are those of `ant.episodes`."""
    return {name: success(make(), *episodes) for name, make in PLAIN.items()}


def best_alone(found: dict[str, dict[str, float]]) -> float:
    """The largest success of a base policy alone."""
    return float(np.max([found[f"{name} alone"]["mean"] for name in ant.NAMES]))


def planning_one_step(fit: FitConfig, radius: float, *episodes: Any) -> dict[str, float]:
    """Success of model-predictive control on the one-step model of this training."""
    return success(mpc(fit, radius), *episodes)
