"""`fit`: one training loop for every model and loss.

All models (K policies × horizons) are one stacked module; a chunk of steps is one compiled scan with the data
on the device, and Python runs only between chunks: to look at the loss, to log, and to write a checkpoint.
Step i draws everything from key folded with i, so a run that was killed and started again with the same
arguments and `out` gives bit for bit the models of one that never was.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ggpi import saving
from ggpi.data import StateSpec, Transitions
from ggpi.ghm.base import GHMs
from ggpi.ghm.flow import FlowConfig
from ggpi.ghm.frame import Frame, fit_frame, stack_modules
from ggpi.ghm.losses import CETD, LOSSES, Loss, check_supported
from ggpi.ghm.targets import Record
from ggpi.ghm.training_log import TrainingLog
from ggpi.ghm.vae import VAEConfig
from ggpi.mdp import beta_of, check_gamma
from ggpi.policies.bank import PolicyBank
from ggpi.progress import progress
from ggpi.typing import Key

ModelConfig = VAEConfig | FlowConfig
MODELS: dict[str, ModelConfig] = {"vae": VAEConfig(), "flow": FlowConfig()}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How models are trained.

    Paper: Fig 5
    """

    model: ModelConfig = MODELS["vae"]
    loss: Loss = LOSSES["cetd"]
    steps: int = 10_000
    batch_size: int = 256
    """Transitions per model and step; the paper's 256 trajectories of 20 steps are 5120."""
    learning_rate: float = 1e-3
    decay: Literal["linear", "constant"] = "linear"
    """Whether the learning rate falls to zero over the run."""
    held_out: float = 0.05
    """Fraction of the episodes that are only used to score."""
    chunk: int = 250
    """Steps between two looks of Python at the training."""


PRESETS = {
    "cpu": Recipe(),
    "paper": Recipe(VAEConfig(kl_weight=20.0), CETD(n_step=1), 500_000, 256 * 20, 3e-4, "constant"),
}


def fit(
    policies: Sequence[Any],
    data: Transitions,
    gamma: float,
    alpha: float | Sequence[float],
    *,
    key: Key,
    preset: str = "cpu",
    model: str | ModelConfig | None = None,
    loss: str | Loss | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    decay: Literal["linear", "constant"] | None = None,
    spec: StateSpec | None = None,
    out: str | Path | None = None,
    tensorboard: bool = False,
    watch: Callable[[int, Any], None] | None = None,
) -> GHMs:
    """Learns μ_γ and μ_β, β = γ(1−α), of every policy from transitions of any behaviour.

    What is not given comes from the preset. With `out`, metrics, checkpoints and the finished models are kept
    there, and a run that was interrupted goes on. `spec` says which numbers of a state are special.
    `watch` is called with the step and the models stacked horizon by horizon, before the first and after
    every chunk; it copies what it keeps, for the next chunk overwrites them.

    Paper: Alg 2, Eq 8
    """
    given = {"steps": steps, "batch_size": batch_size, "learning_rate": learning_rate, "decay": decay}
    given |= {"model": _named(model, MODELS, "model"), "loss": _named(loss, LOSSES, "loss")}
    recipe = dataclasses.replace(
        _named(preset, PRESETS, "preset"),
        **{name: value for name, value in given.items() if value is not None},
    )
    check_gamma(gamma)
    alphas = tuple(dict.fromkeys(np.asarray(alpha, float).ravel().tolist()))
    horizons = tuple(dict.fromkeys([gamma, *(beta_of(gamma, alpha) for alpha in alphas)]))
    spec = spec or StateSpec(tuple(f"x{i}" for i in range(np.shape(data.state)[-1])))
    _check(data, recipe, spec)
    training = _Training(policies, data, horizons, recipe, spec, key)
    log = TrainingLog(out, training.fingerprint, tensorboard)
    models = _train(training, log, watch or (lambda step, models: None))
    per_horizon = {h: _slice(models, i, len(policies)) for i, h in enumerate(horizons)}
    ghms = GHMs(tuple(policies), gamma, alphas, per_horizon)
    if log.directory:
        saving.save(log.directory / "models", ghms)
    return ghms


