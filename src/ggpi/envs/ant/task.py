"""The task: starts, targets and the reward of the ant.

An episode starts at rest, uniform over a 20 × 20 square, with a random heading. A target lies at distance 2
to 4 in the middle 30° of a quadrant, so that no single direction leads there. The reward is 1 for a
transition that ends within `radius` of it. Reaching it ends the evaluation episode, but is not a terminal state:
the target changes, the models do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

Target = np.ndarray | str | None
"""A place (x, y), "random", or None for episodes without a target."""

HALF_WIDTH = 10.0
DISTANCES = (2.0, 4.0)
STEPS_WITH_TARGET = 150
STEPS_WITHOUT = (100, 140)
STANDING = np.array([0, 0, 0.55, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1.0])
"""Positions of an ant at rest: the model file's own `init_qpos`."""


@dataclass(frozen=True)
class Start:
    """The start of an episode, its target, and the number of steps after which it is truncated."""

    qpos: np.ndarray
    target: np.ndarray | None
    length: int


def sample_start(
    target: Target, rng: np.random.Generator, is_free: Callable[[np.ndarray], bool] = lambda place: True
) -> Start:
    """A random start where it is free; the target is the given one, a random one ("random"), or none."""
    qpos = start(rng)
    while not is_free(qpos[:2]):
        qpos = start(rng)
    place = (
        None
        if target is None
        else np.array(target)
        if not isinstance(target, str)
        else draw_target(qpos[:2], rng)
    )
    length = int(rng.integers(*STEPS_WITHOUT, endpoint=True)) if target is None else STEPS_WITH_TARGET
    return Start(qpos, place, length)


def start(rng: np.random.Generator) -> Float[np.ndarray, "15"]:
    """Positions of an ant at rest at a random place, with a random heading."""
    qpos = STANDING.copy()
    qpos[:2] = rng.uniform(-HALF_WIDTH, HALF_WIDTH, 2)
    half_yaw = rng.uniform(-np.pi, np.pi) / 2
    qpos[3], qpos[6] = np.cos(half_yaw), np.sin(half_yaw)
    return qpos


def draw_target(place: Float[np.ndarray, "2"], rng: np.random.Generator) -> Float[np.ndarray, "2"]:
    """A target near `place`: distance 2 to 4, in the middle 30° of a random quadrant."""
    angle = np.deg2rad(90 * rng.integers(4) + rng.uniform(30, 60))
    return place + rng.uniform(*DISTANCES) * np.array([np.cos(angle), np.sin(angle)])


def reached(state: ArrayLike, target: ArrayLike, radius: float = 0.5) -> Float[Array, "*n"]:
    """ρ(x′; target): 1 where the ant is within `radius` of the target, else 0; a JAX function."""
    apart = jnp.asarray(state)[..., :2] - jnp.asarray(target)
    return (jnp.sum(apart**2, axis=-1) <= radius**2).astype(jnp.float32)


def near(place: np.ndarray, target: np.ndarray | None, radius: float) -> np.ndarray | np.bool_:
    """The same in NumPy, for stepping; nothing is near without a target (None, or NaN in its row)."""
    if target is None:
        return np.zeros(place.shape[:-1], bool)
    return ((place - target.astype(np.float32)) ** 2).sum(axis=-1) <= np.float32(radius**2)


def reason(diverged: bool, reached: bool) -> str | None:
    """Why an episode terminated, None if it did not."""
    return "diverged" if diverged else "reached" if reached else None


def info(target: np.ndarray | None, reason: str | None = None) -> dict[str, Any]:
    """What `info` says: the target if there is one, and the reason of an end."""
    said = {} if target is None else {"target": target.copy()}
    return said if reason is None else said | {"reason": reason, "world_ended": reason == "diverged"}


def check_target(target: object) -> Target:
    """The target, or an error if it is neither "random", None nor two finite numbers."""
    if target is None or (isinstance(target, str) and target == "random"):
        return target
    try:
        values = np.asarray(target, float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.shape != (2,) or not np.isfinite(values).all():
        raise ValueError(f"a target is two finite numbers (x, y), 'random' or None, got {target!r}")
    return values


def check_radius(radius: float) -> float:
    """A positive, finite radius."""
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"the radius of a target is a positive number, got {radius}")
    return float(radius)
