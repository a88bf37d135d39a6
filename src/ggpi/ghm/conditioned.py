"""One network for all policies and horizons: a condition moves the biases of a field network.

    c = (code of π, 1, features of β)         code and 1 become 0 for the model that does not know its policy
    biases ← biases + shifts(c)

The shifted biases are those of the first layer that sees (x, a), where the condition meets state and action, and those
of every modulation, so that policy and horizon reach each residual layer directly. With a condition filled in, what
is left is an ordinary model of one policy at one horizon.

Horizons are seen as u = log(1−β)/log(1−β_max), from 0 to 1, as β itself, and as sin πku and cos πku.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Num
from numpy.typing import ArrayLike

from ggpi._jax.networks import MLP, mlp
from ggpi._jax.shapes import Lead, check_shape
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.coordinates import Frame
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.types import Key

FREQUENCIES = 4
"""Pairs of sine and cosine that a horizon is seen as."""
NUM_FEATURES = 2 + 2 * FREQUENCIES
ROUNDING = 1e-4
"""Of conditions, which are computed in single precision, perhaps on another machine."""


class Conditioned(AbstractGHM):
    """A model of one policy at one horizon, or several that share all arrays but their conditions."""

    frame: Frame
    model: AbstractPathGHM
    shifts: MLP
    codes: Float[Array, "K z"]
    """What is known of each policy: a unit vector, or the code z of a family π(·|x, z)."""
    condition: Float[Array, "*m c"]
    """Policy and horizon, of one model or of several."""
    largest: float = eqx.field(static=True)
    """The largest horizon that was trained."""

    @property
    def noise_size(self) -> int:
        return self.model.noise_size

    @property
    def loss_noise_size(self) -> int:
        return self.model.loss_noise_size

    def push(
        self, state: Float[Array, "D"], action: Num[Array, "*A"], noise: Float[Array, "n"]
    ) -> Float[Array, "D"]:
        return self.at(self.condition).push(state, action, noise)

    def loss(
        self,
        state: Float[Array, "B D"],
        action: Num[Array, "B *A"],
        target: Float[Array, "B D"],
        noise: Float[Array, "B n"],
    ) -> Float[Array, "B"]:
        return self.at(self.condition).loss(state, action, target, noise)

    def check_parts(self, lead: Lead) -> None:
        """Codes, conditions and shifts fit the network."""
        first, *_, last = self.model.network.context.biases
        check_shape("condition", self.condition, (*self.condition.shape[:-1], self.condition_size))
        check_shape("shifts", self.shifts(jnp.zeros(self.condition_size)), (len(first) + len(last),))
        if not 0 < self.largest < 1:
            raise ValueError(f"the largest horizon is between 0 and 1, got {self.largest}")

    @property
    def condition_size(self) -> int:
        """Of a code, whether it is known, and a horizon."""
        return self.codes.shape[-1] + 1 + NUM_FEATURES

    def condition_of(
        self, policy: Int[Array, "*m"], beta: Float[Array, "*m"], known: Float[Array, "*m"] | float = 1.0
    ) -> Float[Array, "*m c"]:
        """The condition of a policy at a horizon; with `known` 0, of a policy drawn at random."""
        return self.condition_at(self.codes[policy], beta, known)

    def condition_at(
        self, code: Float[Array, "*m z"], beta: Float[Array, "*m"], known: Float[Array, "*m"] | float = 1.0
    ) -> Float[Array, "*m c"]:
        """The same for a policy that is given by its code."""
        known = jnp.broadcast_to(known, beta.shape)[..., None]
        return jnp.concatenate([known * code, known, horizon_features(beta, self.largest)], axis=-1)

    def among(self, conditions: Float[Array, "*m c"]) -> Conditioned:
        """Other models of the same network."""
        self._check_condition(conditions)
        return eqx.tree_at(lambda old: old.condition, self, conditions)

    def at(self, condition: Float[Array, "c"]) -> AbstractPathGHM:
        """The model of one condition."""
        self._check_condition(condition)
        shift, network = self.shifts(jax.lax.stop_gradient(condition)), self.model.network
        first, *between, last = network.context.biases
        width = first.shape[-1]
        biases = (first + shift[:width], *between, last + shift[width:])
        return eqx.tree_at(lambda model: model.network.context.biases, self.model, biases)

    def _check_condition(self, condition: Float[Array, "*m c"]) -> None:
        """Raises for a condition of another network, such as that of another teacher."""
        if condition.shape[-1] != self.condition_size:
            raise ValueError(
                f"conditions of this network, whose codes have size {self.codes.shape[-1]}, have size "
                f"{self.condition_size}, got {condition.shape[-1]}; make them with its own condition_of or at_horizon"
            )

    def at_horizon(self, beta: float) -> Conditioned:
        """The models of all policies at one horizon."""
        self.check_horizon(beta)
        count = len(self.codes)
        with jax.ensure_compile_time_eval():  # a constant, also of a function that is being traced
            return self.among(self.condition_of(jnp.arange(count), jnp.full(count, beta, jnp.float32)))

    def of_any_policy(self, beta: float) -> AbstractPathGHM:
        """The model of a policy that is not known: the mixture of all that were trained."""
        self.check_horizon(beta)
        return self.at(self.condition_of(jnp.array(0), jnp.array(beta, jnp.float32), 0.0))

    def stacked(self) -> AbstractPathGHM:
        """The models as those that were trained apart: all arrays have a leading axis."""
        biases = jax.vmap(self.at)(self.condition).network.context.biases
        repeated = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (len(self.condition), *leaf.shape)), self.model
        )
        return eqx.tree_at(lambda model: model.network.context.biases, repeated, biases)

    def with_codes(self, codes: Float[np.ndarray, "N z"] | None) -> Conditioned:
        """The same network for other members of the family that it was trained on; None is not a family."""
        size = self.codes.shape[1]
        if np.array_equal(self.codes, np.eye(size)):
            raise ValueError(
                f"this network tells its {size} policies apart by their numbers and has no models of others; train it "
                "on policies of ggpi.policy_family, or fit again"
            )
        if codes is None or codes.shape[1] != size:
            given = "policies without codes" if codes is None else f"codes of size {codes.shape[1]}"
            raise ValueError(
                f"this network was trained on a family of policies with codes of size {size}, got {given}; use "
                "ggpi.policy_family with the same function"
            )
        return eqx.tree_at(lambda old: old.codes, self, jnp.asarray(codes))

    def check_codes(self, codes: Float[np.ndarray, "N z"]) -> None:
        """Raises for policies whose codes are not those of these models."""
        if codes.shape != self.codes.shape or not np.allclose(codes, self.codes):
            raise ValueError(
                f"this network has models of {len(self.codes)} policies with codes of size {self.codes.shape[1]}, got "
                f"{len(codes)} policies with {'other ' * (codes.shape == self.codes.shape)}codes of size "
                f"{codes.shape[1]}; pass the policies that it was trained for, in their order, or "
                "ghms.with_policies(others) for other members of their family"
            )

    def check_horizon(self, beta: float) -> None:
        """Raises for a horizon that was not trained."""
        if not 0 <= beta <= self.largest:
            raise ValueError(
                f"these models were trained for horizons from 0 to {self.largest:g}, got {beta:g}; choose one in this "
                f"range, or fit with gamma={beta:g}"
            )


def conditioned(
    model: AbstractPathGHM, codes: Float[Array, "K z"], largest: float, num_models: int, *, key: Key
) -> Conditioned:
    """A model with fresh weights as one for all policies and horizons up to the largest.

    Args:
        model: the network that is shared.
        codes: what is known of each policy.
        largest: the largest horizon.
        num_models: how many models are trained at a time.
        key: the source of the weights.
    """
    first, *_, last = model.network.context.biases
    size = codes.shape[1] + 1 + NUM_FEATURES
    shifts = mlp((size, len(first), len(first) + len(last)), key=key)
    frame = jax.tree.map(jnp.array, model.frame)  # a copy: training donates every array once
    return Conditioned(frame, model, shifts, codes, jnp.zeros((num_models, size)), largest)


def check_one_network(models: Sequence[object], horizons: Sequence[float]) -> None:
    """Raises unless all models are those of one network, each at its horizon. What JAX traces is not compared.

    Args:
        models: of all policies at each horizon.
        horizons: as many.
    """
    if len(models) != len(horizons):
        raise ValueError(f"{len(models)} models, expected those of horizons {list(horizons)}")
    networks = [model for model in models if isinstance(model, Conditioned)]
    if len(networks) < len(models):
        raise ValueError("models of one network and models that were trained apart do not go together")
    for model, horizon in zip(networks, horizons, strict=True):
        if not _agree(_shared(networks[0]), _shared(model)):
            raise ValueError(
                f"models of two networks: those at the horizons {horizons[0]:g} and {horizon:g} differ in more than "
                "their conditions; take all of them from one, by its at_horizon or ghms.with_alpha(…)"
            )
        with jax.ensure_compile_time_eval():
            policies = jnp.arange(len(model.codes))
            expected = model.condition_of(policies, jnp.full(len(model.codes), horizon, jnp.float32))
        if not _agree(expected, model.condition, ROUNDING):
            raise ValueError(
                f"the models at the horizon {horizon:g} have the conditions of other policies or horizons; make them "
                f"with the at_horizon({horizon:g}) of their network"
            )


def _shared(network: Conditioned) -> tuple[object, ...]:
    """All that the models of a network have in common."""
    return network.frame, network.model, network.shifts, network.codes, network.largest


def _agree(one: object, other: object, tolerance: float = 0.0) -> bool:
    """Whether two trees are equal, as far as it is known."""
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a is b or isinstance(a, Tracer) or isinstance(b, Tracer) or _near(a, b, tolerance)
        for a, b in zip(leaves, others, strict=True)
    )


def _near(one: ArrayLike, other: ArrayLike, tolerance: float) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=tolerance, equal_nan=True)


def horizon_features(beta: Float[Array, "*m"], largest: float) -> Float[Array, "*m f"]:
    """What a network sees of a horizon."""
    u = jnp.log1p(-beta) / jnp.log1p(-jnp.float32(largest))
    angles = jnp.pi * u[..., None] * jnp.arange(1, FREQUENCIES + 1)
    plain = jnp.stack([2 * u - 1, 2 * beta / largest - 1], axis=-1)
    return jnp.concatenate([plain, jnp.sin(angles), jnp.cos(angles)], axis=-1)


def over_paths(function: Callable[..., Any], models: AbstractGHM, *arguments: Any) -> Any:
    """function(model, …) for each of M models that follow a path, stacked or conditioned; arguments [M, …]."""
    if isinstance(models, Conditioned):
        return jax.vmap(lambda condition, *one: function(models.at(condition), *one))(
            models.condition, *arguments
        )
    return jax.vmap(function)(following_path(models), *arguments)


def following_path(model: AbstractGHM) -> AbstractPathGHM:
    """The model, if it follows a path; else raises."""
    if not isinstance(model, AbstractPathGHM):
        raise TypeError(
            f'a field is regressed, which a {type(model).__name__} does not have; use model="flow-matching" or '
            '"diffusion"'
        )
    return model
