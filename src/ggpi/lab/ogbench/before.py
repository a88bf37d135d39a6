"""What is known of models and graph before any episode is run, and the seconds of each phase."""

import time

import jax
import numpy as np

from ggpi.diagnosis.distances import mean_energy
from ggpi.diagnosis.samples import draw_at
from ggpi.diagnosis.truth import on_policy_truth
from ggpi.envs.ogbench_maze import OGBenchMaze
from ggpi.lab.cache import kept, seconds_of
from ggpi.lab.cells import Metrics
from ggpi.lab.maze.closed_loop_models import Sizes, described
from ggpi.lab.ogbench import walkers
from ggpi.lab.ogbench.models import FOLDER, Training, data_of, graph_of, models

CHECKED = 5_000_000
"""Seeds of simulated jumps."""
JUMPS = 64
"""Jumps of each policy from each landmark that is checked, of models and twice in simulation."""


def describe(training: Training, sizes: Sizes) -> Metrics:
    """Jumps in walls and out of reach, and the seconds of each phase."""
    world, times = OGBenchMaze(training.maze), [time.perf_counter()]
    for phase in (data_of, models):
        phase(training)
        times.append(time.perf_counter())
    graph = graph_of(training, sizes)
    times.append(time.perf_counter())
    graph.solve(world.reward(world.task(1).goal))  # the first one compiles
    times.append(time.perf_counter())
    graph.solve(world.reward(world.task(2).goal))
    times.append(time.perf_counter())
    data, _, building, _, solving = np.diff(times)
    fitting = seconds_of(kept(training, FOLDER))
    seconds = {"data": data, "training": fitting, "graph": building, "goal": solving}
    return described(graph, world) | {"seconds": seconds}


def phases(training: Training, graph: Metrics, episodes: Metrics) -> Metrics:
    """Seconds of each phase, from nothing to the end of the closed loop's episodes; the last is their sum.

    Args:
        training: of the models.
        graph: what `describe` found.
        episodes: what was measured of the episodes.
    """
    first = {"walkers": walkers.TRAINED} if training.maze.startswith("antmaze") else {}
    found = first | {name: graph["seconds"][name] for name in ("data", "training", "graph")}
    found["episodes"] = episodes["seconds"]
    known = None not in found.values()
    return found | {"all": sum(found.values()) if known else None}


def jump_errors(training: Training, sizes: Sizes, count: int) -> list[Metrics]:
    """Jumps of the models from some landmarks, compared with simulated ones, for each policy.

    Distances are of places, in the maze's units: the energy distance of the two distributions at a landmark, in the
    mean over landmarks, and its floor, that of simulations among each other; and how far apart two simulated jumps are.

    Args:
        training: of the models.
        sizes: of the graph.
        count: landmarks that are checked.
    """
    ghms, world = models(training).with_alpha(sizes.alpha), OGBenchMaze(training.maze)
    landmarks, rng = graph_of(training, sizes).landmarks, np.random.default_rng(CHECKED + training.seed)
    starts, found = landmarks[rng.permutation(len(landmarks))[:count]], []
    for k, policy in enumerate(ghms.policies):
        key, seeds = jax.random.key(CHECKED + k), (CHECKED + 2 * k, CHECKED + 2 * k + 1)
        beta = ghms.horizon(sizes.alpha)
        truth = on_policy_truth(world, policy, starts, beta, JUMPS, seeds=seeds, key=key)
        ours = draw_at(ghms.segment(k, sizes.alpha), truth, key=jax.random.fold_in(key, 1))
        ends = [np.asarray(part)[..., :2] for part in (truth.future, truth.again, ours)]
        found.append({"policy": policy.name, **_compared(*ends), "in_walls": _in_walls(world, ends[2])})
    return found


def _compared(true: np.ndarray, again: np.ndarray, ours: np.ndarray) -> Metrics:
    """Distances of jumps [P, n, 2]."""
    return {
        "energy": mean_energy(true, ours),
        "floor": mean_energy(true, again),
        "apart": float(np.linalg.norm(true - again, axis=-1).mean()),
    }


def _in_walls(world: OGBenchMaze, ends: np.ndarray) -> float:
    return float(1 - world.possible(ends).mean())
