"""The ant's step from any observed states: so that true futures can be simulated from them.

The 35 coordinates determine positions and velocities (`restore` inverts `observe`); only the solver's warm start is
lost, and the rounding to float32. An ant whose simulation diverges stays where it was.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ggpi.envs.ant import physics
from ggpi.envs.ant.observation import INDEX, SIGNS, SPEC, observe


class AntDynamics:
    """`step(states, actions, rng)` on arrays [n, 35] and [n, 8]; nothing is random in it."""

    spec = SPEC

    def __init__(self, num_threads: int = physics.THREADS):
        self._num_threads, self._batch = num_threads, physics.batch(64, num_threads)

    def step(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """The states after one control step."""
        states = np.asarray(states, np.float32)
        count = len(states)
        if count > len(self._batch.qpos):
            self._batch = physics.batch(1 << (count - 1).bit_length(), self._num_threads)
        batch = self._batch
        batch.state[:count] = 0
        batch.qpos[:count], batch.qvel[:count] = restore(states)
        batch.ctrl[:count] = physics.controls(physics.check_action(actions, (count, 8)))
        batch.step(ids=np.arange(count), nstep=physics.SUBSTEPS)
        qpos, qvel = batch.qpos[:count], batch.qvel[:count]
        bad = physics.diverged(qpos, qvel)
        return np.where(bad[:, None], states, observe(np.where(bad[:, None], 1.0, qpos), qvel))


def restore(states: Float[np.ndarray, "n 35"]) -> tuple[np.ndarray, np.ndarray]:
    """Generalised positions [n, 15] and velocities [n, 14] of observed states: the inverse of `observe`."""
    states = np.asarray(states, float)
    forward, up = _orthonormal(states[:, INDEX["forward"]], states[:, INDEX["up"]])
    axes = np.stack([forward, np.cross(up, forward), up], axis=1)
    quaternion = Rotation.from_matrix(axes.transpose(0, 2, 1)).as_quat(scalar_first=True)
    spin = np.einsum("nij,nj->ni", axes, states[:, INDEX["spin"]])
    qpos = np.concatenate([states[:, :3], quaternion, states[:, INDEX["joints"]] * SIGNS], axis=1)
    qvel = np.concatenate(
        [states[:, INDEX["velocity"]], spin, states[:, INDEX["joint_speeds"]] * SIGNS], axis=1
    )
    return qpos, qvel


def _orthonormal(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = first / np.linalg.norm(first, axis=1, keepdims=True)
    second = second - (second * first).sum(axis=1, keepdims=True) * first
    return first, second / np.linalg.norm(second, axis=1, keepdims=True)
