"""One sparse-reward ant: `gymnasium.make("ggpi/SparseAnt-v0")`."""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from ggpi.envs.ant import physics, task
from ggpi.envs.ant.dynamics import restore
from ggpi.envs.ant.observation import SPEC, observe
from ggpi.envs.ant.render import Camera

OBSERVATIONS = Box(-np.inf, np.inf, (35,), np.float32)
ACTIONS = Box(-1.0, 1.0, (8,), np.float32)


class SparseAnt(gymnasium.Env):
    """An ant in an infinite plane, with reward 1 for a step that ends near its target.

    `target` is "random", a place (x, y), or None for episodes without reward of 100 to 140 steps; it can be
    given anew in `reset(options={"target": …})`, where `state` is an observation to start from. `info` holds
    the target when there is one, and `terminated` comes with `info["reason"]`: "reached", which ends the episode but
    is not a terminal state (`info["world_ended"]` is False), or "diverged".

    Paper: App E.1
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012, as gymnasium writes it
    spec_of_state = SPEC

    def __init__(self, target: object = "random", radius: float = 0.5, render_mode: str | None = None):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is None or 'rgb_array', got {render_mode!r}")
        self.chosen, self.radius = task.check_target(target), task.check_radius(radius)
        self.render_mode = render_mode
        self.observation_space, self.action_space = OBSERVATIONS, ACTIONS
        self.reward_fn = partial(task.reached, radius=self.radius)
        self.data = mujoco.MjData(physics.model())
        self.target: np.ndarray | None = None
        self.steps = self.length = 0
        self._camera: Camera | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        chosen = task.check_target((options or {}).get("target", self.chosen))
        episode = task.sample_start(chosen, self.np_random)
        mujoco.mj_resetData(physics.model(), self.data)
        self.data.qpos[:] = episode.qpos
        if (state := (options or {}).get("state")) is not None:
            (self.data.qpos[:],), (self.data.qvel[:],) = restore(np.asarray(state, np.float32)[None])
        self.target, self.length, self.steps = episode.target, episode.length, 0
        self._observation = observe(self.data.qpos, self.data.qvel)
        return self._observation.copy(), task.info(self.target)

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.data.ctrl[:] = physics.controls(physics.check_action(action, (8,)))
        mujoco.mj_step(physics.model(), self.data, physics.SUBSTEPS)
        self.steps += 1
        bad = bool(physics.diverged(self.data.qpos, self.data.qvel))
        if not bad:
            self._observation = observe(self.data.qpos, self.data.qvel)
        near = not bad and bool(task.near(self._observation[:2], self.target, self.radius))
        reason = task.reason(bad, near)
        truncated = reason is None and self.steps >= self.length
        info = task.info(self.target, reason)
        return self._observation.copy(), float(near), reason is not None, truncated, info

    def render(self) -> np.ndarray | None:
        if self.render_mode is None:
            return None
        self._camera = self._camera or Camera()
        return self._camera.picture(self.data, self.target, self.radius)

    def close(self) -> None:
        if self._camera is not None:
            self._camera.close()
            self._camera = None
