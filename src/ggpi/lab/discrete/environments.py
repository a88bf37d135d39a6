"""Worlds with discrete actions for `discrete-control`: scripted base policies, and rewards that none was made for.

Policies are softmax in a few linear scores of the state: each does one thing, and none solves a task by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ggpi.policies.functions import policy_from
from ggpi.rewards import Reward, arrival, target
from ggpi.types import Numbers, Policy

Function = Callable[[Numbers], Array]


@dataclass(frozen=True)
class World:
    """An environment, its base policies, rewards by name, and where it ends."""

    env: str
    num_actions: int
    policies: Mapping[str, Function]
    """Logits of the actions."""
    tasks: Mapping[str, Reward]
    terminal: Function | None = None
    step: Callable[[Numbers, ArrayLike], Array] | None = None
    """(x, a) ↦ x′ in JAX, for the oracle."""

    def base_policies(self) -> list[Policy]:
        makes = self.policies.items()
        return [policy_from(logits, self.num_actions, returns="logits", name=name) for name, logits in makes]


def _leans(angle: float) -> Function:
    """Holds the pole at an angle, so that the cart runs away to that side."""

    def logits(s: Numbers) -> Array:
        push = 40 * (s[2] - angle + 0.35 * s[3])
        return jnp.array([-push, push])

    return logits


def _has_fallen(s: Numbers) -> Array:
    return (jnp.abs(s[2]) > 0.2095) | (jnp.abs(s[0]) > 2.4)


def _cart_pole_step(s: Numbers, action: ArrayLike) -> Array:
    """The equations of Barto, Sutton and Anderson (1983) with Gymnasium's constants, an Euler step of 0.02 s."""
    x, speed, angle, spin = s
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    push = (jnp.where(action == 1, 10.0, -10.0) + 0.05 * spin**2 * sin) / 1.1
    turning = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    pushing = push - 0.05 * turning * cos / 1.1
    return jnp.stack([x, speed, angle, spin]) + 0.02 * jnp.stack([speed, pushing, spin, turning])


def _height(s: Numbers) -> Array:
    """Of the tip over the pivot, in links: −2 … 2."""
    return -s[0] - (s[0] * s[2] - s[1] * s[3])


def _pushes(sign: float) -> Function:
    return lambda s: jnp.array([-3.0 * sign, 0.0, 3.0 * sign])


def _with_swing(sign: float) -> Function:
    """Pushes with the first link's swing (1), or against it (−1)."""

    def logits(s: Numbers) -> Array:
        push = 3.0 * sign * jnp.tanh(2.0 * s[4])
        return jnp.array([-push, 0.0, push])

    return logits


NOTHING, LEFT_ENGINE, MAIN_ENGINE, RIGHT_ENGINE = range(4)


def _flies(tilt: float, speed: float) -> Function:
    """Holds a tilt with the side engines, and a vertical speed with the main one."""

    def logits(s: Numbers) -> Array:
        turn = 20 * (s[4] - tilt + s[5])
        lift = 20 * (speed - s[3])
        return jnp.array([1.0, -turn, lift, turn])

    return logits


def _has_crashed(s: Numbers) -> Array:
    return (jnp.abs(s[0]) >= 1.0) | (s[1] < -0.1)


WORLDS = {
    "cart-pole": World(
        "CartPole-v1",
        2,
        {"left": _leans(-0.12), "right": _leans(0.12)},
        {"centre": target((0.0,), 0.5, (0,)), "right of it": target((1.0,), 0.5, (0,))},
        _has_fallen,
        _cart_pole_step,
    ),
    "acrobot": World(
        "Acrobot-v1",
        3,
        {
            "push −": _pushes(-1),
            "push +": _pushes(1),
            "with the swing": _with_swing(1),
            "against it": _with_swing(-1),
        },
        {
            "tip high": arrival(lambda s: (_height(s) + 2) / 4),
            "out to the right": target((1.0,), 0.5, (1,)),
        },
    ),
    "lunar-lander": World(
        "LunarLander-v3",
        4,
        {
            "rise": _flies(0.0, 0.2),
            "sink": _flies(0.0, -0.3),
            "drift left": _flies(0.15, -0.05),
            "drift right": _flies(-0.15, -0.05),
        },
        {"hover left": target((-0.5, 0.7), 0.4), "hover right": target((0.5, 0.7), 0.4)},
        _has_crashed,
    ),
}
