"""What the closed loop needs: landmarks, jumps, models that stop at walls, and an α.

One setting differs at a time from `maze-closed-loop`; success is over targets of all numbers of turns.

    landmarks       of the graph
    jumps           of each policy from each landmark
    training steps  of the models: short trainings sample states in walls, which look like short cuts
    α               of the graph
    α, plans        plans of depth 3 by the cross-entropy method: α given, or chosen with the plan
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ggpi.lab import agents
from ggpi.lab.bootstrap import share_interval
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.maze import closed_loop
from ggpi.lab.maze import tasks as maze
from ggpi.lab.maze.closed_loop_models import described, graph_of, models

GROUPS = {
    "landmarks": "landmarks",
    "jumps": "jumps of each policy",
    "training": "training steps",
    "alpha": "α of the graph",
    "plans": "α of plans",
}


@dataclass(frozen=True)
class Config:
    seed: int = 0
    """Seed of the episodes, in the place of the base's own."""
    base: closed_loop.Config = field(default_factory=closed_loop.Config)
    """Maze, models, graph and episodes of the setting that all others differ from."""
    landmarks: tuple[int, ...] = (125, 500, 2_000, 8_000)
    """Numbers of landmarks."""
    jumps: tuple[int, ...] = (1, 4, 16, 64)
    """Numbers of jumps."""
    training_steps: tuple[int, ...] = (250, 1_000, 5_000, 20_000)
    """Lengths of training."""
    alphas: tuple[float, ...] = (0.1, 0.3, 0.6)
    """Each α of the graph and of plans; plans may also choose any between the least and the largest. May be empty."""
    with_plans: bool = True
    """Whether plans are tried, which takes longest."""


PRESETS = {
    "tiny": Config(
        base=replace(closed_loop.PRESETS["tiny"], episodes=1),
        landmarks=(20,),
        jumps=(2,),
        training_steps=(20,),
        alphas=(0.1, 0.3),
    ),
    "cpu": Config(
        base=replace(closed_loop.PRESETS["cpu"], episodes=5),
        landmarks=(30, 125, 500, 2_000),
        jumps=(1, 4, 16),
        training_steps=(50, 150, 500, 1_500),
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Episodes of the closed loop with every setting, and of plans with every α."""
    listed = _jobs(replace(config, base=replace(config.base, seed=config.seed)))
    results = cells({_cell(group, name): job for group, name, job in listed})
    rows = [{"group": group, "setting": name, **results[_cell(group, name)]} for group, name, _ in listed]
    return {
        "maze": config.base.maze,
        "episodes": config.base.episodes * len(closed_loop.turns_of(config.base)),
        "rows": rows,
    }


def _cell(group: str, name: str) -> str:
    return f"{group}/{name.replace(' ', '-')}"


def _jobs(config: Config) -> list[tuple[str, str, Callable[[], Metrics]]]:
    """Group, name and task of every setting."""
    base = config.base
    changes = [("landmarks", "num_landmarks", n) for n in config.landmarks]
    changes += [("jumps", "num_jumps", n) for n in config.jumps]
    changes += [("training", "training_steps", n) for n in config.training_steps]
    jobs = [
        (group, str(value), partial(with_change, replace(base, **{name: value})))
        for group, name, value in changes
    ]
    jobs += [("alpha", f"{alpha:g}", partial(with_alpha, config, alpha)) for alpha in config.alphas]
    if not (config.with_plans and config.alphas):
        return jobs
    span = min(config.alphas), max(config.alphas)
    jobs += [("plans", f"{alpha:g}", partial(plans, config, {"alphas": alpha})) for alpha in config.alphas]
    return [*jobs, ("plans", f"{span[0]:g} to {span[1]:g}", partial(plans, config, {"alpha_range": span}))]


def with_change(base: closed_loop.Config) -> Metrics:
    """The closed loop with another graph or other models."""
    return _scored(base, closed_loop.closed_loop(base, 0)) | closed_loop.describe(base, 0)


def with_alpha(config: Config, alpha: float) -> Metrics:
    """The closed loop with another α."""
    base, training = config.base, closed_loop.training_of(config.base, 0)
    graph = graph_of(training, replace(base.sizes, alpha=alpha))
    decide = agents.closed_loop(models(training), graph, base.samples, maze.RADIUS)
    return _scored(base, decide) | described(graph, maze.world(base.maze))


def plans(config: Config, switches: dict[str, Any]) -> Metrics:
    """Plans of depth 3 by the cross-entropy method, with the draws of `maze-closed-loop`."""
    base = config.base
    search = closed_loop.cross_entropy(base, 3, **switches)
    ghms = models(closed_loop.training_of(base, 0))
    return _scored(base, agents.WarmPlanner(ghms, None, maze.RADIUS, search))


def _scored(base: closed_loop.Config, decide: agents.Decide) -> Metrics:
    """The share of targets reached, and the steps of the episodes that did."""
    found = closed_loop.play(base, decide, base.episodes)
    steps = np.asarray(found["steps"])
    return {
        "success": share_interval(steps > 0, level=0.9),
        "steps": float(steps[steps > 0].mean()) if (steps > 0).any() else None,
        "seconds_per_plan": found["seconds_per_plan"],
    }
