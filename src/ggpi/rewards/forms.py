"""Rewards, separate from dynamics, in three forms; the constructor names the form.

    state(r)          r(x)      received on leaving x
    state_action(r)   r(x, a)   received on leaving x with a
    arrival(ρ)        ρ(x′)     received on entering x′

r is an array over the states of a finite MDP, or a function of one state vector, in JAX or plain Python. The return is
Σ γᵗ Rₜ from t = 0. A terminal state is never left, so r is 0 there; it is entered once, so ρ is received once. A reward
with parameters, such as `target`, is a module of arrays, which are arguments of compiled programs: another target needs
no new compilation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.batching import Function, stack
from ggpi._jax.shapes import Lead, check_positive, check_shape
from ggpi.data.spec import StateSpec
from ggpi.types import ArrayLike, Numbers, Scalar, reals

Form = Literal["state", "state_action", "arrival"]
Values = Float[np.ndarray, "S"] | Float[np.ndarray, "S A"] | Function
"""r of every state, r of every state and action, or a function of one state (and action)."""


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward: its form, and its values as an array or as a function of one state (and action)."""

    form: Form
    values: Values

    @property
    def table(self) -> np.ndarray:
        """The values of a reward that is given as an array."""
        if callable(self.values):
            raise TypeError(f"the {self.form} reward is a function, not an array")
        return self.values

    def check_parts(self, lead: Lead) -> None:
        """The values are an array or a callable module."""
        if not isinstance(self.values, np.ndarray) and not (
            isinstance(self.values, eqx.Module) and callable(self.values)
        ):
            raise ValueError(f"values must be an array or a module, got a {type(self.values).__name__}")

    def __post_init__(self) -> None:
        if callable(self.values):
            return
        axes = 2 if self.form == "state_action" else 1
        if self.values.ndim != axes:
            wanted = "[S, A]" if axes == 2 else "[S]"
            raise ValueError(f"a {self.form} reward has shape {wanted}, got {self.values.shape}")
        bad = np.argwhere(~np.isfinite(self.values))
        if len(bad) and self.form != "arrival":  # TabularMDP checks states that can be entered
            at = tuple(map(int, bad[0]))
            raise ValueError(f"{len(bad)} reward values are not finite, the first at index {at}")


def state(values: ArrayLike | Function) -> Reward:
    """r(x), received on leaving x."""
    return Reward("state", _values(values))


def state_action(values: ArrayLike | Function) -> Reward:
    """r(x, a), received on leaving x with a.

    Paper: Thm F.1
    """
    return Reward("state_action", _values(values))


def arrival(values: ArrayLike | Function) -> Reward:
    """ρ(x′), received on entering x′: Q = E_{X∼μ}[ρ(X)] / (1−γ)."""
    return Reward("arrival", _values(values))


def target(place: ArrayLike, radius: Scalar, indices: Sequence[int] = (0, 1)) -> Reward:
    """1 for arriving within `radius` of a place.

    Args:
        place: The coordinates of the target.
        radius: Euclidean distance.
        indices: The state dimensions that are the coordinates; by default the first two.
    """
    place = np.asarray(place, float)
    if place.shape != (len(indices),) or not np.isfinite(place).all():
        raise ValueError(
            f"a target needs {len(indices)} finite coordinates, for the dimensions {tuple(indices)}, got {place}"
        )
    if not 0 < float(radius) < np.inf:
        raise ValueError(f"the radius of a target must be positive and finite, got {radius}")
    module = Target(
        jnp.asarray(place, jnp.float32), jnp.asarray(radius, jnp.float32), tuple(map(int, indices))
    )
    return arrival(module)


def targets(places: ArrayLike, radius: float, indices: Sequence[int] = (0, 1)) -> Reward:
    """A target for each state of a batch: `target` for each row of `places` [B, n]."""
    places = np.asarray(places, np.float32)
    many = Target(jnp.asarray(places), jnp.full(len(places), radius, jnp.float32), tuple(map(int, indices)))
    return Reward("arrival", Each(many))


