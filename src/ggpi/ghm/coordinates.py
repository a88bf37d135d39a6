"""The coordinates that a learned model works in: raw states go in and come out, networks see unit scales.

    inputs(x, a)   = normalised state without its positions, then the action (one-hot when it is discrete)
    change(x, x′)  = (x′ − x − mean) / scale          [or (x′ − mean) / scale for predict = "state"]
    restore(x, y)  = x + mean + scale · y, with rotations made orthonormal again

Positions (`StateSpec.relative`) are always predicted as displacements. Places (`StateSpec.places`) are also seen as
sines and cosines, of which a network makes functions that differ sharply from one side of a wall to the other. Where
only some coordinates are predicted (`StateSpec.predicted`), changes and targets are vectors of these.
"""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from ggpi._jax.shapes import Lead, check_positive, check_shape
from ggpi.data import StateSpec

Predict = Literal["change", "state"]
SMALLEST_SCALE = 1e-3
"""A coordinate that hardly varies in the data is not blown up."""

Vectors = Float[Array | np.ndarray, "*b D"]
Targets = Float[Array | np.ndarray, "*b d"]
"""Of the coordinates that are predicted."""
Actions = Num[Array | np.ndarray, "..."]


class Frame(eqx.Module):
    """Normalisation of one model, fitted on its data and saved with it; gradients do not reach it."""

    state_mean: Float[Array, "..."]
    state_scale: Float[Array, "..."]
    action_mean: Float[Array, "..."]
    action_scale: Float[Array, "..."]
    target_mean: Float[Array, "..."]
    target_scale: Float[Array, "..."]
    kept: tuple[int, ...] = eqx.field(static=True)
    """Coordinates of the state that the model sees: all but positions."""
    from_state: tuple[float, ...] = eqx.field(static=True)
    """1 where the change is predicted, 0 where the state itself is."""
    rotations: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    num_actions: int | None = eqx.field(static=True)
    """The number of discrete actions; None when they are vectors."""
    places: tuple[int, ...] = eqx.field(static=True, default=())
    """Coordinates that the model also sees as waves."""
    predicted: tuple[int, ...] = eqx.field(static=True, default=())
    """Coordinates that are predicted; none: all. Samples keep the others of their start."""
    num_waves: int = eqx.field(static=True, default=5)
    """Wavelengths of the waves that places are seen as."""

    @property
    def input_size(self) -> int:
        waves = 2 * self.num_waves * len(self.places)
        return len(self.kept) + waves + (self.num_actions or self.action_mean.shape[-1])

    @property
    def state_size(self) -> int:
        return len(self.from_state)

    @property
    def target_size(self) -> int:
        """How many coordinates are predicted."""
        return len(self.predicted) or self.state_size

    @property
    def action_form(self) -> tuple[tuple[int, ...], str]:
        """The shape of an action, and the kind of its dtype."""
        return (self.action_mean.shape[-1:], "f") if self.num_actions is None else ((), "i")

    def check_parts(self, lead: Lead) -> None:
        """Means and scales have one size each, and indices are those of the state."""
        sizes = {"state": len(self.kept), "action": self.action_mean.shape[-1], "target": self.target_size}
        for name, size in sizes.items():
            for moment in ("mean", "scale"):
                check_shape(f"{name}_{moment}", getattr(self, f"{name}_{moment}"), (*lead, size))
            check_positive(f"{name}_scale", getattr(self, f"{name}_scale"))
        places = range(self.state_size)
        if list(self.kept) != [i for i in places if i in set(self.kept)]:
            raise ValueError(f"kept is not an increasing choice of {self.state_size} indices")
        if not set(self.places) <= set(self.kept):
            raise ValueError(f"places are among the coordinates that are seen, {list(self.kept)}")
        if self.num_waves < 1:
            raise ValueError(f"num_waves is at least 1, got {self.num_waves}")
        if any(len(group) != 6 or not set(group) <= set(places) for group in self.rotations):
            raise ValueError(f"rotations are not groups of six of {self.state_size} indices")
        if list(self.predicted) != [i for i in places if i in set(self.predicted)]:
            raise ValueError(f"predicted is not an increasing choice of {self.state_size} indices")
        if self.num_actions is not None and self.num_actions < 1:
            raise ValueError(f"num_actions is at least 1, got {self.num_actions}")

    def inputs(self, state: Vectors, action: Actions | int) -> Float[Array, "*b m"]:
        """The inputs of networks: (x, a) normalised, without positions."""
        seen = jnp.concatenate([state[..., part] for part in _runs(self.kept)], axis=-1)
        seen = (seen - _fixed(self.state_mean)) / _fixed(self.state_scale)
        if self.places:
            seen = jnp.concatenate([seen, self._waves(seen)], axis=-1)
        if self.num_actions is not None:
            return jnp.concatenate([seen, jax.nn.one_hot(action, self.num_actions)], axis=-1)
        acted = (action - _fixed(self.action_mean)) / _fixed(self.action_scale)
        return jnp.concatenate([seen, acted], axis=-1)

    def _waves(self, seen: Float[Array, "*b k"]) -> Float[Array, "*b w"]:
        """Sines and cosines of the normalised places."""
        where = seen[..., np.array([self.kept.index(place) for place in self.places])]
        angles = (where[..., None] * np.exp2(np.arange(self.num_waves, dtype=np.float32))).reshape(
            *where.shape[:-1], -1
        )
        return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)

    def change(self, state: Vectors, target: Vectors) -> Float[Array, "*b d"]:
        """The target in the model's coordinates."""
        moved = self._target(jnp.asarray(target) - jnp.array(self.from_state) * jnp.asarray(state))
        return (moved - _fixed(self.target_mean)) / _fixed(self.target_scale)

    def restore(self, state: Vectors, y: Targets) -> Float[Array, "*b D"]:
        """The raw state of a target in the model's coordinates: the inverse of `change`."""
        base = self._target(jnp.array(self.from_state) * jnp.asarray(state))
        target = base + _fixed(self.target_mean) + _fixed(self.target_scale) * y
        if self.predicted:
            whole = jnp.broadcast_to(state, (*target.shape[:-1], self.state_size))
            target = whole.at[..., jnp.array(self.predicted)].set(target)
        for group in self.rotations:
            axes = jnp.concatenate([target[..., part] for part in _runs(group)], axis=-1)
            target = _replaced(target, group, _orthonormal(axes))
        return target

    def displacement(self, state: Vectors, other: Vectors) -> Float[Array, "*b d"]:
        """`change` from a state minus `change` from another one to the same target: 0 where states are predicted."""
        moved = self._target(jnp.array(self.from_state) * (jnp.asarray(other) - jnp.asarray(state)))
        return moved / _fixed(self.target_scale)

    def _target(self, vector: Float[Array, "*b D"]) -> Float[Array, "*b d"]:
        """The coordinates that are predicted."""
        if not self.predicted:
            return vector
        return jnp.concatenate([vector[..., part] for part in _runs(self.predicted)], axis=-1)

    @property
    def log_volume(self) -> Float[Array, "*k"]:
        """log |dx′/dy|: a density of x′ is that of y divided by this volume."""
        return jnp.log(_fixed(self.target_scale)).sum(-1)


