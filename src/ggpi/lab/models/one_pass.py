"""Samples in one pass: a student of a flow-matching model, against its teacher with more or fewer solver steps.

    teacher     flow matching by TD²-CFM; a sample takes two evaluations of the network per midpoint step
    student     `ggpi.distil`: one evaluation of a smaller network, regressed on where ten steps of the teacher lead
                from the same noise
    VAE         trained as long as the teacher, for comparison; one evaluation

Models are compared with simulated futures of fresh pairs (x, a) of π by the energy distance, in spreads of the true
displacement. Samples per second are those of one model on this machine; rounds of all samplers alternate, and the best
of each counts.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import jax
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.batching import part_of
from ggpi._jax.jit import jit
from ggpi.diagnosis.distances import energy_distance
from ggpi.diagnosis.measures import clouds
from ggpi.diagnosis.samples import draw_each, typed
from ggpi.diagnosis.truth import Truth, rows_of
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatching, FlowMatchingConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.bootstrap import mean_interval, paired_difference
from ggpi.lab.cells import Cells, Metrics, compute
from ggpi.lab.models.benchmarks import check_worlds
from ggpi.lab.models.td_flows_scores import benchmark, finite, transitions, true_clouds
from ggpi.learning.distillation import distil
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.losses import CETD
from ggpi.learning.recipe import Recipe

ROUNDS = 20
"""Rounds of which the fastest counts."""
TEACHER = Recipe(FlowMatchingConfig(width=512), TD2CFM(n_step=50), steps=3_000_000, batch_size=1024)
STUDENT = Recipe(FlowMatchingConfig(width=384, depth=2), steps=1_000_000, batch_size=1024)


@dataclass(frozen=True)
class Config:
    worlds: tuple[str, ...] = ("medium-maze",)
    """Where: point-mass, pendulum, ant, umaze, medium-maze."""
    gamma: float = 0.99
    """Horizon γ of the models."""
    recipe: Recipe = TEACHER
    """The teacher, and how it is trained."""
    student: Recipe = STUDENT
    """The student, and how it is trained; its loss is not used."""
    num_shared: int = 1_000_000
    """Transitions of random switching among all policies."""
    num_own: int = 1_000_000
    """Transitions of the evaluated policy, for each seed."""
    num_starts: int = 64
    """Pairs (x, a) at which models are compared with the truth."""
    num_samples: int = 2_048
    """Samples and true futures of each."""
    solver_steps: tuple[int, ...] = (1, 2, 5, 10, 20)
    """Steps of the teacher's solver; 10 of them are what the student learns from."""
    batch: int = 4_096
    """Samples that are drawn at a time when the rate is measured."""
    num_seeds: int = 3
    """Models of each kind."""
    seed: int = 0
    """Random seed of data and of training."""

    def __post_init__(self):
        check_worlds(self.worlds)
        if not isinstance(self.recipe.model, FlowMatchingConfig):
            raise ValueError(f"the teacher is a flow-matching model, got {type(self.recipe.model).__name__}")
        if self.num_seeds < 1 or not self.solver_steps or min(self.solver_steps) < 1:
            raise ValueError(
                f"num_seeds, solver_steps: at least 1, got {self.num_seeds}, {self.solver_steps}"
            )


CPU = Recipe(FlowMatchingConfig(width=128), TD2CFM(n_step=50, ema_decay=0.95), steps=4_000, batch_size=256)
PRESETS = {
    "tiny": Config(
        worlds=("point-mass",),
        gamma=0.9,
        recipe=Recipe(
            FlowMatchingConfig(width=32, depth=2),
            TD2CFM(n_step=10, ema_decay=0.95),
            steps=500,
            batch_size=128,
            learning_rate=3e-3,
        ),
        student=Recipe(FlowMatchingConfig(width=24, depth=2), steps=500, batch_size=128, learning_rate=3e-3),
        num_shared=6_400,
        num_own=6_400,
        num_starts=4,
        num_samples=128,
        solver_steps=(1, 10),
        batch=256,
        num_seeds=2,
    ),
    "cpu": Config(
        recipe=CPU,
        student=Recipe(FlowMatchingConfig(width=96, depth=2), steps=8_000, batch_size=256),
        num_shared=50_000,
        num_own=50_000,
        num_starts=16,
        num_samples=512,
        num_seeds=2,
    ),
    "paper": Config(),
}


def run(config: Config, cells: Cells = compute) -> Metrics:
    """Trains teachers, students and VAEs in every environment, all seeds at once."""
    results = cells({world: partial(measure, config, world) for world in config.worlds})
    return {
        "gamma": config.gamma,
        "steps": config.recipe.steps,
        "student_steps": config.student.steps,
        "num_seeds": config.num_seeds,
        "num_starts": config.num_starts,
        "num_samples": config.num_samples,
        "batch": config.batch,
        "worlds": results,
    }