def features(weights: Mapping[str, float], spec: StateSpec) -> Reward:
    """Σ wᵢ xᵢ over named state dimensions, received on arrival."""
    numbers = jnp.asarray(list(weights.values()), jnp.float32)
    return arrival(Features(numbers, tuple(spec.index(name) for name in weights)))


class Target(eqx.Module):
    """1 within `radius` of `place`, else 0."""

    place: Float[Array, "... n"]
    radius: Float[Array, "..."]
    indices: tuple[int, ...] = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """There is a coordinate for each index, and a positive radius."""
        check_indices(self.indices)
        check_shape("place", self.place, (*lead, len(self.indices)))
        check_shape("radius", self.radius, lead)
        check_positive("radius", self.radius)

    def __call__(self, state: Numbers) -> Float[Array, "..."]:
        """1 in the disc, else 0."""
        apart = jnp.stack([state[..., i] for i in self.indices], axis=-1) - self.place
        return (jnp.sum(apart**2, axis=-1) <= self.radius**2).astype(jnp.float32)


class Features(eqx.Module):
    """A weighted sum of some state dimensions."""

    weights: Float[Array, "... n"]
    indices: tuple[int, ...] = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """There is a weight for each index."""
        check_indices(self.indices)
        check_shape("weights", self.weights, (*lead, len(self.indices)))

    def __call__(self, state: Numbers) -> Float[Array, "..."]:
        """Σ wᵢ xᵢ."""
        return jnp.stack([state[..., i] for i in self.indices], axis=-1) @ self.weights


def check_indices(indices: tuple[int, ...]) -> None:
    """Raises unless these are indices of state dimensions."""
    if not indices or not all(0 <= i < 2**31 for i in indices):
        raise ValueError(f"indices of state dimensions must not be negative, got {indices[:5]}")


def each(rewards: Sequence[Reward]) -> Reward:
    """One reward for each state of a batch, such as the targets of episodes that are planned together."""
    for reward in rewards:
        values = reward.values
        if isinstance(values, np.ndarray) or any(map(callable, jax.tree.leaves(values))):
            kind = f"an array {values.shape}" if isinstance(values, np.ndarray) else "a plain function"
            raise ValueError(
                f"rewards of a batch must be modules of JAX arrays, such as ggpi.rewards.target, got {kind}; "
                "use a separate agent for it: agent.with_reward(reward)"
            )
    kinds = {(reward.form, jax.tree.structure(reward.values)) for reward in rewards}
    if len(kinds) != 1:
        raise ValueError(
            f"rewards of a batch must have one form and structure, got {len(kinds)} among {len(rewards)}"
        )
    return Reward(rewards[0].form, Each(stack([cast(Function, reward.values) for reward in rewards])))


class Each(eqx.Module):
    """Rewards stacked along a leading axis, one for each state of a batch."""

    values: Function

    def lead_of(self, field: str) -> Lead:
        """The axis over the states of the batch."""
        return jax.tree.leaves(self.values)[0].shape[:1]

    def __call__(self, *_: object) -> NoReturn:
        """Raises: each state has a reward of its own."""
        raise TypeError("a batched reward is not callable; call one of its members")


def as_reward(reward: Reward | ArrayLike | Function) -> Reward:
    """The reward; an array with one axis is r(x), with two axes r(x, a). A function has to be wrapped in a form."""
    if isinstance(reward, Reward):
        return reward
    if callable(reward):
        raise TypeError(
            "wrap reward functions to say when they are paid: ggpi.rewards.state(f) or state_action(f) (on leaving), "
            f"or arrival(f) (on entering); got {reward}"
        )
    values = reals(reward, "a reward")
    if values.ndim not in (1, 2):
        raise ValueError(f"a reward array must have shape [S] or [S, A], got {values.shape}")
    return state(values) if values.ndim == 1 else state_action(values)


def _values(values: ArrayLike | Function) -> Values:
    return values if callable(values) and not isinstance(values, jax.Array) else reals(values, "a reward")
