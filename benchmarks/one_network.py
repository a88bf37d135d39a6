"""One network against the stack that it replaces, and planning with a student against planning with a VAE.

Training: four policies of the point mass at γ = 0.95 and α = 0.2, eight models in the stack. Both are trained by
TD²-CFM with the same width and data, the network with smaller batches and fewer updates. Quality is the energy distance
to simulated futures, the mean over both horizons of all policies, taken along the way and off the clock. A network that
is as good at the end and took less time has the larger throughput at equal quality.

The ant: the network that is shipped replaced eight VAEs (`ggpi.lab.ant.models`, `cpu`). Both train in turns, chunk by
chunk, so that what else runs slows both; from the rates follow the seconds of all of their updates. Energy distances
of both at the end are in the docs (ant-one-network); that of the network after a short training says when it is as good
as the VAEs are at their end. CPU seconds count all threads and hardly depend on what else runs.

Memory: the parameters of a network and of its stack, and the peak of a process that trains one of them for a moment.

Planning: one state of the ant and 64 of them, depth 2, four policies, 100 samples; VAEs of the size that `ggpi fit ant`
trains, the shipped network that draws the time first, and students of flow-matching models. Rounds alternate, and the
best of each counts. VAEs and students are untrained, which takes as long.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

import ggpi
from ggpi._jax.batching import part_of, stack
from ggpi.diagnosis.distances import energy_distance
from ggpi.diagnosis.measures import clouds
from ggpi.diagnosis.samples import draw_each
from ggpi.diagnosis.truth import Truth, simulate_pairs
from ggpi.envs import GymVectorEnv, PointMass
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import Conditioned
from ggpi.ghm.one_pass import student_of
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.ant.calibration import calibration, ratios
from ggpi.lab.ant.models import VAES, WalkConfig, fit_models
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import Recipe
from ggpi.policies import direction_policies

GAMMA, ALPHA = 0.95, 0.2
HORIZONS = GAMMA, GAMMA * (1 - ALPHA)
KEY = jax.random.key(0)
SAMPLES, DEPTH = 100, 2
DOCS = Path(__file__).parents[1] / "docs" / "results" / "ant-one-network.json"


class Watch:
    """A callback that measures quality every so many steps, with the clock stopped."""

    def __init__(self, truths: list[list[Truth]], every: int, num_samples: int):
        self.truths, self.every, self.num_samples = truths, every, num_samples
        self.rows: list[tuple[int, float, float]] = []
        self.seconds, self.begun = 0.0, None

    def __call__(self, report) -> None:
        now = time.perf_counter()
        if self.begun is not None:
            self.seconds += now - self.begun
        if report.step and report.step % self.every == 0:
            self.rows.append((report.step, self.seconds, self.energy(report.models)))
        self.begun = time.perf_counter() if report.step else None  # the first chunk compiles

    def energy(self, models) -> float:
        """The mean over horizons, policies and starts."""
        count = len(self.truths[0])
        if isinstance(models, Conditioned):
            stacks = [models.at_horizon(horizon).stacked() for horizon in HORIZONS]
        else:
            stacks = [
                jax.tree.map(lambda leaf, i=i: leaf[i * count : (i + 1) * count], models) for i in range(2)
            ]
        found = []
        for models_at, truths in zip(stacks, self.truths, strict=True):
            for k, truth in enumerate(truths):
                one = jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], models_at)
                drawn = draw_each(one, truth.state, truth.action, self.num_samples, key=KEY)[0]
                pairs = zip(clouds(truth, truth.future), clouds(truth, drawn), strict=True)
                found.append(np.mean([energy_distance(x, y) for x, y in pairs]))
        return float(np.mean(found))


def world() -> tuple[PointMass, list]:
    return PointMass(force=0.005), list(direction_policies())


def truths(num_starts: int, num_samples: int) -> list[list[Truth]]:
    """By horizon and policy."""
    env, policies = world()
    seen = ggpi.collect(GymVectorEnv(env, 32), policies, 32 * 200, switch_every=40, seed=1)
    rows = seen[np.random.default_rng(0).choice(len(seen), num_starts, replace=False)]
    pair = rows.state, rows.action
    return [
        [
            Truth(*pair, simulate_pairs(env, policy, *pair, horizon, num_samples, seed=2))
            for policy in policies
        ]
        for horizon in HORIZONS
    ]


def training(
    stack_steps: int = 1500,
    network_steps: int = 1500,
    every: int = 500,
    num_steps: int = 30_000,
    num_starts: int = 4,
) -> dict:
    """Steps, seconds and energy distances along both trainings, and how they compare at the end."""
    env, policies = world()
    data = ggpi.collect(GymVectorEnv(env, 32), policies, num_steps, switch_every=40, seed=0)
    aims = truths(num_starts, 256)
    loss = TD2CFM(n_step=20, ema_decay=0.95)
    recipe = Recipe(ggpi.FlowMatchingConfig(width=96, depth=2), loss, chunk=50)
    curves = {}
    for name, alpha, batch, steps in (
        ("stack", ALPHA, 256, stack_steps),
        ("network", "any", 64, network_steps),
    ):
        watch = Watch(aims, every, 256)
        given = replace(recipe, batch_size=batch, steps=steps)
        ggpi.fit(policies, data, gamma=GAMMA, alpha=alpha, recipe=given, callbacks=[watch], key=KEY)
        curves[name] = [dict(zip(("step", "seconds", "energy"), row, strict=True)) for row in watch.rows]
    theirs, ours = (curves[name][-1] for name in ("stack", "network"))
    return {
        "curves": curves,
        "energy_ratio": ours["energy"] / theirs["energy"],
        "times_as_fast": theirs["seconds"] / ours["seconds"],
    }


class Turns:
    """Callbacks of two trainings that take turns, chunk by chunk, and the time of each chunk."""

    def __init__(self):
        self.both_begin, self.changed, self.turn = threading.Barrier(2), threading.Condition(), 0
        self.times: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])

    def callback(self, place: int, steps: int) -> Callable[[Any], None]:
        """Of one training; seconds per update by the wall, and by the CPU, which works for one at a time."""
        begun: tuple[int, float, float] | None = None

        def call(report) -> None:
            nonlocal begun
            now = report.step, time.perf_counter(), time.process_time()
            if begun is None:
                self.both_begin.wait()
            else:
                count, wall, cpu = (b - a for a, b in zip(begun, now, strict=True))
                self.times[place].append((wall / count, cpu / count))
            with self.changed:
                if begun is not None:
                    self.turn = 1 - place
                    self.changed.notify_all()
                if report.step < steps:
                    self.changed.wait_for(lambda: self.turn == place)
            begun = report.step, time.perf_counter(), time.process_time()

        return call

    def pairs(self) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """Without the first chunks, which compile, and the last, beside which the other training ends."""
        return list(zip(*self.times, strict=True))[1:-1]


def docs_energy(models: str) -> list[float]:
    """The energy distances of the ant's models in the docs, at both horizons, on the states of the settings."""
    rows = json.loads(DOCS.read_text())["tables"][0]["rows"]
    (found,) = (row[-1] for row in rows if row[0] == models)
    return [float(part) for part in found.split(" / ")]


