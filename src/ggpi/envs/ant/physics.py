"""The ant's body and its dynamics: the model that gymnasium ships, with the changes listed in `CHANGES`.

One control step is 6 substeps of 0.02 s. `Batch` of MuJoCo steps many ants in compiled threads; it carries
the solver's warm start from step to step, so it is bit-exact with stepping each ant by itself.
"""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from jaxtyping import Float
from mujoco.batch import Batch
from numpy.typing import ArrayLike

from ggpi.envs.ant.observation import JOINTS, SIGNS

SUBSTEPS = 6
TIMESTEP = 0.02
CONTROL_STEP = SUBSTEPS * TIMESTEP
GEAR = 40.0
THREADS = 1 if os.environ.get("NPROC") == "1" else 2
"""Threads that step the ants by default: two, or the one that a worker of an executor has."""
CHANGES = {
    "integrator": "implicitfast instead of RK4: 4 to 5 times faster, no visible difference in gaits",
    "timestep": "0.02 s instead of 0.01 s, 6 substeps: a control step of 0.12 s instead of 0.05 s",
    "gear": "motors of 40 instead of 150: stronger ants fall over at eight decisions a second",
    "actions": "leg by leg, hip before ankle, and a positive ankle torque bends every leg down",
    "autoreset": "off: a simulation that diverges is reported, not silently put back to its start",
}
"""Differences from the stock model, all made in `model`."""
TOO_FAST = 1e3
"""Velocities beyond this, in units or radians per second, count as divergence."""


@functools.cache
def model() -> mujoco.MjModel:
    """The compiled ant; shared, so not to be changed."""
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.timestep = TIMESTEP
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    for actuator in spec.actuators:
        actuator.gear[0] = GEAR
    spec.visual.global_.offwidth, spec.visual.global_.offheight = 1280, 960
    spec.visual.quality.offsamples = 0
    return spec.compile()


@functools.cache
def motor_order() -> np.ndarray:
    """For each motor of the model, the place of its joint in our actions."""
    ours = [model().joint(name).id for name in JOINTS]
    return np.array([ours.index(joint) for joint in model().actuator_trnid[:, 0]])


def controls(action: Float[np.ndarray, "*n 8"]) -> Float[np.ndarray, "*n 8"]:
    """Motor commands of an action: clipped to [−1, 1], signed and ordered as in the model."""
    return (np.clip(action, -1, 1) * SIGNS)[..., motor_order()]


def check_action(action: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """The action as float64 of the given shape; NaN raises an error, other values are clipped later."""
    values = np.asarray(action, np.float64)
    if values.shape != shape:
        raise ValueError(f"actions have shape {shape}, got {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"actions must be numbers, got NaN at {np.argwhere(np.isnan(values))[0].tolist()}")
    return values


def diverged(qpos: Float[np.ndarray, "*n 15"], qvel: Float[np.ndarray, "*n 14"]) -> Any:
    """Whether a simulation has diverged."""
    return ~(np.isfinite(qpos).all(axis=-1) & (np.abs(qvel) < TOO_FAST).all(axis=-1))


@dataclass(frozen=True, eq=False)
class Ground:
    """A compiled ant and what it walks on: an empty plane, or one with pillars."""

    model: Any
    substeps: int = SUBSTEPS
    pillars: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    """Middles of pillars [n, 2]."""
    width: float = 0.0
    """Of a pillar."""

    @property
    def control_step(self) -> float:
        """Seconds of a control step."""
        return self.substeps * float(self.model.opt.timestep)

    def batch(self, num_ants: int, num_threads: int) -> Batch:
        """`num_ants` simulations, stepped on `num_threads` threads."""
        return Batch(self.model, num_ants, num_threads)

    def is_free(self, place: np.ndarray) -> bool:
        """Whether an ant that stands here touches no pillar."""
        return bool((np.abs(self.pillars - place).max(axis=-1) > self.width / 2 + REACH).all())


REACH = 1.2
"""How far an ant's feet are from its middle, at most."""


@functools.cache
def plane() -> Ground:
    """The ant of this package in an empty plane."""
    return Ground(model())


def batch(num_ants: int, num_threads: int) -> Batch:
    """`num_ants` simulations, stepped on `num_threads` threads."""
    return plane().batch(num_ants, num_threads)
