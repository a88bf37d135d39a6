"""Agents without geometric models, on the same episodes as GGPI, for every table of the ant.

Each base policy alone, random switching, and model-predictive control on a one-step model with as much time.
"""

import numpy as np

from ggpi.envs.directions import DIRECTIONS
from ggpi.lab.agents import Decide, alone, random_switching
from ggpi.lab.ant.episodes import Tasks, episodes
from ggpi.lab.ant.models import FitConfig
from ggpi.lab.ant.mpc import mpc
from ggpi.lab.bootstrap import mean_interval
from ggpi.storage.pretrained import pretrained

LONGEST_TURN = 40
"""Random switching draws turns of Uniform(1, 40) steps, as in the data."""
ALONE = tuple(f"{name} alone" for name in DIRECTIONS)
PLAIN = (*ALONE, "random switching")
"""Those that need no model."""
MPC = "MPC, one-step model"


def plain_agent(name: str) -> Decide:
    """One of `PLAIN`."""
    policies = pretrained("ant-policies")
    if name in ALONE:
        return alone(policies, ALONE.index(name))
    return random_switching(policies, LONGEST_TURN)


def success(decide: Decide, tasks: Tasks) -> dict[str, float]:
    """The share of episodes in which an agent reaches its target, with a 90% interval."""
    return mean_interval(episodes(decide, tasks).reached.astype(float), level=0.9)


def plain(tasks: Tasks) -> dict[str, dict[str, float]]:
    """Success of all agents that need no model."""
    return {name: success(plain_agent(name), tasks) for name in PLAIN}


def best_alone(found: dict[str, dict[str, float]]) -> float:
    """The largest success of a base policy alone."""
    return float(np.max([found[name]["mean"] for name in ALONE]))


def planning_one_step(fit: FitConfig, tasks: Tasks) -> dict[str, float]:
    """Success of model-predictive control on the one-step model of this training."""
    return success(mpc(fit, tasks.radius), tasks)
