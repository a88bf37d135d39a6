"""The models of the point mass and of a maze that come with the package: flow matching, distilled to one pass.

The maze has one network for all directions and horizons, so that γ and α can be changed after the training.

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

from ggpi.data import StateSpec
from ggpi.data.transitions import Transitions
from ggpi.diagnosis.report import diagnose
from ggpi.envs.environment import Environment, GymVectorEnv
from ggpi.envs.making import make
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.lab.fit_directory import World, record
from ggpi.lab.maze.closed_loop_models import RECIPE
from ggpi.learning.distillation import distil
from ggpi.learning.fitting import fit
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import CPU, Recipe
from ggpi.policies.linear import LinearPolicy, direction_policies, maze_policies
from ggpi.rollout.collection import collect
from ggpi.storage.arrays import write_json
from ggpi.storage.objects import save
from ggpi.types import Key

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
    largest: float | None = None
    """The largest horizon of one network for all of them; None for models of γ and β apart."""
    num_transitions: int = 400_000
    turn: int = 60
    """The longest turn of a policy, in steps."""
    episode: int = 60
    """Steps of an episode."""
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
        gamma=0.98,
        largest=0.99,
        episode=120,
        teacher=replace(RECIPE, steps=5_000),
        student=replace(CPU, batch_size=128, steps=6_000),
    ),
}


def pretrain(training: Training, out: Path, command: str) -> GHMs:
    """Trains models, and writes them with their world, the command and how they compare with simulation."""
    environment: Environment = make(training.env, **training.options).unwrapped.environment  # type: ignore
    data, key = transitions(training, environment), jax.random.key(training.seed)
    taught = _taught(training, data, environment.spec, key)
    ghms = distil(taught, data, steps=training.student.steps, recipe=training.student, key=key)
    if training.largest:
        ghms = ghms.with_gamma(training.gamma).with_alpha(training.alpha)
    save(out / "models", ghms)
    names = environment.spec.names
    places = names[:2] if training.largest else ()
    record(out, World(training.env, names, (), (), training.options, "2 numbers", places), {})
    found = diagnose(ghms, None, environment, key=key)
    kept = {
        name: {horizon: {m: about[m] for m in MEASURED if m in about} for horizon, about in rows.items()}
        for name, rows in found.items()
    }
    versions = {name: version(name) for name in ("ggpi", "jax", "jaxlib", "equinox", "mujoco", "numpy")}
    about = {"command": command, "config": dataclasses.asdict(training), "versions": versions}
    write_json(out / "training.json", about | {"measured": kept})
    return ghms


def _taught(training: Training, data: Transitions, spec: StateSpec, key: Key) -> GHMs:
    """Models that a solver samples."""
    parts, recipe = (training.base_policies, data), training.teacher
    if training.largest is None:
        return fit(*parts, gamma=training.gamma, alpha=training.alpha, recipe=recipe, spec=spec, key=key)
    spec = replace(spec, places=(0, 1))
    return fit(*parts, gamma=training.largest, alpha="any", recipe=recipe, spec=spec, key=key)


def transitions(training: Training, environment: Environment) -> Transitions:
    """Policies by turns, from anywhere."""
    envs = GymVectorEnv(environment, 256, training.episode)
    turns: dict[str, Any] = {"switch_every": training.turn, "seed": 1_000_000 + training.seed}
    return collect(envs, training.base_policies, training.num_transitions, **turns)


if __name__ == "__main__":
    name, place = sys.argv[1:]
    pretrain(TRAININGS[name], Path(place), f"python -m ggpi.studio.pretraining {name} OUT")
