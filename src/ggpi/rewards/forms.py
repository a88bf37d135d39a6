"""Rewards, apart from dynamics, in three forms that the constructor names.

    state(r)          r(x)      earned on leaving x
    state_action(r)   r(x, a)   earned on leaving x with a
    arrival(ρ)        ρ(x′)     earned on entering x′

r is an array over the states of a finite MDP, or a function of one state vector: of JAX, or plain Python.
The return is Σ γᵗ Rₜ from t = 0. A terminal state is never left, so r is 0 there; it is entered once, so ρ is
paid once there. A reward with parameters, such as `target`, is a module whose numbers are arguments of compiled
programs: another target needs no new compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ggpi._jax.shapes import Lead, check_positive, check_shape
from ggpi.data.spec import StateSpec
from ggpi.types import Numbers, reals

Form = Literal["state", "state_action", "arrival"]


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward: its values, an array or a function of one state (and action), and the form that they have."""

    form: Form
    values: Any

    def check_parts(self, lead: Lead) -> None:
        """An array, or a module that can be called."""
        if not isinstance(self.values, np.ndarray) and not (
            isinstance(self.values, eqx.Module) and callable(self.values)
        ):
            raise ValueError(f"values are an array or a module, got a {type(self.values).__name__}")

    def __post_init__(self):
        if callable(self.values):
            return
        axes = 2 if self.form == "state_action" else 1
        if self.values.ndim != axes:
            wanted = "[S, A]" if axes == 2 else "[S]"
            raise ValueError(f"a {self.form} reward has shape {wanted}, got {self.values.shape}")
        bad = np.argwhere(~np.isfinite(self.values))
        if len(bad) and self.form != "arrival":  # a state that is never entered may have any, see TabularMDP
            at = tuple(map(int, bad[0]))
            raise ValueError(f"{len(bad)} reward values are not finite, the first at index {at}")


def state(values: ArrayLike | Callable[[Any], Any]) -> Reward:
    """r(x), earned on leaving x."""
    return Reward("state", _values(values))


def state_action(values: ArrayLike | Callable[[Any, Any], Any]) -> Reward:
    """r(x, a), earned on leaving x with a.

    Paper: Thm F.1
    """
    return Reward("state_action", _values(values))


def arrival(values: ArrayLike | Callable[[Any], Any]) -> Reward:
    """ρ(x′), earned on entering x′: Q = E_{X∼μ}[ρ(X)] / (1−γ)."""
    return Reward("arrival", _values(values))


def target(place: Any, radius: float, indices: Sequence[int] = (0, 1)) -> Reward:
    """1 for arriving within `radius` of a place, given by some numbers of the state; by default the first two."""
    place = np.asarray(place, float)
    if place.shape != (len(indices),) or not np.isfinite(place).all():
        raise ValueError(
            f"a target is {len(indices)} finite numbers, one for each of {tuple(indices)}, got {place}"
        )
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"the radius of a target is a positive number, got {radius}")
    numbers = jnp.asarray(place, jnp.float32), jnp.asarray(radius, jnp.float32)
    return arrival(Target(*numbers, tuple(map(int, indices))))


def targets(places: Any, radius: float, indices: Sequence[int] = (0, 1)) -> Reward:
    """A target for each state of a batch: `target` of each row of `places` [B, n]."""
    places = np.asarray(places, np.float32)
    many = Target(jnp.asarray(places), jnp.full(len(places), radius, jnp.float32), tuple(map(int, indices)))
    return Reward("arrival", Each(many))


def features(weights: Mapping[str, float], spec: StateSpec) -> Reward:
    """Σ wᵢ xᵢ over named numbers of the state, earned on arrival."""
    numbers = jnp.asarray(list(weights.values()), jnp.float32)
    return arrival(Features(numbers, tuple(spec.index(name) for name in weights)))


class Target(eqx.Module):
    """1 within `radius` of `place`, else 0."""

    place: Float[Array, "... n"]
    radius: Float[Array, "..."]
    indices: tuple[int, ...] = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """A coordinate for each index, and a radius."""
        check_indices(self.indices)
        check_shape("place", self.place, (*lead, len(self.indices)))
        check_shape("radius", self.radius, lead)
        check_positive("radius", self.radius)

    def __call__(self, state):
        apart = jnp.stack([state[..., i] for i in self.indices], axis=-1) - self.place
        return (jnp.sum(apart**2, axis=-1) <= self.radius**2).astype(jnp.float32)


class Features(eqx.Module):
    """A weighted sum of some numbers of the state."""

    weights: Float[Array, "n"]
    indices: tuple[int, ...] = eqx.field(static=True)

    def check_parts(self, lead: Lead) -> None:
        """A weight for each index."""
        check_indices(self.indices)
        check_shape("weights", self.weights, (*lead, len(self.indices)))

    def __call__(self, state):
        return jnp.stack([state[..., i] for i in self.indices], axis=-1) @ self.weights


def check_indices(indices: tuple[int, ...]) -> None:
    """Raises unless these are indices of a state."""
    if not indices or not all(0 <= i < 2**31 for i in indices):
        raise ValueError(f"indices of a state are not negative, got {indices[:5]}")


def each(rewards: Sequence[Reward]) -> Reward:
    """One reward for each state of a batch, such as targets of many episodes that are planned together."""
    for reward in rewards:
        if not callable(reward.values) or any(map(callable, jax.tree.leaves(reward.values))):
            kind = "a plain function" if callable(reward.values) else f"an array {reward.values.shape}"
            raise ValueError(
                f"rewards of a batch are modules of JAX arrays, such as ggpi.rewards.target makes, got {kind}; "
                "give it to an agent of its own: agent.with_reward(reward)"
            )
    kinds = {(reward.form, jax.tree.structure(reward.values)) for reward in rewards}
    if len(kinds) != 1:
        raise ValueError(f"rewards of a batch are of one kind, got {len(kinds)} kinds among {len(rewards)}")
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(reward.values for reward in rewards))
    return Reward(rewards[0].form, Each(stacked))


class Each(eqx.Module):
    """Rewards of one kind with a leading axis, one for each state of a batch."""

    values: Any

    def lead_of(self, field: str) -> Lead:
        """Rewards are stacked over the states of a batch."""
        return jax.tree.leaves(self.values)[0].shape[:1]

    def __call__(self, *given):
        raise TypeError("rewards of a batch are paid state by state; call one of them instead")


def as_reward(reward: Reward | Any) -> Reward:
    """A plain array is r(x) when it has one axis and r(x, a) when it has two; a function has to name its form."""
    if isinstance(reward, Reward):
        return reward
    if callable(reward):
        raise TypeError(
            "a function says when it pays: give ggpi.rewards.state(f), state_action(f) or arrival(f), "
            f"got {reward}"
        )
    values = reals(reward, "a reward")
    if values.ndim not in (1, 2):
        raise ValueError(f"a reward array has shape [S] or [S, A], got {values.shape}")
    return state(values) if values.ndim == 1 else state_action(values)


def _values(values: Any) -> Numbers | Callable:
    return values if callable(values) and not isinstance(values, jax.Array) else reals(values, "a reward")
