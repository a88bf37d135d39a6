"""The task of the base policies: ants walk in a direction, which changes now and then.

Each ant has a direction, drawn anew every Uniform(1, 40) steps, so that a policy meets the states in which
another one has left the ant. The reward of a step is

    v∥ − c₁ |v⊥| − c₂ Σ a² − c₃ (1 − up) − c₄ [fell]

with the mean velocity along and across the direction; the paper has v∥ alone. An ant that tips over (up <
0.4) is reset.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from ggpi.envs.ant import CONTROL_STEP, INDEX, SPEC, SparseAntVector
from ggpi.envs.ant.physics import Ground
from ggpi.envs.directions import EIGHT
from ggpi.lab.cells import Metrics

UP_Z = SPEC.index("up_z")


@dataclass(frozen=True)
class Walk:
    """The walking task and its reward."""

    num_ants: int = 512
    """Ants that walk at the same time."""
    switch_every: int = 40
    """A direction lasts Uniform(1, this) steps; 0: until the end of the episode."""
    lateral: float = 0.3
    """Penalty c₁ of velocity across the direction."""
    effort: float = 0.02
    """Penalty c₂ of the squared action."""
    tilt: float = 1.5
    """Penalty c₃ of leaning over."""
    fall: float = 50.0
    """Penalty c₄ of tipping over."""
    tipped: float = 0.4
    """An ant whose up-axis has a smaller z-component than this has fallen."""
    world: Literal["ant", "ogbench-ant"] = "ant"
    """Whose ant: ours in a plane, in four directions, or OGBench's among pillars, in eight."""
    rough_rounds: int = 0
    """Rounds of OGBench's ant with a faster integrator, before its own."""
    careful_after: int = 900
    """Rounds until leaning over and swaying cost twice as much, and falling six times."""

    @property
    def num_directions(self) -> int:
        return 4 if self.world == "ant" else len(EIGHT)

    def ground(self, rough: bool = False) -> Ground | None:
        """What ants walk on; None for a plane."""
        if self.world == "ant":
            return None
        from ggpi.envs.ant.ogbench_ground import ogbench_ground

        return ogbench_ground("implicitfast" if rough else "RK4")

    def careful(self) -> Walk:
        """The same task with higher penalties."""
        return replace(self, lateral=2 * self.lateral, tilt=2 * self.tilt, fall=6 * self.fall)


@dataclass(frozen=True)
class Steps:
    """One step of every ant, or many stacked: time first, then ants."""

    state: Any
    direction: Any
    action: Any
    next_state: Any
    reward: Any
    fell: Any
    """The walk ended here, by tipping over; later rewards are 0."""
    cut: Any
    """The next row is not what follows: a fall, a new episode or a new direction."""


class Walkers:
    """The ants, their directions, and all randomness: `save` and `restore` make a run resumable to the bit."""

    def __init__(self, walk: Walk, seed: int, num_threads: int = 2, rough: bool = False):
        self.walk, self.rough = walk, rough
        self.env = SparseAntVector(
            walk.num_ants, target=None, num_threads=num_threads, ground=walk.ground(rough)
        )
        self.rng = np.random.default_rng([seed, 1])
        self.states, _ = self.env.reset(seed=seed * 1_000_003)
        self.direction = self.rng.integers(walk.num_directions, size=walk.num_ants)
        self.left = self._spans(walk.num_ants)

    def _spans(self, count: int) -> np.ndarray:
        """How many steps new directions last."""
        if not self.walk.switch_every:
            return np.full(count, np.iinfo(np.int64).max)
        return self.rng.integers(1, self.walk.switch_every, size=count, endpoint=True)

    def step(self, action: np.ndarray) -> Steps:
        """Lets every ant take one step, then switches some directions and resets the fallen."""
        states, direction = self.states, self.direction.copy()
        seen, _, terminated, truncated, info = self.env.step(action)
        ended = terminated | truncated
        following = seen.copy()
        for i in np.flatnonzero(ended):
            following[i] = info["final_obs"][i]
        fell = terminated | (following[:, UP_Z] < self.walk.tipped)
        reward = rewards(self.walk, states, action, following, direction, fell, self.env.ground.control_step)
        again = fell & ~ended
        if again.any():
            seen, _ = self.env.reset(options={"reset_mask": again})
        self.left -= 1
        new = (self.left <= 0) | ended | fell
        count = int(new.sum())
        self.direction[new] = self.rng.integers(self.walk.num_directions, size=count)
        self.left[new] = self._spans(count)
        self.states = seen
        return Steps(states, direction, action, following, reward, fell, new)

    def save(self) -> tuple[dict[str, np.ndarray], Metrics]:
        """Everything that the future depends on, as arrays and JSON."""
        env = self.env
        arrays = {
            "states": self.states,
            "direction": self.direction,
            "left": self.left,
            "simulation": env.batch.state.copy(),
            "steps": env.steps,
            "lengths": env.lengths,
        }
        rngs = [rng.bit_generator.state for rng in (self.rng, *env.rngs)]
        return arrays, {"rngs": rngs}

    def restore(self, arrays: dict[str, np.ndarray], about: Metrics) -> None:
        """Resumes exactly where `save` was called."""
        env = self.env
        self.states, self.direction, self.left = arrays["states"], arrays["direction"], arrays["left"]
        env.resume(arrays["simulation"], arrays["steps"], arrays["lengths"])
        for rng, state in zip((self.rng, *env.rngs), about["rngs"], strict=True):
            rng.bit_generator.state = state


def rewards(
    walk: Walk,
    states: np.ndarray,
    action: np.ndarray,
    following: np.ndarray,
    direction: np.ndarray,
    fell: np.ndarray,
    seconds: float = CONTROL_STEP,
) -> np.ndarray:
    """The rewards of steps."""
    along, across = (moved / seconds for moved in displacements(states, following, direction))
    effort = (np.clip(action, -1, 1) ** 2).sum(axis=-1)
    lean = 1 - following[..., UP_Z]
    reward = (
        along - walk.lateral * np.abs(across) - walk.effort * effort - walk.tilt * lean - walk.fall * fell
    )
    return reward.astype(np.float32)


def displacements(
    states: np.ndarray, following: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far steps lead along and across their directions."""
    moved = following[..., INDEX["place"]] - states[..., INDEX["place"]]
    heading = EIGHT[direction]
    along = (moved * heading).sum(axis=-1)
    across = heading[..., 0] * moved[..., 1] - heading[..., 1] * moved[..., 0]
    return along, across


def stack(steps: list[Steps]) -> Steps:
    """Consecutive steps as one, time first."""
    columns = zip(*(as_dict(step).values() for step in steps), strict=True)
    return Steps(*(np.stack(column) for column in columns))


def as_dict(steps: Steps) -> dict[str, np.ndarray]:
    """The columns by name."""
    return {field.name: getattr(steps, field.name) for field in fields(steps)}


def summary(steps: Steps) -> dict[str, float]:
    """How well the ants walked: distance per step along and across, falls per step, reward."""
    along, across = displacements(steps.state, steps.next_state, steps.direction)
    return {
        "along": float(along.mean()),
        "across": float(np.abs(across).mean()),
        "falls": float(steps.fell.mean()),
        "reward": float(steps.reward.mean()),
    }
