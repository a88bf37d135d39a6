"""The bodies in OGBench's mazes, a ball and an ant: their observations, and many steps at once.

A *ball* of radius 0.7 moves by 0.2 a in a step and is pushed out of walls by MuJoCo. Its velocity is set to 0 before
each step, so the state is (x, y).

An *ant* has 15 positions, of which 3 to 6 are the quaternion of its orientation, and 14 velocities: the 29 numbers of
OGBench's observation, in MuJoCo's order. Actions are motor commands in the order of OGBench's file. A step is five
of RK4, from the observation alone: OGBench's own carries the constraint solver's last solution over as its first guess,
and differs by what the solver leaves undone, less than 1e-6.
"""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ggpi.data import StateSpec
from ggpi.envs.pool import rolled_out

STRIDE = 0.2
"""How far an action of 1 moves the ball."""
LEGS = tuple(f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle"))
POSITIONS = ("x", "y", "z", *(f"quaternion_{axis}" for axis in "wxyz"), *LEGS)
VELOCITIES = (
    *(f"velocity_{axis}" for axis in "xyz"),
    *(f"spin_{axis}" for axis in "xyz"),
    *(f"{joint}_speed" for joint in LEGS),
)
STANDING = np.array([0, 0, 0.55, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1.0])
"""Positions of an ant at rest: the model file's own `init_qpos`."""
NOISE = 0.1
"""What OGBench adds to first positions and velocities."""


@runtime_checkable
class Body(Protocol):
    """What differs between the bodies."""

    @property
    def spec(self) -> StateSpec: ...

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of positions, velocities and actions."""
        ...

    @property
    def margin(self) -> float:
        """How far from walls it starts."""
        ...

    def standing(self, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """First states [n, D] at places [n, 2]."""
        ...

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The states after a step."""
        ...


@dataclass(eq=False)
class Ball:
    """A ball whose state is its place."""

    model: Any
    substeps: int
    num_threads: int

    spec = StateSpec(("x", "y"), places=(0, 1))
    sizes = (2, 2, 2)
    margin = 0.7

    def standing(self, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return places

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        physics = np.zeros((len(states), 5))  # time, place, velocity
        physics[:, 1:3] = states + STRIDE * np.clip(actions, -1, 1)
        still = np.zeros((len(states), self.substeps, 2))
        return rolled_out(self.model, self._data, physics, still)[:, -1, 1:3]

    @cached_property
    def _data(self) -> list[Any]:
        """Room to step it in each thread."""
        import mujoco

        return [mujoco.MjData(self.model) for _ in range(self.num_threads)]


@dataclass(eq=False)
class Ant:
    """OGBench's ant; models see all of its state, and predict where it goes."""

    model: Any
    substeps: int
    num_threads: int
    _batch: Any = None

    spec = StateSpec((*POSITIONS, *VELOCITIES), places=(0, 1), predicted=(0, 1))
    sizes = (15, 14, 8)
    margin = 1.2

    def standing(self, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Ants with any heading, otherwise as OGBench starts them."""
        qpos = STANDING + rng.uniform(-NOISE, NOISE, (len(places), len(STANDING)))
        half_yaw = rng.uniform(-np.pi, np.pi, len(places)) / 2
        qpos[:, :2], qpos[:, 3], qpos[:, 6] = places, np.cos(half_yaw), np.sin(half_yaw)
        qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
        return np.concatenate([qpos, NOISE * rng.standard_normal((len(places), 14))], axis=1)

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        count = len(states)
        batch = self._room(count)
        batch.state[:count] = 0
        batch.qpos[:count], batch.qvel[:count], batch.ctrl[:count] = states[:, :15], states[:, 15:], actions
        batch.step(ids=np.arange(count), nstep=self.substeps)
        return np.concatenate([batch.qpos[:count], batch.qvel[:count]], axis=1)

    def _room(self, count: int) -> Any:
        """Simulations of so many ants, or more."""
        from mujoco.batch import Batch

        if self._batch is None or len(self._batch.qpos) < count:
            self._batch = Batch(self.model, 1 << (count - 1).bit_length(), self.num_threads)
        return self._batch


BODIES: dict[str, type[Ball | Ant]] = {"pointmaze": Ball, "antmaze": Ant}
"""By the first word of a maze's name."""