def fit_frame(
    states: Float[np.ndarray, "N D"],
    actions: Num[np.ndarray, "N *A"],
    ahead: Float[np.ndarray, "N D"],
    spec: StateSpec,
    num_actions: int | None,
    predict: Predict = "change",
) -> Frame:
    """The frame of pairs (x, a) and the states x′ that follow them after about the model's horizon.

    Args:
        states: the states x [N, D].
        actions: the actions a, vectors [N, A] or integers [N].
        ahead: the states x′ [N, D].
        spec: which coordinates are positions or rotations.
        num_actions: the number of discrete actions; None when they are vectors.
        predict: whether models predict the change of state, or the state itself.
    """
    if predict not in ("change", "state"):
        raise ValueError(f"a model predicts 'change' or 'state', got {predict!r}")
    kept = tuple(i for i in range(spec.size) if i not in spec.relative)
    from_state = tuple(float(predict == "change" or i in spec.relative) for i in range(spec.size))
    moved = ahead - np.array(from_state) * states
    moved = moved[:, spec.predicted] if spec.predicted else moved
    acted = np.zeros((1, 0)) if num_actions is not None else actions.reshape(len(actions), -1)
    return Frame(
        *_mean_and_scale(states[:, kept]),
        *_mean_and_scale(acted),
        *_mean_and_scale(moved),
        kept,
        from_state,
        spec.rotations,
        num_actions,
        spec.places,
        spec.predicted,
        spec.waves,
    )


def _mean_and_scale(values: Float[np.ndarray, "N m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
    scale = np.maximum(values.std(axis=0), SMALLEST_SCALE) if values.shape[1] else np.zeros(0)
    return jnp.asarray(values.mean(axis=0), jnp.float32), jnp.asarray(scale, jnp.float32)


def _fixed(array: Array) -> Array:
    return jax.lax.stop_gradient(array)


def _orthonormal(axes: Float[Array, "*b 6"]) -> Float[Array, "*b 6"]:
    """Gram–Schmidt on two axes of three numbers each."""
    first = _unit(axes[..., :3])
    second = axes[..., 3:] - (axes[..., 3:] * first).sum(-1, keepdims=True) * first
    return jnp.concatenate([first, _unit(second)], axis=-1)


def _unit(vector: Float[Array, "*b 3"]) -> Float[Array, "*b 3"]:
    return vector / jnp.maximum(jnp.linalg.norm(vector, axis=-1, keepdims=True), 1e-6)


def _replaced(
    vectors: Float[Array, "*b D"], places: tuple[int, ...], values: Float[Array, "*b n"]
) -> Float[Array, "*b D"]:
    """The vectors with other values at some places."""
    first, *others = _runs(places)
    if others:
        return vectors.at[..., jnp.array(places)].set(values)
    return jnp.concatenate([vectors[..., : first.start], values, vectors[..., first.stop :]], axis=-1)


def _runs(places: tuple[int, ...]) -> list[slice]:
    """Places as slices: XLA copies them faster than it gathers."""
    if not places:
        return [slice(0, 0)]
    runs = np.split(np.array(places), np.flatnonzero(np.diff(places) != 1) + 1)
    return [slice(int(run[0]), int(run[-1]) + 1) for run in runs]
