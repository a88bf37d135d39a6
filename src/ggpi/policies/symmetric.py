"""Policies of ants in four or eight directions from one network, by symmetry; each acts on raw states."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi._jax.shapes import Lead, check_policy
from ggpi.envs.ant.observation import JOINTS, SIGNS, observe_traced
from ggpi.envs.ant.symmetry import back, canonical
from ggpi.envs.directions import DIAGONALS, DIRECTIONS
from ggpi.policies.gaussian import AbstractGaussianPolicy, GaussianPolicy, check_bounds


class DirectedPolicy(AbstractGaussianPolicy):
    """Walks towards `direction` (0: +x, 1: +y, 2: −x, 3: −y) by applying `base` to the canonical state."""

    base: GaussianPolicy
    direction: Int[Array, ""]
    name: str
    low: float = eqx.field(static=True, default=-1.0)
    high: float = eqx.field(static=True, default=1.0)

    def check_parts(self, lead: Lead) -> None:
        """The direction is one of four, and the base acts on states of the ant."""
        if self.direction.shape != () or not 0 <= int(self.direction) < len(DIRECTIONS):
            raise ValueError(f"direction is one of 0 to {len(DIRECTIONS) - 1}, got {self.direction}")
        check_bounds(self.low, self.high)
        check_policy(self, 35, ((8,), "f"))

    def distribution(self, state: Float[Array, "35"]) -> tuple[Float[Array, "8"], Float[Array, "8"]]:
        """Mean and standard deviation before clipping, in one state."""
        turned, legs = canonical(state, self.direction)
        mean, std = self.base.distribution(turned)
        return back(mean, legs), back(std, legs)


MOTORS = np.array([JOINTS.index(f"{part}_{leg}") for leg in (4, 1, 2, 3) for part in ("hip", "ankle")])
"""For each motor of OGBench's ant, the place of its joint in actions of ours."""


class OGBenchWalker(AbstractGaussianPolicy):
    """Moves OGBench's ant in one of eight directions: four as above, then those in between.

    States are OGBench's 29 numbers, and actions are its motor commands.
    """

    base: GaussianPolicy
    direction: Int[Array, ""]
    name: str
    low: float = eqx.field(static=True, default=-1.0)
    high: float = eqx.field(static=True, default=1.0)

    def check_parts(self, lead: Lead) -> None:
        """The direction is one of eight, and the base acts on states of the ant."""
        if self.direction.shape != () or not 0 <= int(self.direction) < len(DIRECTIONS | DIAGONALS):
            raise ValueError(f"direction is one of 0 to 7, got {self.direction}")
        check_bounds(self.low, self.high)
        check_policy(self, 29, ((8,), "f"))

    def distribution(self, state: Float[Array, "29"]) -> tuple[Float[Array, "8"], Float[Array, "8"]]:
        """Mean and standard deviation before clipping, in one state."""
        turned, legs = canonical(observe_traced(state[:15], state[15:]), self.direction)
        mean, std = self.base.distribution(turned)
        return (back(mean, legs) * SIGNS)[MOTORS], back(std, legs)[MOTORS]


def eight_directions(base: GaussianPolicy) -> tuple[OGBenchWalker, ...]:
    """The policies of OGBench's ant, from one that walks towards +x."""
    return tuple(
        OGBenchWalker(base=base, direction=jnp.asarray(direction), name=name)
        for direction, name in enumerate(DIRECTIONS | DIAGONALS)
    )


def four_directions(base: GaussianPolicy) -> tuple[DirectedPolicy, ...]:
    """The policies right, up, left and down, from one that walks towards +x."""
    return tuple(
        DirectedPolicy(base=base, direction=jnp.asarray(direction), name=name)
        for direction, name in enumerate(DIRECTIONS)
    )
