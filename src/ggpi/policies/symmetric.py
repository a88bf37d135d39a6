"""Four policies of the ant from one network, by symmetry; each acts on raw states."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi._jax.shapes import Lead, check_policy
from ggpi.envs.ant.symmetry import back, canonical
from ggpi.envs.directions import DIRECTIONS
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


def four_directions(base: GaussianPolicy) -> tuple[DirectedPolicy, ...]:
    """The policies right, up, left and down, from one that walks towards +x."""
    return tuple(
        DirectedPolicy(base=base, direction=jnp.asarray(direction), name=name)
        for direction, name in enumerate(DIRECTIONS)
    )
