"""The ant's four-fold symmetry, exact in its dynamics.

The plane looks the same after any turn of the world, and so does the ant after a quarter turn of its
body about its own axis, with the legs renamed. Both together bring any state to one where the wanted
direction is +x and the body's x-axis is the one of ±x, ±y that points there best:

    canonical(state, direction)       the state as seen so, with the number of renamed legs
    back(action, legs)                the action for the legs as they are named in the world

One network that acts in canonical states so serves all directions. They are 0: +x, 1: +y, 2: −x, 3: −y, and from 4
those in between, in the order of `DIAGONALS`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi.envs.ant.observation import INDEX, NAMES
from ggpi.envs.directions import EIGHT, HEADINGS

TURNED = ("place", "forward", "up", "velocity", "spin")
IS_X, IS_Y = (np.isin(np.arange(len(NAMES)), [INDEX[group].start + i for group in TURNED]) for i in (0, 1))
LEGGED = {"joints": 2, "joint_speeds": 2, "feet": 1}


def turn_world(state: Float[Array, "35"], quarters: Int[Array, ""] | int) -> Float[Array, "35"]:
    """The state after turning the world by quarter turns, anticlockwise seen from above."""
    return _turned(state, *jnp.asarray(HEADINGS)[quarters % 4])


def _turned(state: Float[Array, "35"], cos: Float[Array, ""], sin: Float[Array, ""]) -> Float[Array, "35"]:
    """The state after turning the world by an angle."""
    from_x, from_y = jnp.roll(state, 1), jnp.roll(state, -1)
    return jnp.where(IS_X, cos * state - sin * from_y, jnp.where(IS_Y, sin * from_x + cos * state, state))


def rename_legs(state: Float[Array, "35"], legs: Int[Array, ""] | int) -> Float[Array, "35"]:
    """The same ant with leg k + `legs` called leg k: its x-axis is turned by as many quarter turns."""
    forward = state[INDEX["forward"]]
    ahead = jnp.where(legs % 2 == 1, _left(state), forward)
    parts = {group: _renamed(state[INDEX[group]], numbers, legs) for group, numbers in LEGGED.items()}
    return jnp.concatenate(
        [
            state[: INDEX["forward"].start],
            jnp.where(legs % 4 >= 2, -ahead, ahead),
            state[INDEX["up"]],
            parts["joints"],
            state[INDEX["velocity"]],
            state[INDEX["spin"]],
            parts["joint_speeds"],
            parts["feet"],
        ]
    )


def _left(state: Float[Array, "35"]) -> Float[Array, "3"]:
    """The body's y-axis."""
    return jnp.cross(state[INDEX["up"]], state[INDEX["forward"]])


def _renamed(values: Float[Array, "n"], numbers: int, legs: Int[Array, ""] | int) -> Float[Array, "n"]:
    """Values of the legs, so many `numbers` of each, as `jnp.roll(values, -numbers * legs)`, which XLA would gather."""
    once = jnp.where(legs % 2 == 1, jnp.roll(values, -numbers), values)
    return jnp.where(legs % 4 >= 2, jnp.roll(once, -2 * numbers), once)


def canonical(
    state: Float[Array, "35"], direction: Int[Array, ""] | int
) -> tuple[Float[Array, "35"], Int[Array, ""]]:
    """The state turned so that `direction` is +x, legs renamed so that the body faces there; and by how many."""
    x, y = jnp.asarray(EIGHT)[direction]
    turned = _turned(state, x, -y)
    x, y = turned[INDEX["forward"]][0], _left(turned)[0]
    legs = jnp.where(x >= abs(y), 0, jnp.where(y >= abs(x), 1, jnp.where(-x >= abs(y), 2, 3)))
    return rename_legs(turned, legs), legs


def back(action: Float[Array, "A"], legs: Int[Array, ""] | int) -> Float[Array, "A"]:
    """The action with the legs' own names."""
    return _renamed(action, 2, -legs)


def forth(action: Float[Array, "A"], legs: Int[Array, ""] | int) -> Float[Array, "A"]:
    """The action with the legs renamed: the inverse of `back`."""
    return _renamed(action, 2, legs)
