"""The models of the point mass and of a maze that come with the package: flow matching, distilled to one pass.

python -m ggpi.studio.pretraining maze-ghms OUT
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from ggpi.data.transitions import Transitions
from ggpi.diagnosis.report import diagnose
from ggpi.envs.environment import Environment, GymVectorEnv
from ggpi.envs.making import make
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab.fit_directory import World, record
from ggpi.learning.distillation import distil
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import CPU, Recipe
from ggpi.policies.linear import LinearPolicy, direction_policies, maze_policies
from ggpi.rollout.collection import collect
from ggpi.storage.arrays import write_json
from ggpi.storage.objects import save

MEASURED = ("energy", "energy_floor", "impossible", "verdict")
"""What is kept of `ggpi.diagnose`."""


@dataclass(frozen=True)
class Training:
    """How models of a world are trained."""

    env: str
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment."""
    policies: str = "directions"
    """directions, or maze: those that hold a speed."""
    gamma: float = 0.95
    alpha: float = 0.1
    num_transitions: int = 400_000
    episode: int = 60
    """Steps of an episode, and the longest turn of a policy."""
    seed: int = 0
    teacher: Recipe = CPU
    student: Recipe = CPU

    @property
    def base_policies(self) -> list[LinearPolicy]:
        return maze_policies(4.0) if self.policies == "maze" else direction_policies()


TEACHER = replace(CPU, loss=TD2CFM(n_step=60), learning_rate=2e-3)
TRAININGS = {
    "point-mass-ghms": Training(
        "ggpi/PointMass-v0",
        num_transitions=100_000,
        teacher=replace(TEACHER, model=FlowMatchingConfig(64, 2, 6), steps=5_000),
        student=replace(CPU, model=FlowMatchingConfig(48, 2), steps=8_000),
    ),
    "maze-ghms": Training(
        "ggpi/PointMaze-v0",
        {"maze": "Medium"},
        "maze",
        teacher=replace(TEACHER, model=FlowMatchingConfig(64, 2, 4, predict="state"), steps=4_000),
        student=replace(CPU, model=FlowMatchingConfig(64, 2, predict="state"), steps=5_000),
    ),
}


def pretrain(training: Training, out: Path, command: str) -> GHMs:
    """Trains models, and writes them with their world, the command and how they compare with simulation."""
    environment: Environment = make(training.env, **training.options).unwrapped.environment  # type: ignore
    data, key = transitions(training, environment), jax.random.key(training.seed)
    parts = training.base_policies, data
    options: dict[str, Any] = {"gamma": training.gamma, "alpha": training.alpha, "spec": environment.spec}
    taught = fit(*parts, recipe=training.teacher, key=key, **options)
    ghms = distil(taught, data, steps=training.student.steps, recipe=training.student, key=key)
    save(out / "models", ghms)
    record(out, World(training.env, environment.spec.names, (), (), training.options, "2 numbers"), {})
    found = diagnose(ghms, None, environment, key=key)
    kept = {
        name: {horizon: {m: about[m] for m in MEASURED if m in about} for horizon, about in rows.items()}
        for name, rows in found.items()
    }
    versions = {name: version(name) for name in ("ggpi", "jax", "jaxlib", "equinox", "mujoco", "numpy")}
    about = {"command": command, "config": dataclasses.asdict(training), "versions": versions}
    write_json(out / "training.json", about | {"measured": kept})
    return ghms


def transitions(training: Training, environment: Environment) -> Transitions:
    """Policies by turns, from anywhere."""
    envs = GymVectorEnv(environment, 256, training.episode)
    turns: dict[str, Any] = {"switch_every": training.episode, "seed": 1_000_000 + training.seed}
    return collect(envs, training.base_policies, training.num_transitions, **turns)


if __name__ == "__main__":
    name, place = sys.argv[1:]
    pretrain(TRAININGS[name], Path(place), f"python -m ggpi.studio.pretraining {name} OUT")
