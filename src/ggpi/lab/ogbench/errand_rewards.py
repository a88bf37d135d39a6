"""Rewards of `ogbench-errands`: rooms with weights, a goal with places to avoid, and the weights of a tour."""

import itertools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi.lab.ogbench.models import GAMMA
from ggpi.rewards import Reward, arrival
from ggpi.types import Numbers

Left = tuple[bool, ...]
"""Which rooms are left."""


class Rooms(eqx.Module):
    """The sum of the weights of all discs that a state is in."""

    places: Float[Array, "n 2"]
    weights: Float[Array, "n"]
    radius: Float[Array, ""]

    def __call__(self, state: Numbers) -> Float[Array, ""]:
        """Σ wᵢ 1[x in room i]"""
        inside = jnp.linalg.norm(jnp.asarray(state) - self.places, axis=-1) <= self.radius
        return (self.weights * inside).sum()


class Avoiding(eqx.Module):
    """1 in a disc, and a penalty in squares."""

    goal: Rooms
    squares: Float[Array, "m 2"]
    half: Float[Array, ""]
    penalty: Float[Array, ""]

    def __call__(self, state: Numbers) -> Float[Array, ""]:
        """1[x at the goal] − penalty · 1[x in a square]"""
        apart = jnp.abs(jnp.asarray(state) - self.squares).max(axis=-1)
        return self.goal(state) - self.penalty * (apart <= self.half).any()


def rooms(places: np.ndarray, weights: np.ndarray, radius: float) -> Reward:
    """Σ wᵢ 1[x within a radius of place i]."""
    return arrival(Rooms(*(jnp.asarray(part, jnp.float32) for part in (places, weights, radius))))


def avoiding(goal: np.ndarray, radius: float, squares: np.ndarray, half: float, penalty: float) -> Reward:
    """1 at a goal, minus a penalty in squares of half a width."""
    disc = Rooms(*(jnp.asarray(part, jnp.float32) for part in (goal[None], np.ones(1), radius)))
    return arrival(Avoiding(disc, *(jnp.asarray(part, jnp.float32) for part in (squares, half, penalty))))


def tour_weights(
    landmarks: np.ndarray, solve: Callable[[Reward], np.ndarray], places: np.ndarray, radius: float
) -> dict[Left, np.ndarray]:
    """(1−γ) V_{S∖i}(room i) for every set S of rooms that are left; 0 for rooms that are not.

    Args:
        landmarks: states [M, 2].
        solve: V of a reward at the landmarks [M].
        places: the middles of the rooms [n, 2].
        radius: of the rooms.
    """
    nearest = np.linalg.norm(landmarks[:, None] - places, axis=2).argmin(axis=0)
    found, values = dict[Left, np.ndarray](), dict[Left, np.ndarray]()
    for left in sorted(itertools.product((False, True), repeat=len(places)), key=sum):
        if not any(left):
            values[left] = np.ones(len(landmarks))
            continue
        after = [tuple(x and k != i for k, x in enumerate(left)) for i in range(len(places))]
        value = [values[rest][at] if rest != left else 0.0 for rest, at in zip(after, nearest, strict=True)]
        found[left] = (1 - GAMMA) * np.array(value)
        values[left] = solve(rooms(places, found[left], radius))
    return found
