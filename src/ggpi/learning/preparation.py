"""Everything before the first step of a training: held-out episodes, data on the device, frames and fresh models."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Array

from ggpi._jax.batching import stack
from ggpi._jax.jit import fast_jit
from ggpi.data import StateSpec, Transitions
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.conditioned import conditioned, following_path
from ggpi.ghm.coordinates import Frame, fit_frame
from ggpi.ghm.timed import Timed
from ggpi.learning.horizons import AnyHorizon
from ggpi.learning.loop import Training, TrainState, initial_state
from ggpi.learning.losses import Problem
from ggpi.learning.recipe import Recipe, check_suited
from ggpi.learning.targets import Dataset
from ggpi.policies.bank import PolicyBank
from ggpi.policies.checks import space_of
from ggpi.policies.family import codes_of
from ggpi.types import Actor, Key

FRAME_ROWS = 20_000
"""Transitions from which a frame is fitted."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a training is made from, after all checks."""

    policies: Sequence[Actor]
    data: Transitions
    horizons: tuple[float, ...]
    recipe: Recipe
    spec: StateSpec
    key: Key

    def check(self) -> None:
        """Raises for everything that would only fail later, before any training."""
        state = self.data.state
        self.data.check()
        if state.ndim != 2 or not np.issubdtype(state.dtype, np.floating):
            raise ValueError(
                f"fit learns over vectors: states have shape [N, D] and are floats, got {state.shape} "
                f"{state.dtype}; for integer states there is ggpi.ghm.cetd_replay"
            )
        if state.shape[1] != self.spec.size:
            raise ValueError(f"the spec has {self.spec.size} coordinates, the states have {state.shape[1]}")
        if len(self.data) < self.recipe.batch_size:
            raise ValueError(
                f"{len(self.data)} transitions are fewer than a batch of {self.recipe.batch_size}"
            )
        frame = _frame(self.data[:2], 0.0, self.spec, self.recipe, self.num_actions)
        check_suited(self.recipe.loss, self.recipe.model.build(frame, key=self.key))

    @property
    def num_actions(self) -> int | None:
        """The number of discrete actions; None when they are vectors."""
        space = space_of(self.data, self.policies)
        return int(space.n) if isinstance(space, Discrete) else None

    def fingerprint(self) -> str:
        """A digest of everything that determines a step; how many there are is not part of it.

        Of policies it takes the arrays, and the actions: functions and settings have no bytes of their own.
        """
        endless = replace(self.recipe, steps=1)
        digest = hashlib.sha256(repr((endless, self.horizons, self.spec, jax.__version__)).encode())
        parts = [jax.random.key_data(self.key), *(getattr(self.data, f.name) for f in fields(self.data))]
        parts += jax.tree.leaves(eqx.filter(list(self.policies), eqx.is_array))
        parts.append(_some_actions(PolicyBank(tuple(self.policies)), self.data.state))
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def new_training(inputs: Inputs) -> tuple[Training, TrainState]:
    """Data on the device, and fresh models."""
    build = _shared if isinstance(inputs.recipe.loss, AnyHorizon) else _stacked
    return training_of(inputs, build)


def training_of(
    inputs: Inputs, build: Callable[[Inputs, Transitions], AbstractGHM]
) -> tuple[Training, TrainState]:
    """Data on the device, and models made from inputs and the transitions to train on."""
    recipe, count = inputs.recipe, len(inputs.policies)
    kept, datasets = _datasets(inputs.data, count, inputs.horizons, recipe, inputs.key)
    bank = PolicyBank(tuple(inputs.policies))
    betas = jnp.repeat(jnp.asarray(inputs.horizons, jnp.float32), count)
    problem, held_out = (Problem(dataset, bank, betas) for dataset in datasets)
    return Training(problem, held_out, inputs.key, recipe), initial_state(build(inputs, kept), recipe)