class _State(eqx.Module):
    """What a checkpoint holds: weights, the slow copy that targets come from, and Adam's moments."""

    models: Any
    slow: Any
    moments: Any


class _Training:
    """The data on the device and the two compiled functions: a chunk of steps, and a score."""

    def __init__(self, policies, data, horizons, recipe: Recipe, spec: StateSpec, key):
        self.recipe, self.key = recipe, key
        self.bank = PolicyBank(tuple(policies))
        self.betas = jnp.repeat(jnp.asarray(horizons, jnp.float32), len(policies))
        kept, held = _split(data, recipe, key)
        self.recorded, self.scored = (
            recipe.loss.record(part, len(policies), horizons) for part in (kept, held)
        )
        frames = [_frame(kept, horizon, spec, recipe) for horizon in horizons]
        self.initial = self._initial([frame for frame in frames for _ in policies])
        self.fingerprint = _fingerprint(recipe, horizons, spec, key, data, policies)

    def _initial(self, frames: list[Frame]) -> _State:
        keys = jax.random.split(jax.random.fold_in(self.key, 2**31 - 1), len(frames))
        built = [self.recipe.model.build(frame, key=key) for frame, key in zip(frames, keys, strict=True)]
        check_supported(self.recipe.loss, built[0])
        models = stack_modules(built)
        moments = self.optimiser.init(eqx.filter(models, eqx.is_inexact_array))
        slow = jax.tree.map(jnp.array, models) if self._has_slow_copy else None
        return _State(models, slow, moments)

    @functools.cached_property
    def optimiser(self) -> optax.GradientTransformation:
        rate = self.recipe.learning_rate
        falling = optax.linear_schedule(rate, 0.0, self.recipe.steps)
        return optax.adam(falling if self.recipe.decay == "linear" else rate)

    @property
    def _has_slow_copy(self) -> bool:
        return self.recipe.loss.ema_decay is not None or self.recipe.loss.copy_every is not None

    def chunk(self, state: _State, first: int, count: int) -> tuple[_State, np.ndarray]:
        """The state after steps first … first + count − 1, and their losses [count, M]."""
        given = self.recorded, self.bank, jnp.asarray(first), count
        state, losses = self._compiled_chunk(given, state)
        return state, np.asarray(losses)

    @functools.cached_property
    def _compiled_chunk(self):
        return eqx.filter_jit(self._scan, donate="all-except-first")

    def _scan(self, given: tuple, state: _State) -> tuple[_State, Any]:
        recorded, bank, first, count = given
        arrays, static = eqx.partition(state, eqx.is_array)

        def step(arrays, i):
            state, losses = self._step(eqx.combine(arrays, static), recorded, bank, i)
            return eqx.filter(state, eqx.is_array), losses

        arrays, losses = jax.lax.scan(step, arrays, first + jnp.arange(count))
        return eqx.combine(arrays, static), losses

    def _step(self, state: _State, recorded: Record, bank: PolicyBank, i) -> tuple[_State, Any]:
        recipe, key = self.recipe, jax.random.fold_in(self.key, i)
        slow = state.slow if self._has_slow_copy else state.models

        @functools.partial(eqx.filter_value_and_grad, has_aux=True)
        def total(models):
            losses, batch = recipe.loss.batch(
                models, slow, recorded, bank, self.betas, recipe.batch_size, key=key
            )
            return losses.sum(), (losses, batch)

        (_, (losses, batch)), gradient = total(state.models)
        updates, moments = self.optimiser.update(gradient, state.moments)
        models = eqx.apply_updates(state.models, updates)
        models = jax.vmap(lambda model, *seen: model.observe(*seen))(models, *batch)
        return _State(models, self._slower(state.slow, models, i), moments), losses

    def _slower(self, slow, models, i):
        """The copy that the next targets come from."""
        decay, every = self.recipe.loss.ema_decay, self.recipe.loss.copy_every
        if decay is not None:
            return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, slow, models)
        if every is not None:
            return jax.tree.map(lambda old, new: jnp.where((i + 1) % every == 0, new, old), slow, models)
        return None

    @functools.cached_property
    def score(self):
        """The loss of each model on held-out episodes, always with the same draws."""
        key, recipe = jax.random.fold_in(self.key, 2**31 - 2), self.recipe

        def score(models, recorded, bank):
            return recipe.loss.batch(models, models, recorded, bank, self.betas, 512, key=key)[0]

        compiled = eqx.filter_jit(score)
        return lambda models: np.asarray(compiled(models, self.scored, self.bank))