def measure(config: Config, world: str) -> Metrics:
    """Energy distances and rates of all samplers, and the student beside ten steps of its teacher."""
    truth = true_clouds(world, config.gamma, config.num_starts, config.num_samples, config.seed + 1_000)
    models, seconds = trained(config, world)
    speeds = rates([part_of(each, 0) for each in models.values()], truth, config.batch)
    rows: list[Metrics] = [
        _row(config, name, steps, each, truth) | {"rate": speed}
        for ((name, steps), each), speed in zip(models.items(), speeds, strict=True)
    ]
    found = {row["name"]: row for row in rows}
    student, teacher = found["student"], found[_solver(10)]
    assert truth.again is not None
    return {
        "rows": rows,
        "floor": float(energies_of(truth, truth.again[None]).mean()),
        "core_seconds": seconds,
        "difference": paired_difference(student["by_start"], teacher["by_start"]),
        "energy_ratio": student["energy"]["mean"] / teacher["energy"]["mean"],
        "speedup": student["rate"] / teacher["rate"],
    }


def _solver(steps: int) -> str:
    return "1 solver step" if steps == 1 else f"{steps} solver steps"


def trained(config: Config, name: str) -> tuple[dict[tuple[str, int], AbstractGHM], dict[str, float]]:
    """Stacked models by name and solver steps, and the core seconds of each training."""
    world, seeds = benchmark(name), config.num_seeds
    data = transitions(name, config.gamma, config.num_shared, config.num_own, seeds, config.seed)
    shape = replace(cast(FlowMatchingConfig, config.recipe.model), num_steps=10, predict=world.predict)
    recipe, key = replace(config.recipe, model=shape), jax.random.key(config.seed)
    loss = cast(TD2CFM, recipe.loss)
    vae = VAEConfig(width=shape.width, predict=world.predict)
    likelihood = replace(recipe, model=vae, loss=CETD(loss.n_step, loss.ema_decay))
    settings = {"gamma": config.gamma, "alpha": (), "spec": world.spec, "key": key}
    policies = [world.policy] * seeds
    teacher, first = _timed(lambda: fit(policies, data, recipe=recipe, **settings))
    steps = config.student.steps
    student, second = _timed(lambda: distil(teacher, data, steps=steps, recipe=config.student, key=key))
    other, third = _timed(lambda: fit(policies, data, recipe=likelihood, **settings))
    flow = cast(FlowMatching, teacher.models[0])
    found: dict[tuple[str, int], AbstractGHM] = {
        (_solver(count), count): replace(flow, num_steps=count)
        for count in sorted({*config.solver_steps, 10})
    }
    found |= {("student", 0): student.models[0], ("VAE", 0): other.models[0]}
    return found, {"teacher": first, "student": second, "VAE": third}


def _timed(train: Callable[[], GHMs]) -> tuple[GHMs, float]:
    """Models, and the seconds of one core that they took."""
    begun = time.process_time()
    return train(), time.process_time() - begun


def _row(config: Config, name: str, steps: int, models: AbstractGHM, truth: Truth) -> Metrics:
    drawn = draw_each(models, truth.state, truth.action, config.num_samples, key=jax.random.key(0))
    energies = energies_of(truth, drawn)
    return {
        "name": name,
        "solver_steps": steps,
        "energy": mean_interval(energies.mean(axis=1)),
        "by_start": energies,
    }


def energies_of(truth: Truth, drawn: Float[np.ndarray, "K P n D"]) -> Float[np.ndarray, "K P"]:
    """Energy distances to the true futures, of each model and start."""
    true = clouds(truth, truth.future)
    return np.array(
        [
            [energy_distance(x, y) for x, y in zip(true, clouds(truth, futures), strict=True)]
            for futures in finite(drawn)
        ]
    )


def rates(models: Sequence[AbstractGHM], truth: Truth, batch: int) -> list[float]:
    """Samples per second of each model, `batch` at a time, in the fastest of several rounds, which alternate."""
    count = -(-batch // len(truth.state))
    pairs = [part[:batch] for part in typed(*rows_of(truth.state, truth.action, count))]
    best = [math.inf] * len(models)
    for i in range(ROUNDS + 1):  # the first compiles
        for k, model in enumerate(models):
            noise = jax.random.normal(jax.random.key(i), (batch, model.noise_size)).block_until_ready()
            begun = time.perf_counter()
            _pushed(model, *pairs, noise).block_until_ready()
            best[k] = min(best[k], time.perf_counter() - begun) if i else best[k]
    return [batch / seconds for seconds in best]


@jit
def _pushed(model: AbstractGHM, states: Array, actions: Array, noise: Array) -> Array:
    return jax.vmap(model.push)(states, actions, noise)
