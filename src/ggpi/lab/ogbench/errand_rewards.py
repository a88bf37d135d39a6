"""Rewards of `ogbench-errands`: rooms with weights, a goal with places to avoid, weights of a tour and of a patrol."""

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


def patrol_weights(
    landmarks: np.ndarray, solve: Callable[[Reward], np.ndarray], places: np.ndarray, radius: float
) -> np.ndarray:
    """(1−γ)(1 + γ W_{i+1}(room i)) for each room i [n]: what its visit counts when rooms are visited in turn for ever.

    Let W_i(x) be the best E Σ_n γ^{T_n − 1} over the times T_1 < T_2 < … of visits to rooms i, i+1, …, in turn: each
    counts 1 on arrival. With T the time of the first,

        W_i(x) = E γ^{T−1} (1 + γ W_{i+1}(X_T)),

    which is V of the reward ρ_i = (1−γ)(1 + γ W_{i+1}(room i)) 1[x in room i], because staying in room i has the value
    1 + γ W_{i+1}(room i). V is proportional to the weight of a single room, so that one solution for each room is
    enough: with g_i = V of (1−γ) 1[x in room i] at room i−1, the values u_i = W_i(room i−1) are the fixed point of

        u_i = g_i (1 + γ u_{i+1}),

    a contraction: g_i ≤ 1. It is found by going round until nothing changes.

    Args:
        landmarks: states [M, D].
        solve: V of a reward at the landmarks [M].
        places: the middles of the rooms [n, 2].
        radius: of the rooms.
    """
    nearest = np.linalg.norm(landmarks[:, None, :2] - places, axis=2).argmin(axis=0)
    single = (1 - GAMMA) * np.eye(len(places))
    values = [solve(rooms(places, weights, radius)) for weights in single]
    g = np.array([value[at] for value, at in zip(values, np.roll(nearest, 1), strict=True)])
    u, before = g, np.zeros(len(g))
    while np.abs(u - before).max() > 1e-12:
        u, before = g * (1 + GAMMA * np.roll(u, -1)), u
    return (1 - GAMMA) * (1 + GAMMA * np.roll(u, -1))
