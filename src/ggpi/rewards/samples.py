"""Samples of a reward: checked, split, and ready to learn from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ggpi.rewards.forms import Form
from ggpi.types import ArrayLike

FORMS: tuple[Form, ...] = ("state_action", "state", "arrival")
LEAST = 100
"""The smallest number of samples; of fewer, less than ten would be held out."""


class Samples(NamedTuple):
    """States, actions unless the form has none, and rewards."""

    states: Float[np.ndarray, "N D"]
    actions: Float[np.ndarray, "N A"] | Int[np.ndarray, "N"] | None
    rewards: Float[np.ndarray, "N"]

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        return (self.states,) if self.actions is None else (self.states, self.actions)

    def rows(self, rows: np.ndarray) -> Samples:
        actions = None if self.actions is None else self.actions[rows]
        return Samples(self.states[rows], actions, self.rewards[rows])


def checked_samples(states: ArrayLike, actions: ArrayLike | None, rewards: ArrayLike, form: str) -> Samples:
    """The samples as arrays; raises for wrong shapes, types and values."""
    if (actions is None) == (checked_form(form) == "state_action"):
        problem = "needs actions" if actions is None else "does not depend on actions: pass actions=None"
        raise ValueError(f"a {form} reward {problem}")
    samples = Samples(
        _floats("states", states),
        None if actions is None else _actions(actions),
        _floats("rewards", rewards),
    )
    is_discrete = samples.actions is not None and samples.actions.dtype.kind == "i"
    axes = [2, 1] if samples.actions is None else [2, 1 if is_discrete else 2, 1]
    parts = [*samples.inputs, samples.rewards]
    if [part.ndim for part in parts] != axes or len({len(part) for part in parts}) != 1:
        shapes = {name: part for name, part in samples._asdict().items() if part is not None}
        found = ", ".join(f"{name} {list(shape.shape)}" for name, shape in shapes.items())
        raise ValueError(
            "states must have shape [N, D], rewards [N], actions [N, A] (or [N] when they are integers), with one N; "
            f"got {found}"
        )
    if len(samples.rewards) < LEAST:
        raise ValueError(f"a reward is learned from at least {LEAST} samples, got {len(samples.rewards)}")
    return samples


def checked_form(form: str) -> Form:
    """The form of a reward, if it is one."""
    for known in FORMS:
        if form == known:
            return known
    raise ValueError(f"the form of a reward is one of {', '.join(FORMS)}, got {form!r}")


def _actions(values: ArrayLike) -> np.ndarray:
    """Integers from 0, or floats."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        return _floats("actions", array)
    if array.size and array.min() < 0:
        raise ValueError(f"discrete actions are numbers from 0, got {array.min()}")
    return array.astype(np.int32)


def _floats(name: str, values: ArrayLike) -> np.ndarray:
    """An array in single precision; all elements must be finite."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got dtype {array.dtype}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        at = tuple(map(int, bad[0]))
        raise ValueError(f"{len(bad)} of {array.size} {name} are not finite, the first at index {at}")
    return array.astype(np.float32)


def split(samples: Samples, held_out: float, seed: int) -> tuple[Samples, Samples]:
    """Samples to train on and held-out samples."""
    order = np.random.default_rng(seed).permutation(len(samples.rewards))
    num_held = max(1, round(held_out * len(order)))
    kept, held = samples.rows(order[num_held:]), samples.rows(order[:num_held])
    if np.ptp(held.rewards) == 0 or np.ptp(kept.rewards) == 0:
        raise ValueError(
            f"nearly all rewards are {held.rewards[0]:g} ({len(np.unique(samples.rewards))} different among "
            f"{len(order)}), so nothing can be learned or scored; pass more samples in which they differ"
        )
    return kept, held


def action_count(samples: Samples, num_actions: int | None) -> int | None:
    """The number of discrete actions; None if there are none."""
    if samples.actions is None or samples.actions.dtype.kind != "i":
        if num_actions is not None:
            raise ValueError(f"num_actions={num_actions} is for discrete actions, there are none")
        return None
    seen = int(samples.actions.max()) + 1
    if num_actions is not None and num_actions < seen:
        raise ValueError(f"num_actions is {num_actions}, but action {seen - 1} was taken")
    return num_actions or seen
