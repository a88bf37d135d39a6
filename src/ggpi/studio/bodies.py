"""Bodies of agents: what moves when an agent acts, in each kind of world."""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np

from ggpi.data.spaces import Reader, executed
from ggpi.envs.environment import Dynamics

At = Callable[[float, float], np.ndarray | None]
"""(x, y) ↦ the state of a body that is put there; None where it cannot be."""


@runtime_checkable
class Body(Protocol):
    """The body of one agent."""

    state: np.ndarray
    has_ended: bool
    """The environment has ended the episode."""

    def put(self, x: float, y: float) -> bool:
        """Moves the body to a place; False where it cannot be."""
        ...

    def step(self, action: np.ndarray) -> np.ndarray | None:
        """Acts; poses [frames, shapes, 7] on the way, where the body has three dimensions."""
        ...


class ArrayBody:
    """A body whose world steps on arrays, from any state."""

    has_ended = False

    def __init__(self, dynamics: Dynamics, state: np.ndarray, at: At | None, seed: int):
        self.dynamics, self.state, self.at = dynamics, state, at
        self.rng = np.random.default_rng(seed)

    def put(self, x: float, y: float) -> bool:
        state = None if self.at is None else self.at(x, y)
        if state is not None:
            self.state = state
        return state is not None

    def step(self, action: np.ndarray) -> None:
        moved = self.dynamics.step(self.state[None], np.asarray(action)[None], self.rng)
        self.state = np.asarray(moved[0], self.state.dtype)


class GymBody:
    """A Gymnasium environment; it cannot be put anywhere."""

    def __init__(self, env: gymnasium.Env, read: Reader, seed: int):
        self.env, self.read = env, read
        self.state = read(env.reset(seed=seed)[0])
        self.has_ended = False

    def put(self, x: float, y: float) -> bool:
        return False

    def step(self, action: np.ndarray) -> None:
        observed, _, terminated, truncated, _ = self.env.step(executed(action, self.env.action_space))
        self.state = self.read(observed)
        self.has_ended = bool(terminated or truncated)


class AntBody:
    """The ant, with a pose of each of its shapes for every substep."""

    has_ended = False

    def __init__(self, seed: int):
        import mujoco

        from ggpi.envs.ant import physics, task

        self.physics, self.mujoco = physics, mujoco
        self.data = mujoco.MjData(physics.model())
        self.data.qpos[:] = task.start(np.random.default_rng(seed))
        self.data.qpos[:2] = 0.0
        self._look()

    def put(self, x: float, y: float) -> bool:
        from ggpi.envs.ant import task

        turned = self.data.qpos[3:7].copy()
        self.mujoco.mj_resetData(self.physics.model(), self.data)
        self.data.qpos[:] = task.STANDING
        yaw = np.arctan2(
            2 * (turned[0] * turned[3] + turned[1] * turned[2]), 1 - 2 * (turned[2] ** 2 + turned[3] ** 2)
        )
        self.data.qpos[[3, 6]] = np.cos(yaw / 2), np.sin(yaw / 2)
        self.data.qpos[:2] = x, y
        self._look()
        return True

    def step(self, action: np.ndarray) -> np.ndarray:
        physics = self.physics
        self.data.ctrl[:] = physics.controls(physics.check_action(action, (8,)))
        poses = []
        for _ in range(physics.SUBSTEPS):
            self.mujoco.mj_step(physics.model(), self.data)
            poses.append(self.poses())
        self.has_ended = bool(physics.diverged(self.data.qpos, self.data.qvel))
        if not self.has_ended:
            self._look()
        return np.stack(poses)

    def _look(self) -> None:
        from ggpi.envs.ant.observation import observe

        self.mujoco.mj_forward(self.physics.model(), self.data)
        self.state = observe(self.data.qpos, self.data.qvel)

    def poses(self) -> np.ndarray:
        """The place and the quaternion of every shape but the floor [shapes, 7]."""
        found = np.empty((self.data.geom_xpos.shape[0], 7), np.float32)
        found[:, :3] = self.data.geom_xpos
        for i, matrix in enumerate(self.data.geom_xmat):
            quaternion = np.zeros(4)
            self.mujoco.mju_mat2Quat(quaternion, matrix)
            found[i, 3:] = quaternion
        return found[1:]


def ant_geometry() -> list[dict[str, Any]]:
    """The shapes of the ant but for the floor: spheres and capsules, with radius and half length."""
    from ggpi.envs.ant import physics

    model = physics.model()
    kinds = {2: "sphere", 3: "capsule"}
    return [
        {"kind": kinds[int(model.geom_type[i])], "size": model.geom_size[i][:2].tolist()}
        for i in range(1, model.ngeom)
    ]