def _train(training: _Training, log: TrainingLog, watch: Callable[[int, Any], None]) -> Any:
    steps, size = training.recipe.steps, training.recipe.chunk
    state, done = log.resume(training.initial)
    watch(done, state.models)
    with progress(steps, "fit") as advance:
        begun, first = time.monotonic(), done
        while done < steps:
            count = min(size, steps - done)
            state, losses = training.chunk(state, done, count)
            log.check_finite(losses, done)
            done += count
            rate = (done - first) / (time.monotonic() - begun)
            held_out = training.score(state.models)
            log.write(done, losses.mean(axis=0), held_out, rate)
            log.checkpoint(state, done, is_last=done == steps)
            watch(done, state.models)
            advance(done, f"{rate:.0f} steps/s, loss {losses.mean():.3f}, held-out {held_out.mean():.3f}")
    return state.models


def _named(given: Any, known: dict[str, Any], what: str) -> Any:
    if isinstance(given, str):
        if given not in known:
            raise ValueError(f"unknown {what} {given!r}; there are {', '.join(known)}")
        return known[given]
    return given


def _check(data: Transitions, recipe: Recipe, spec: StateSpec) -> None:
    """Everything that would only fail later, before any training."""
    data.check()
    if data.state.ndim != 2 or not np.issubdtype(data.state.dtype, np.floating):
        raise ValueError(
            f"fit learns over vectors: states have shape [N, D] and are floats, got {data.state.shape} "
            f"{data.state.dtype}; for integer states there is ggpi.cetd_replay"
        )
    if data.state.shape[1] != spec.size:
        raise ValueError(f"the spec names {spec.size} numbers, the states have {data.state.shape[1]}")
    if len(data) < recipe.batch_size:
        raise ValueError(f"{len(data)} transitions are fewer than a batch of {recipe.batch_size}")
    if recipe.steps < 1:
        raise ValueError(f"steps is at least 1, got {recipe.steps}")


def _split(data: Transitions, recipe: Recipe, key: Key) -> tuple[Transitions, Transitions]:
    """Transitions to train on and to score on, by whole episodes of each policy that began one.

    A policy with a single episode keeps it for training; with nothing to hold out, all serve for both.
    """
    episodes, first = np.unique(data.episode, return_index=True)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    held = []
    for behaviour in np.unique(data.behaviour[first]):
        own = rng.permutation(episodes[data.behaviour[first] == behaviour])
        held.extend(own[: min(max(1, round(recipe.held_out * len(own))), len(own) - 1)])
    chosen = np.isin(data.episode, held)
    return (data[~chosen], data[chosen]) if chosen.any() else (data, data)


def _frame(data: Transitions, horizon: float, spec: StateSpec, recipe: Recipe, size: int = 20_000) -> Frame:
    """Normalisation from pairs and the recorded states about a horizon later, whoever acted."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(data), size=min(size, len(data)))
    times = rng.geometric(1 - horizon, len(rows))
    ends = np.searchsorted(np.flatnonzero(np.append(np.diff(data.episode) != 0, True)), rows)
    last = np.flatnonzero(np.append(np.diff(data.episode) != 0, True))[ends]
    ahead = data.next_state[np.minimum(rows + times - 1, last)]
    num_actions = int(data.action.max()) + 1 if np.issubdtype(data.action.dtype, np.integer) else None
    return fit_frame(data.state[rows], data.action[rows], ahead, spec, num_actions, recipe.model.predict)


def _slice(models: Any, place: int, count: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[place * count : (place + 1) * count], models)


def _fingerprint(recipe, horizons, spec, key, data: Transitions, policies) -> str:
    """A digest of everything that determines the result."""
    digest = hashlib.sha256(repr((recipe, horizons, spec, jax.__version__)).encode())
    parts = [jax.random.key_data(key), *(getattr(data, field.name) for field in dataclasses.fields(data))]
    parts += jax.tree.leaves(eqx.filter(list(policies), eqx.is_array))
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
