"""Gymnasium's spaces as the library sees them: states and actions are vectors, or numbers from 0.

    Box of one axis    a vector, float32 whatever the environment's own type is
    Discrete           a number from 0, int32
    Dict               the chosen keys, one vector after the other: what is not chosen is no part of the state

A goal is the usual reason for a dictionary. It belongs to the reward, which changes, and not to the state, whose
futures are learned: so no key is chosen for you.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


def state_reader(space: Any, keys: Sequence[str] | None = None) -> Callable[[Any], np.ndarray]:
    """What makes states of a space's observations, of one or of a batch; a copy in every case."""
    if isinstance(space, Dict):
        chosen = _chosen(space, keys)
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
            "over vectors of some tens of numbers; wrap the environment so that it observes such a vector, of physical "
            "quantities or of features of the image (gymnasium.wrappers.TransformObservation)"
        )
    raise TypeError(
        f"observations are Box vectors or Discrete numbers from 0, got {space}; "
        "gymnasium.wrappers.FlattenObservation makes vectors of most of them"
    )


def _chosen(space: Any, keys: Sequence[str] | None) -> tuple[str, ...]:
    """The keys, if each is a vector of the space."""
    there = ", ".join(f"{key!r} {part}" for key, part in space.spaces.items())
    if keys is None or isinstance(keys, str) or not len(keys):
        perhaps = tuple(key for key in space.spaces if "goal" not in key)
        raise TypeError(
            f"observations are dictionaries of {there}: choose what makes the state, without a goal, "
            f"perhaps keys={perhaps}; got keys={keys!r}"
        )
    for key in keys:
        if key not in space.spaces:
            raise KeyError(f"observations have no key {key!r}; there are {there}")
        if not _is_vector(space.spaces[key]):
            raise TypeError(f"a chosen key is a Box vector, {key!r} is {space.spaces[key]}")
    return tuple(keys)


def check_action_space(space: Any) -> None:
    """Refuses actions that are neither real vectors nor numbers from 0."""
    if isinstance(space, Discrete) and space.start == 0:
        return
    if not _is_vector(space) or space.dtype.kind != "f":
        raise TypeError(
            f"actions are Box vectors of floats or Discrete numbers from 0, got {space}; "
            "wrap the environment so that an action is one vector or one number"
        )


def _is_vector(space: Any) -> bool:
    return isinstance(space, Box) and len(space.shape) == 1