def ant_training(
    network_steps: int = 3_000,
    vae_steps: int = 48,
    num_walks: int = 2_000,
    num_pairs: int = 64,
    num_chunks: int = 12,
) -> dict:
    """Rates and times of the ant's network and of the VAEs that it replaced, and energy distances."""
    turns, config, vaes = (
        Turns(),
        WalkConfig(num_walks=num_walks),
        replace(VAES["cpu"], num_transitions=12_800),
    )
    found: dict[int, GHMs] = {}

    def train(place: int, config: Any, steps: int) -> None:
        short = replace(config.recipe, steps=steps, chunk=steps // num_chunks)
        found[place] = fit_models(replace(config, recipe=short), callbacks=[turns.callback(place, steps)])

    other = threading.Thread(target=train, args=(1, vaes, vae_steps))
    other.start()
    train(0, config, network_steps)
    other.join()
    rates = [[statistics.median(pair[k][i] for pair in turns.pairs()) for i in (0, 1)] for k in (0, 1)]
    ratios_of = [statistics.median(b[i] / a[i] for a, b in turns.pairs()) for i in (0, 1)]
    steps = WalkConfig().recipe.steps, VAES["cpu"].recipe.steps
    early = ratios(calibration(found[0], num_pairs, num_pairs))
    return {
        name: {
            "steps": count,
            "seconds_per_update": wall,
            "cpu_seconds_per_update": cpu,
            "cpu_seconds": count * cpu,
            "energy": docs_energy(docs),
        }
        for name, count, (wall, cpu), docs in zip(
            ("network", "vaes"), steps, rates, ("one network, shipped", "eight VAEs"), strict=True
        )
    } | {
        "early_network": {"steps": network_steps, "energy": [row["energy"] for row in early.values()]},
        "seconds_of_an_update_ratio": ratios_of[0],
        "cpu_seconds_of_an_update_ratio": ratios_of[1],
        "times_as_fast": ratios_of[1] * steps[1] / steps[0],
        "times_as_fast_early": ratios_of[1] * steps[1] / network_steps,
    }


def ant_quality(steps: int = 12_000, num_walks: int = 4_000, num_pairs: int = 64) -> dict:
    """The energy distance of the ant's network after a longer training, with its own schedule, by itself."""
    config = WalkConfig(num_walks=num_walks)
    ghms = fit_models(replace(config, recipe=replace(config.recipe, steps=steps, chunk=max(steps // 24, 1))))
    return {
        "steps": steps,
        "energy": [row["energy"] for row in ratios(calibration(ghms, num_pairs, num_pairs)).values()],
    }


KINDS = {"point mass, network", "point mass, stack", "ant, network", "ant, VAEs"}


def trained_for_a_moment(kind: str, steps: int = 4) -> GHMs:
    """Models of one of `KINDS`, after some updates with the same number of rows of data."""
    if kind.startswith("ant"):
        config = (
            WalkConfig(num_walks=64)
            if kind == "ant, network"
            else replace(VAES["cpu"], num_transitions=6_400)
        )
        return fit_models(replace(config, recipe=replace(config.recipe, steps=steps, chunk=steps)))
    env, policies = world()
    data = ggpi.collect(GymVectorEnv(env, 32), policies, 3_200, switch_every=40, seed=0)
    alpha, batch = ("any", 64) if kind == "point mass, network" else (ALPHA, 256)
    shape = ggpi.FlowMatchingConfig(width=96, depth=2)
    recipe = Recipe(shape, TD2CFM(n_step=20), steps=steps, chunk=steps, batch_size=batch)
    return ggpi.fit(policies, data, gamma=GAMMA, alpha=alpha, recipe=recipe, key=KEY)


def sizes_of(kind: str) -> dict[str, float]:
    """Megabytes: parameters, shared ones once, and the peak of this process."""
    ghms = trained_for_a_moment(kind)
    arrays = {id(leaf): leaf.nbytes for leaf in jax.tree.leaves(eqx.filter(ghms.models, eqx.is_array))}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"parameters_mb": sum(arrays.values()) / 1e6, "peak_mb": peak}


def memory() -> dict[str, dict[str, float]]:
    """Every kind in a process of its own."""
    found = {}
    for kind in sorted(KINDS):
        child = subprocess.run(
            [sys.executable, __file__, "sizes", kind], capture_output=True, text=True, check=True
        )
        found[kind] = json.loads(child.stdout.splitlines()[-1])
    return found


def agent(ghms: GHMs, num_states: int) -> ggpi.GGPIAgent:
    goals = np.tile(np.array([5.0, 0.0], np.float32), (num_states, 1))
    reward = ggpi.rewards.target(goals[0], 0.5) if num_states == 1 else ggpi.rewards.targets(goals, 0.5)
    return ggpi.GGPIAgent(ghms, reward, depth=DEPTH, num_samples=SAMPLES)


def untrained(ghms: GHMs, build: Callable[..., Any]) -> GHMs:
    """Models with fresh weights and the frames of these."""
    keys = iter(jax.random.split(KEY, len(ghms.models) * len(ghms.policies)))
    stacks = [
        [build(part_of(models.frame, k), key=next(keys)) for k in range(len(ghms.policies))]
        for models in ghms.models
    ]
    return replace(ghms, models=tuple(map(stack, stacks)))


def student(width: int, depth: int) -> Callable[..., Any]:
    shape = ggpi.FlowMatchingConfig(width=width, depth=depth)
    return lambda frame, key: student_of(shape.build(frame, key=key))


def planning(num_states: int, rounds: int) -> dict:
    """Milliseconds of the plans of some states."""
    shipped = ggpi.pretrained("ant-ghms")
    models = {
        "vae": untrained(shipped, VAEConfig().build),
        "shipped": shipped,
        "student 128x3": untrained(shipped, student(128, 3)),
        "student 64x2": untrained(shipped, student(64, 2)),
    }
    agents = {name: agent(ghms, num_states) for name, ghms in models.items()}
    size = shipped.models[0].frame.state_size
    states = np.zeros((num_states, size), np.float32)
    best = dict.fromkeys(agents, np.inf)
    for i in range(rounds + 1):
        for name, one in agents.items():
            begun = time.perf_counter()
            one.act(states[0] if num_states == 1 else states, key=jax.random.fold_in(KEY, i))
            if i:
                best[name] = min(best[name], time.perf_counter() - begun)
    return {name: 1000 * seconds for name, seconds in best.items()}


def measure(**sizes) -> dict:
    rounds, ant, longer = sizes.pop("rounds", 150), sizes.pop("ant", {}), sizes.pop("quality", {})
    return {
        "training": training(**sizes),
        "ant_training": ant_training(**ant),
        "ant_quality": ant_quality(**longer),
        "memory": memory(),
        "planning_ms": planning(1, rounds),
        "planning_64_states_ms": planning(64, max(rounds // 15, 1)),
    }


PARTS: dict[str, Callable[[], dict]] = {
    "planning": lambda: {"planning_ms": planning(1, 100), "planning_64_states_ms": planning(64, 6)},
    "ant": lambda: {"ant_training": ant_training()},
    "quality": lambda: {"ant_quality": ant_quality()},
    "memory": lambda: {"memory": memory()},
}
"""Those that are not named stay as they were."""


def main() -> None:
    if sys.argv[1:2] == ["sizes"]:
        print(json.dumps(sizes_of(sys.argv[2])))
        return
    path = Path(__file__).parent / "results" / "one_network.json"
    found = PARTS[sys.argv[1]]() if sys.argv[1:] else measure()
    found = json.loads(path.read_text()) | found
    print(json.dumps(found, indent=1))
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
