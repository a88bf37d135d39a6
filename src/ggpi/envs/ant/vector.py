"""Many sparse-reward ants at once, stepped in compiled threads: a `gymnasium.vector.VectorEnv`.

Autoreset is `SAME_STEP`: when an episode ends, `step` returns the first observation of the next one, and
the last observation of the old one is in `info["final_obs"]`, its info in `info["final_info"]`;
`info["_final_obs"]` tells in which rows. Ant i behaves bit for bit as a `SparseAnt` that was reset with
seed + i.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ggpi.envs.ant import physics, task
from ggpi.envs.ant.observation import SPEC, observe
from ggpi.envs.ant.single import ACTIONS, OBSERVATIONS


class SparseAntVector(VectorEnv):
    """N ants, each in a plane of its own; `target` is "random", a place (x, y) for all, or None for training.

    `reset(options={"target": …, "reset_mask": …})` gives the target anew, and resets only the ants of a
    boolean mask [N]; `ground` is another body or floor. The numbers of threads and of ants do not change what one ant
    does.
    """

    metadata = {  # noqa: RUF012, as gymnasium writes it
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": [],
        "render_fps": 10,
    }
    spec_of_state = SPEC

    def __init__(
        self,
        num_envs: int = 1,
        target: object = "random",
        radius: float = 0.5,
        num_threads: int = physics.THREADS,
        ground: physics.Ground | None = None,
    ):
        if num_envs < 1 or num_threads < 1:
            raise ValueError(f"ants and threads are at least one, got {num_envs} and {num_threads}")
        self.num_envs, self.radius = num_envs, task.check_radius(radius)
        self.chosen = task.check_target(target)
        self.single_observation_space, self.single_action_space = OBSERVATIONS, ACTIONS
        self.observation_space = batch_space(OBSERVATIONS, num_envs)
        self.action_space = batch_space(ACTIONS, num_envs)
        self.reward_fn = partial(task.reached, radius=self.radius)
        self.ground = ground or physics.plane()
        self.batch = self.ground.batch(num_envs, num_threads)
        self.rngs = [np.random.default_rng() for _ in range(num_envs)]
        self.steps, self.lengths = np.zeros((2, num_envs), int)
        self.targets = np.full((num_envs, 2), np.nan)
        self._observations = np.zeros((num_envs, 35), np.float32)

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None):
        options = options or {}
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise ValueError(f"reset_mask is one boolean for each of {self.num_envs} ants, got {mask!r}")
        self.chosen = task.check_target(options.get("target", self.chosen))
        self._seed(seed)
        self._begin(np.flatnonzero(mask))
        return self._observations.copy(), self._info()

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is None:
            return
        if len(seeds) != self.num_envs:
            raise ValueError(f"give one seed, or one for each of {self.num_envs} ants, got {len(seeds)}")
        for i, each in enumerate(seeds):
            if each is not None:
                self.rngs[i], _ = np_random(each)

    def _begin(self, rows: np.ndarray) -> None:
        """New episodes for the ants in `rows`."""
        if not len(rows):
            return
        episodes = [task.sample_start(self.chosen, self.rngs[i], self.ground.is_free) for i in rows]
        batch = self.batch
        batch.state[rows] = 0
        batch.qpos[rows] = [episode.qpos for episode in episodes]
        self.steps[rows] = 0
        self.lengths[rows] = [episode.length for episode in episodes]
        self.targets[rows] = [(np.nan, np.nan) if e.target is None else e.target for e in episodes]
        self._observations[rows] = observe(batch.qpos[rows], batch.qvel[rows])

    def step(self, actions: Any):
        batch = self.batch
        batch.ctrl[:] = physics.controls(physics.check_action(actions, (self.num_envs, 8)))
        batch.step(nstep=self.ground.substeps)
        self.steps += 1
        bad = physics.diverged(batch.qpos, batch.qvel)
        seen = observe(batch.qpos, batch.qvel)
        np.copyto(self._observations, seen, where=~bad[:, None])
        near = ~bad & task.near(self._observations[:, :2], self.targets, self.radius)
        terminated = bad | near
        truncated = ~terminated & (self.steps >= self.lengths)
        ended = terminated | truncated
        info = self._finals(ended, bad, near)
        self._begin(np.flatnonzero(ended))
        return self._observations.copy(), near.astype(np.float64), terminated, truncated, self._info() | info

    def _finals(self, ended: np.ndarray, bad: np.ndarray, near: np.ndarray) -> dict[str, Any]:
        """The last observations and infos of the ended episodes."""
        info: dict[str, Any] = {}
        for i in np.flatnonzero(ended):
            target = None if np.isnan(self.targets[i, 0]) else self.targets[i]
            about = task.info(target, task.reason(bool(bad[i]), bool(near[i])))
            last = {"final_obs": self._observations[i].copy(), "final_info": about}
            info = self._add_info(info, last, int(i))
        return info

    def _info(self) -> dict[str, Any]:
        if np.isnan(self.targets).all():
            return {}
        return {"target": self.targets.copy(), "_target": np.ones(self.num_envs, bool)}

    def resume(self, simulation: np.ndarray, steps: np.ndarray, lengths: np.ndarray) -> None:
        """Puts all ants where they were when `batch.state`, `steps` and `lengths` were copied."""
        self.batch.state[:] = simulation
        self.steps[:], self.lengths[:] = steps, lengths
        self._observations[:] = observe(self.batch.qpos, self.batch.qvel)
