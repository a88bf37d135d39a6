"""Four models of the ant from one, by symmetry: as `ggpi.policies.symmetric` makes four policies from one.

    μ_k(·|x, a) = S⁻¹ μ(·|S x, S a),   S the symmetry that brings direction k to +x and turns the body towards it

S depends on k and x. One network so learns from the data of all four policies, and only about bodies that face the way
they go.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ggpi._jax.batching import stack
from ggpi._jax.shapes import Lead, check_shape
from ggpi.envs.ant.symmetry import canonical, forth, rename_legs, turn_world
from ggpi.envs.directions import DIRECTIONS
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.coordinates import Frame


class DirectedGHM(AbstractGHM):
    """The model of the policy that walks towards `direction`, from one of the policy that walks towards +x."""

    frame: Frame
    base: AbstractGHM
    direction: Int[Array, "..."]
    """0: +x, 1: +y, 2: −x, 3: −y."""

    @property
    def noise_size(self) -> int:
        return self.base.noise_size

    @property
    def loss_noise_size(self) -> int:
        return self.base.loss_noise_size

    def check_parts(self, lead: Lead) -> None:
        """Directions are among the four, and the model is one of the ant."""
        check_shape("direction", self.direction, lead)
        if not ((self.direction >= 0) & (self.direction < len(DIRECTIONS))).all():
            raise ValueError(f"direction is one of 0 to {len(DIRECTIONS) - 1}, got {self.direction}")
        AbstractGHM.check_parts(self, lead)

    def push(
        self, state: Float[Array, "35"], action: Float[Array, "8"], noise: Float[Array, "n"]
    ) -> Float[Array, "35"]:
        turned, legs = canonical(state, self.direction)
        reached = self.base.push(turned, forth(action, legs), noise)
        return turn_world(rename_legs(reached, -legs), self.direction)

    def loss(
        self,
        state: Float[Array, "B 35"],
        action: Float[Array, "B 8"],
        target: Float[Array, "B 35"],
        noise: Float[Array, "B n"],
    ) -> Float[Array, "B"]:
        def one(state: Array, action: Array, target: Array) -> tuple[Array, Array, Array]:
            turned, legs = canonical(state, self.direction)
            return turned, forth(action, legs), rename_legs(turn_world(target, -self.direction), legs)

        return self.base.loss(*jax.vmap(one)(state, action, target), noise)


def four_models(base: AbstractGHM) -> DirectedGHM:
    """The models of right, up, left and down, stacked, from one of the policy that walks towards +x."""
    return stack([DirectedGHM(base.frame, base, jnp.asarray(k)) for k in range(len(DIRECTIONS))])
