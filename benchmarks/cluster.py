"""Two workers against one process of one thread: overhead of a task, cells of `ant-transfer`, a collection, a fit.

All executors run the same tasks with one thread each, in rounds that alternate between them, after a round in which
programs are compiled; ratios are of their best rounds. `load` is the machine's load before and after: on a machine that
others use too, ratios are lower than on idle cores.

The last part is a simulation, not a measurement: the measured times of the cells, drawn at random for 10,000 tasks, on
up to 1,000 workers that a driver serves one after the other, with the measured overhead of a task on Ray.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import ggpi
from ggpi import cluster
from ggpi.cli.main import use_compilation_cache
from ggpi.cluster import Executor
from ggpi.envs.ant import SparseAntVector
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.ant import transfer
from ggpi.lab.ant.models import FITS
from ggpi.learning.recipe import CPU
from ggpi.policies.linear import direction_policies

ROUNDS, CELLS, CORES, TASKS = 3, 8, (1, 2, 10, 100, 1000), 10_000


def nothing(_: object) -> None:
    """A task that does nothing."""


def cell(episodes: int, samples: int, seed: int) -> float:
    """The seconds of one cell of `ant-transfer`: episodes of GGPI at depth 2 with the shipped models."""
    start = time.perf_counter()
    config = dataclasses.replace(transfer.PRESETS["cpu"], episodes=episodes, seed=seed)
    transfer.plan(config, FITS["cpu"], 2, samples)
    return time.perf_counter() - start


def works(scale: float) -> dict[str, Callable[[Executor], Any]]:
    """What is timed on each executor."""
    ants, points = ggpi.pretrained("ant-policies"), direction_policies()
    data = ggpi.collect("ggpi/PointMass-v0", points, 5_000, switch_every=10)
    recipe = dataclasses.replace(CPU, model=VAEConfig(width=64), steps=int(1_500 * scale) + 1, batch_size=256)
    make = partial(SparseAntVector, target=None)
    return {
        "cells": lambda executor: executor.map(partial(cell, int(20 * scale) + 1, 20), range(CELLS)),
        "collect": lambda executor: ggpi.collect(
            make, ants, int(40_000 * scale) + 1, num_envs=64, switch_every=40, shards=8, executor=executor
        ),
        "fit": lambda executor: ggpi.fit(
            points, data, gamma=0.9, alpha=1 / 9, recipe=recipe, executor=executor, key=jax.random.key(0)
        ),
    }


def timed(work: Callable[[Executor], Any], executor: Executor) -> tuple[float, Any]:
    """Seconds, and what the work returned."""
    start = time.perf_counter()
    found = work(executor)
    return time.perf_counter() - start, found


def ratios(executors: dict[str, Executor], scale: float, rounds: int) -> tuple[dict[str, Any], list[float]]:
    """Best seconds on each executor and how many times faster than the first they are, and the seconds of cells."""
    found, times = {}, []
    for name, work in works(scale).items():
        best = dict.fromkeys(executors, np.inf)
        for i in range(rounds + 1):
            for kind, executor in executors.items():
                seconds, result = timed(work, executor)
                if i:  # the first round compiles
                    best[kind] = min(best[kind], seconds)
                if i and name == "cells" and kind == next(iter(executors)):
                    times = result
        first, *others = best
        found[name] = {
            "seconds": best,
            "times_faster": {kind: best[first] / best[kind] for kind in others},
        }
    return found, times


def overhead(executors: dict[str, Executor], count: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a task that does nothing."""
    found = {}
    for kind, executor in executors.items():
        seconds = [timed(lambda e: e.map(nothing, range(count)), executor)[0] for _ in range(rounds + 1)]
        found[kind] = 1000 * min(seconds[1:]) / count
    return found


def simulated(times: list[float], served: float, cores: tuple[int, ...]) -> dict[str, float]:
    """Times faster than one worker, by a simulation: each worker takes the next task when the driver has served it."""
    tasks = np.random.default_rng(0).choice(times, TASKS)

    def makespan(workers: int) -> float:
        free, driver, last = [0.0] * workers, 0.0, 0.0
        for seconds in tasks:
            driver = max(driver, heapq.heappop(free)) + served
            last = max(last, driver + seconds)
            heapq.heappush(free, driver + seconds)
        return last

    alone = makespan(1)
    return {str(count): alone / makespan(count) for count in cores}


def measure(scale: float = 1.0, rounds: int = ROUNDS, count: int = 500) -> dict[str, Any]:
    use_compilation_cache()  # which workers share
    before = os.getloadavg()[0]
    with cluster.processes(1) as one, cluster.processes(2) as two, cluster.ray() as ray:
        executors = {"one process": one, "two processes": two, "two workers of Ray": ray}
        work, times = ratios(executors, scale, rounds)
        cost = overhead(executors, count, rounds)
    return {
        "cores": os.cpu_count(),
        "load": [before, os.getloadavg()[0]],
        "workers_of_ray": 2,
        "overhead_ms": cost,
        "work": work,
        "simulated_times_faster": simulated(times, cost["two workers of Ray"] / 1000, CORES),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="less for a quick look (default: 1)")
    options = parser.parse_args()
    found = measure(options.scale)
    print(json.dumps(found, indent=2))
    path = Path(__file__).parent / "results" / "cluster.json"
    path.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