def _stacked(inputs: Inputs, data: Transitions) -> AbstractGHM:
    """Models of every policy at every horizon, horizon by horizon."""
    recipe, num_actions = inputs.recipe, inputs.num_actions
    horizons = [horizon for horizon in inputs.horizons for _ in inputs.policies]
    keys, models = jax.random.split(_weight_key(inputs), len(horizons)), []
    for horizon, key in zip(horizons, keys, strict=True):
        built = recipe.model.build(_frame(data, horizon, inputs.spec, recipe, num_actions), key=key)
        models.append(built.at_horizon(horizon) if isinstance(built, Timed) else built)
    return stack(models)


def _shared(inputs: Inputs, data: Transitions) -> AbstractGHM:
    """One network for every policy and all horizons up to the first."""
    recipe, largest = inputs.recipe, inputs.horizons[0]
    num_models = len(inputs.horizons) * len(inputs.policies)
    frame = _frame(data, largest, inputs.spec, recipe, inputs.num_actions)
    model_key, shift_key = jax.random.split(_weight_key(inputs))
    built = following_path(recipe.model.build(frame, key=model_key))
    return conditioned(built, jnp.asarray(codes_of(inputs.policies)), largest, num_models, key=shift_key)


def _weight_key(inputs: Inputs) -> Key:
    return jax.random.fold_in(inputs.key, 2**31 - 1)


def _datasets(
    data: Transitions, num_policies: int, horizons: Sequence[float], recipe: Recipe, key: Key
) -> tuple[Transitions, list[Dataset]]:
    """The transitions to train on, and the datasets to train and to score on.

    CEMC needs long trajectories of every policy. If some part has none, all data serve for both, with a warning.
    """
    kept, held = split(data, recipe.held_out, key)
    with contextlib.suppress(ValueError):
        return kept, [recipe.loss.dataset(part, num_policies, horizons) for part in (kept, held)]
    dataset = recipe.loss.dataset(data, num_policies, horizons)
    warnings.warn(
        "too few long trajectories to hold some out: held-out scores are of what is trained on", stacklevel=4
    )
    return data, [dataset, dataset]


def split(data: Transitions, held_out: float, key: Key) -> tuple[Transitions, Transitions]:
    """Transitions to train on and to score on, by whole episodes of each policy that began one.

    A policy with a single episode keeps it for training; if nothing can be held out, all data serve for both.

    Args:
        data: all transitions.
        held_out: the fraction of the episodes to score on.
        key: decides which episodes these are.
    """
    episodes, first = np.unique(data.episode, return_index=True)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    held = []
    for behaviour in np.unique(data.behaviour[first]):
        own = rng.permutation(episodes[data.behaviour[first] == behaviour])
        held.extend(own[: min(max(1, round(held_out * len(own))), len(own) - 1)])
    chosen = np.isin(data.episode, held)
    return (data[~chosen], data[chosen]) if chosen.any() else (data, data)


def _frame(
    data: Transitions, horizon: float, spec: StateSpec, recipe: Recipe, num_actions: int | None
) -> Frame:
    """Normalisation from pairs and the recorded states about a horizon later, whatever the behaviour policy."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(data), size=min(FRAME_ROWS, len(data)))
    times = rng.geometric(1 - horizon, len(rows))
    ends = np.flatnonzero(data.episode_ends)
    last = ends[np.searchsorted(ends, rows)]
    ahead = data.next_state[np.minimum(rows + times - 1, last)]
    return fit_frame(data.state[rows], data.action[rows], ahead, spec, num_actions, recipe.model.predict)


def _some_actions(bank: PolicyBank, states: np.ndarray, count: int = 64) -> np.ndarray:
    """Actions of every policy in some of the states, always with the same noise."""
    rows = np.linspace(0, len(states) - 1, count).astype(int)
    seen = np.broadcast_to(np.asarray(states[rows], np.float32), (len(bank), count, states.shape[1]))
    return np.asarray(_sampled(bank, seen))


@fast_jit
def _sampled(bank: PolicyBank, states: Array) -> Array:
    return bank.sample_each(states, key=jax.random.key(0))
