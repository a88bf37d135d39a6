"""What the agents plan and what they do: GPI and depth-2 GGPI from the same start.

Left, the models' samples at the first step: for every GSP of depth 1, the states after a geometric time; at depth
2, both segments of the best plan. Then samples along the episode, and the whole trajectory, blue to red with time.
The green disc is the target with the boundary of its reward. The film shows both ants side by side.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from ggpi.agent.agent import GGPIAgent, Plan
from ggpi.envs.ant import SparseAnt
from ggpi.lab.agents import budget, planner
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.baselines import plain
from ggpi.lab.ant.calibration import announce, calibrate
from ggpi.lab.ant.models import FITS, AnyFit, models
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.rewards import target as target_reward

DEPTHS = (1, 2)


FIRST = 4
"""The episode of seed 0: one in which a turn is needed."""
SHOWN = 60
"""Samples of each kind that are drawn."""


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episode."""
    models: str = "paper"
    """How the models are trained: tiny, cpu, paper or one-network."""
    samples: int = 100
    """Samples for each GSP of depth 2."""
    moments: int = 3
    """Later steps at which samples are shown."""
    steps: int = ant.MAX_STEPS
    """Longest episode that is drawn."""
    episodes: int = 10
    """Episodes of each agent for the table."""
    pairs: int = 32
    """Pairs (x, a) at which the models are compared with simulation, and futures of each."""


PRESETS = {
    "tiny": Config(models="one-network", samples=4, moments=1, steps=6, episodes=1, pairs=4),
    "cpu": Config(models="one-network"),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """One episode of each agent, with the samples of its plans.

    Paper: Fig 6, Fig 15, Fig 16
    """
    fit = replace(FITS[config.models], seed=0)
    ratios = announce(cells({"models": partial(calibrate, fit, config.pairs, config.pairs)})["models"])
    targets = ant.Tasks(config.episodes, ant.REPORTED + 600_000 + FIRST + config.seed)
    tasks: Metrics = {f"depth-{depth}": partial(episode, config, fit, depth) for depth in DEPTHS}
    tasks |= {f"episodes/depth-{depth}": partial(handful, config, fit, depth, targets) for depth in DEPTHS}
    results = cells(tasks | {"episodes/plain": partial(plain, targets)})
    return {
        "ratios": ratios,
        "baselines": results["episodes/plain"],
        "radius": ant.RADIUS,
        "episodes": config.episodes,
        "agents": [{"depth": d, **results[f"depth-{d}"], **results[f"episodes/depth-{d}"]} for d in DEPTHS],
    }


def handful(config: Config, fit: AnyFit, depth: int, tasks: ant.Tasks) -> Metrics:
    """How many of a handful of targets are reached.

    Paper: Table 1
    """
    decide = planner(models(fit), depth, budget(config.samples, depth), tasks.radius)
    return {"successes": int(ant.episodes(decide, tasks).reached.sum())}


def episode(config: Config, fit: AnyFit, depth: int) -> Metrics:
    """An episode until the target is reached, and what was imagined on the way."""
    env = SparseAnt(radius=ant.RADIUS)
    state, info = env.reset(seed=ant.REPORTED + 500_000 + FIRST + config.seed)
    ghms = models(fit)
    reward = target_reward(info["target"], ant.RADIUS)
    agent = GGPIAgent(ghms, reward, depth=depth, num_samples=budget(config.samples, depth))
    path, plans, positions = [state[:2]], [], []
    for key in jax.random.split(jax.random.key(FIRST + config.seed), config.steps):
        plan = agent.plan(state, key=key)
        plans.append(_shown(plan, ghms.names, len(plans) == 0))
        positions.append(np.concatenate([env.data.qpos, env.data.qvel]))
        state, _, terminated, truncated, _ = env.step(plan.action)
        path.append(state[:2])
        if terminated or truncated:
            break
    moments = np.unique(np.linspace(0, len(plans) - 1, config.moments + 1).astype(int))
    return {
        "target": info["target"],
        "path": np.round(np.array(path, float), 3),
        "reached": bool(np.linalg.norm(path[-1] - info["target"]) <= ant.RADIUS),
        "moments": moments,
        "plans": [plans[i] for i in moments],
        "heads": [plan["head"] for plan in plans],
        "positions": np.round(np.array(positions), 4),
    }


def _shown(plan: Plan, names: list[str], whole: bool) -> Metrics:
    """The best plan's samples; at the first step also those of every policy alone."""
    best = int(plan.best)
    alone = [i for i, gsp in enumerate(plan.gsps) if len(gsp) == 1]
    every = [_places(plan.samples(i)[-1]) for i in alone] if whole else []
    return {
        "name": plan.gsps[best].name(names),
        "head": names[plan.gsps[best].head],
        "best": [_places(part) for part in plan.samples(best)],
        "alone": every,
        "value": round(float(plan.value[best]), 4),
    }


def _places(states: np.ndarray) -> Any:
    return np.round(states[:SHOWN, :2].astype(float), 2)
