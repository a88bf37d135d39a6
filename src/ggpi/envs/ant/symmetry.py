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
from jaxtyping import Array, Float, Int

from ggpi.envs.ant.observation import INDEX
from ggpi.envs.directions import EIGHT, HEADINGS

TURNED = ("place", "forward", "up", "velocity", "spin")
LEGGED = {"joints": 2, "joint_speeds": 2, "feet": 1}


def turn_world(state: Float[Array, "35"], quarters: Int[Array, ""] | int) -> Float[Array, "35"]:
    """The state after turning the world by quarter turns, anticlockwise seen from above."""
    return _turned(state, *jnp.asarray(HEADINGS)[quarters % 4])


def _turned(state: Float[Array, "35"], cos: Float[Array, ""], sin: Float[Array, ""]) -> Float[Array, "35"]:
    """The state after turning the world by an angle."""
    for group in TURNED:
        first = INDEX[group].start
        x, y = state[first], state[first + 1]
        state = state.at[first].set(cos * x - sin * y).at[first + 1].set(sin * x + cos * y)
    return state


def rename_legs(state: Float[Array, "35"], legs: Int[Array, ""] | int) -> Float[Array, "35"]:
    """The same ant with leg k + `legs` called leg k: its x-axis is turned by as many quarter turns."""
    forward, up = state[INDEX["forward"]], state[INDEX["up"]]
    axes = jnp.stack([forward, jnp.cross(up, forward), -forward, -jnp.cross(up, forward)])
    state = state.at[INDEX["forward"]].set(axes[legs % 4])
    for group, numbers in LEGGED.items():
        state = state.at[INDEX[group]].set(jnp.roll(state[INDEX[group]], -numbers * legs))
    return state


def canonical(
    state: Float[Array, "35"], direction: Int[Array, ""] | int
) -> tuple[Float[Array, "35"], Int[Array, ""]]:
    """The state turned so that `direction` is +x, legs renamed so that the body faces there; and by how many."""
    x, y = jnp.asarray(EIGHT)[direction]
    turned = _turned(state, x, -y)
    forward, up = turned[INDEX["forward"]], turned[INDEX["up"]]
    x, y = forward[0], jnp.cross(up, forward)[0]
    legs = jnp.argmax(jnp.stack([x, y, -x, -y]))
    return rename_legs(turned, legs), legs


def back(action: Float[Array, "A"], legs: Int[Array, ""] | int) -> Float[Array, "A"]:
    """The action with the legs' own names."""
    return jnp.roll(action, 2 * legs)


def forth(action: Float[Array, "A"], legs: Int[Array, ""] | int) -> Float[Array, "A"]:
    """The action with the legs renamed: the inverse of `back`."""
    return jnp.roll(action, -2 * legs)
