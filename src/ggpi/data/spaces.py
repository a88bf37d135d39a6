"""Gymnasium's spaces: how states are read from observations, and actions are clipped to their bounds.

    Box of one axis    a vector, float32 whatever the environment's own type is
    Discrete           a number from 0, int32
    Dict               the chosen keys, concatenated; other keys are not part of the state

A goal is the usual reason for a dictionary. It belongs to the reward, which changes, and not to the state, whose
future is learned: so the keys have to be chosen by the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space
from jaxtyping import Bool, Real
from numpy.typing import ArrayLike

Reader = Callable[[Any], np.ndarray]
"""From an observation, or a batch of them, to states."""


def state_reader(space: Space, keys: Sequence[str] | None = None) -> Reader:
    """A function from observations of a space, one or a batch, to states; they are copies.

    Args:
        keys: of dictionary observations, the parts that make the state, in this order.
    """
    if isinstance(space, Dict):
        chosen = _chosen(space.spaces, keys)
        return lambda seen: np.concatenate([np.asarray(seen[key], np.float32) for key in chosen], axis=-1)
    if keys is not None:
        raise TypeError(f"keys choose from dictionaries, these observations are {space}; leave keys out")
    if isinstance(space, Discrete) and space.start == 0:
        return lambda seen: np.array(seen, np.int32)
    if _is_vector(space):
        return lambda seen: np.array(seen, np.float32)
    if isinstance(space, Box) and len(space.shape) > 1:
        raise TypeError(
            f"observations are vectors, got images or other arrays of shape {space.shape}: {space}. Models are learned "
            "over vectors of some tens of dimensions; wrap the environment so that it observes such a vector, of "
            "physical quantities or of features of the image (gymnasium.wrappers.TransformObservation)"
        )
    raise TypeError(
        f"observations are Box vectors or Discrete numbers from 0, got {space}; "
        "gymnasium.wrappers.FlattenObservation makes vectors of most of them"
    )


def _chosen(spaces: Mapping[str, Space], keys: Sequence[str] | None) -> tuple[str, ...]:
    """The keys, if each is a vector."""
    there = ", ".join(f"{key!r} {part}" for key, part in spaces.items())
    if keys is None or isinstance(keys, str) or not len(keys):
        perhaps = tuple(key for key in spaces if "goal" not in key)
        raise TypeError(
            f"observations are dictionaries of {there}: choose what makes the state, without a goal, "
            f"perhaps keys={perhaps}; got keys={keys!r}"
        )
    for key in keys:
        if key not in spaces:
            raise KeyError(f"observations have no key {key!r}; there are {there}")
        if not _is_vector(spaces[key]):
            raise TypeError(f"a chosen key is a Box vector, {key!r} is {spaces[key]}")
    return tuple(keys)


def clipped(actions: Real[np.ndarray, "B ..."], space: Space) -> tuple[np.ndarray, Bool[np.ndarray, "B"]]:
    """Actions within the bounds of a Box and of its type, and which rows were outside.

    Discrete actions out of range raise an error.
    """
    if isinstance(space, Discrete):
        if not ((actions >= 0) & (actions < space.n)).all():
            raise ValueError(f"this environment has actions 0 to {space.n - 1}, got {actions!r}")
        return actions, np.zeros(len(actions), bool)
    inside = np.clip(actions, space.low, space.high).astype(space.dtype)
    with np.errstate(invalid="ignore"):  # infinite actions of a space without bounds
        outside = np.abs(inside - actions) > 1e-6
    return inside, outside.reshape(len(actions), -1).any(axis=1)


def executed(action: ArrayLike, space: Space) -> Any:
    """One action as an environment takes it: clipped, or a Python int."""
    inside = clipped(np.asarray(action)[None], space)[0][0]
    return int(inside) if isinstance(space, Discrete) else inside


def check_action_space(space: Space) -> None:
    """Raises unless actions are vectors of floats or numbers from 0."""
    if isinstance(space, Discrete) and space.start == 0:
        return
    if not _is_vector(space) or space.dtype.kind != "f":
        raise TypeError(
            f"actions are Box vectors of floats or Discrete numbers from 0, got {space}; "
            "wrap the environment so that an action is one vector or one number"
        )


def _is_vector(space: Space) -> bool:
    return isinstance(space, Box) and len(space.shape) == 1
