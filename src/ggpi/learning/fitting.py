"""`fit`: one training loop for every model and loss.

All models (K policies × horizons) are one stacked module; a chunk of steps is one compiled scan with the data
on the device, and Python runs only between chunks: to look at the loss, to log, and to write a checkpoint.
Step i draws everything from key folded with i, so a run that was killed and started again with the same
arguments and `out` gives bit for bit the models of one that never was. The number of steps is no part of that: a
finished run continues when it is given more. With a constant learning rate it then gives the models of a run that had
the larger number from the start; with a linear one it cannot, because the first steps were taken at other rates.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Discrete

from ggpi._jax.forking import check_process
from ggpi._jax.jit import fast_jit
from ggpi._jax.random import checked_key
from ggpi.data import StateSpec, Transitions
from ggpi.data.memory import is_mapped, within_memory
from ggpi.ghm.base import GHMs
from ggpi.ghm.coordinates import Frame, fit_frame, stack_modules
from ggpi.learning.log import TrainingLog
from ggpi.learning.loop import Setting, State, initial_state, run_chunk, score
from ggpi.learning.losses import CEMC, CETD, LOSSES, Loss, check_supported
from ggpi.learning.recipe import MODELS, PRESETS, ModelConfig, Recipe
from ggpi.learning.targets import Record, warn_if_loose
from ggpi.mdp.tabular import check_gamma
from ggpi.policies.bank import PolicyBank
from ggpi.policies.checks import check_policies, listed, space_of
from ggpi.progress import Advance, progress
from ggpi.storage.locking import sole_writer
from ggpi.storage.objects import check_savable, save
from ggpi.switching import beta_of
from ggpi.types import Key, Scalar, reals

MARGIN = 0.1
"""Nats per coordinate by which a model may score worse than knowing nothing: its loss is a bound, and has noise."""


def fit(
    policies: Sequence[Any],
    data: Transitions,
    gamma: Scalar,
    alpha: Scalar | Sequence[Scalar],
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
    memory: float = 1.0,
    tensorboard: bool = False,
    watch: Callable[[int, Any], None] | None = None,
) -> GHMs:
    """Learns μ_γ and μ_β, β = γ(1−α), of every policy from transitions of any behaviour.

    What is not given comes from the preset. With `out`, metrics, checkpoints and the finished models are kept
    there, and a run that was interrupted continues; a second run in the same directory raises an error while the first
    one is alive. A finished run continues with a larger `steps`: bit for bit the models of a run of so many steps if
    `decay` is "constant". If it is "linear", the learning rate, which had fallen to zero, follows the line of the
    larger number from there on. `spec` says which numbers of a state are special.
    Of memory-mapped transitions larger than `memory` (in GB), random whole episodes are used, and a warning says
    how many; a training takes up to five times this memory.
    With `tensorboard`, the metrics are also written to `out` as an event file, which TensorBoard shows.
    `watch` is called with the step and the models stacked horizon by horizon, before the first and after
    every chunk; it copies what it keeps, for the next chunk overwrites them.

    Paper: Alg 2, Eq 8
    """
    check_process()
    policies, key = listed(policies), checked_key(key)
    given = {"steps": steps, "batch_size": batch_size, "learning_rate": learning_rate, "decay": decay}
    given |= {"model": _named(model, MODELS, "model"), "loss": _named(loss, LOSSES, "loss")}
    recipe = dataclasses.replace(
        _named(preset, PRESETS, "preset"),
        **{name: value for name, value in given.items() if value is not None},
    )
    gamma, alphas = check_gamma(gamma), tuple(dict.fromkeys(reals(alpha, "α").ravel().tolist()))
    horizons = tuple(dict.fromkeys([gamma, *(beta_of(gamma, alpha) for alpha in alphas)]))
    spec = spec or StateSpec(tuple(f"x{i}" for i in range(np.shape(data.state)[-1])))
    if is_mapped(data):
        data = within_memory(data, memory, seed=int(jax.random.key_data(key)[-1]))
    _check(data, recipe, spec)
    space = space_of(data, policies)
    check_policies(policies, np.asarray(data.state[:1], np.float32), space, "the data")
    if out:
        check_savable(tuple(policies), "policies")
    warn_if_loose(data, len(policies), getattr(recipe.loss, "n_step", 1))
    with sole_writer(out, "ggpi.fit") if out else contextlib.nullcontext():
        with progress(recipe.steps, "fit") as advance:
            ready = prepare(policies, data, horizons, recipe, spec, key)
            fingerprint = _fingerprint(recipe, horizons, spec, key, data, policies) if out else ""
            labels = [f"{policy.name} {horizon:g}" for horizon in horizons for policy in policies]
            log = TrainingLog(out, fingerprint, tensorboard, labels)
            models = _train(ready, log, watch or (lambda step, models: None), advance)
        per_horizon = {h: _slice(models, i, len(policies)) for i, h in enumerate(horizons)}
        one_step = None
        if isinstance(space, Discrete):
            folder = Path(out) / "one-step" if out else None
            log_of_one = TrainingLog(folder, fingerprint, tensorboard, ["next state"])
            one_step = _fit_one_step(policies, data, recipe, spec, key, log_of_one)
        ordered = tuple(per_horizon[h] for h in (gamma, *(beta_of(gamma, alpha) for alpha in alphas)))
        ghms = GHMs(tuple(policies), gamma, alphas, ordered, one_step)
        if log.directory:
            save(log.directory / "models", ghms)
        return ghms


class Prepared(NamedTuple):
    """A training ready to start: what to learn from, what to score on, and fresh models."""

    setting: Setting
    scored: Setting
    state: State


def prepare(
    policies: Sequence[Any],
    data: Transitions,
    horizons: Sequence[float],
    recipe: Recipe,
    spec: StateSpec,
    key: Key,
) -> Prepared:
    """Data on the device, and models of every policy at every horizon, horizon by horizon."""
    bank = PolicyBank(tuple(policies))
    kept, records = _records(data, len(policies), horizons, recipe, key)
    betas = jnp.repeat(jnp.asarray(horizons, jnp.float32), len(policies))
    count = _num_actions(data, policies)
    frames = [_frame(kept, horizon, spec, recipe, count) for horizon in horizons for _ in policies]
    keys = jax.random.split(jax.random.fold_in(key, 2**31 - 1), len(frames))
    built = [recipe.model.build(frame, key=key) for frame, key in zip(frames, keys, strict=True)]
    check_supported(recipe.loss, built[0])
    setting, scored = (Setting(part, bank, betas, key, recipe) for part in records)
    return Prepared(setting, scored, initial_state(stack_modules(built), recipe))


def _fit_one_step(
    policies, data: Transitions, recipe: Recipe, spec: StateSpec, key: Key, log: TrainingLog
) -> Any:
    """The model at horizon 0, of all transitions: the next state is the same whoever acts."""
    recipe = dataclasses.replace(recipe, loss=CETD(n_step=1))
    with progress(recipe.steps, "next state") as advance:
        ready = prepare(policies[:1], data, (0.0,), recipe, spec, jax.random.fold_in(key, 2**31 - 3))
        models = _train(ready, log, lambda step, models: None, advance)
    return jax.tree.map(lambda leaf: leaf[0], models)


def _train(ready: Prepared, log: TrainingLog, watch: Callable[[int, Any], None], advance: Advance) -> Any:
    steps, size = ready.setting.recipe.steps, ready.setting.recipe.chunk
    state, done = log.resume(ready.state, steps)
    watch(done, state.models)
    advance(done, f"compiling, then the first {min(size, steps)} steps…" if done < steps else "")
    begun, first = time.monotonic(), done
    while done < steps:
        count = min(size - done % size, steps - done)
        state, losses = run_chunk((ready.setting, jnp.asarray(done)), state, count)
        losses = np.asarray(losses)
        log.check_finite(losses, done)
        done += count
        rate = (done - first) / (time.monotonic() - begun)
        held_out = np.asarray(score(ready.scored, state.models))
        log.write(done, losses.mean(axis=0), held_out, rate)
        log.checkpoint(state, done, is_last=done == steps)
        watch(done, state.models)
        advance(done, f"{rate:.0f} steps/s, loss {losses.mean():.3f}, held-out {held_out.mean():.3f}")
        if done == steps:
            _warn_if_blank(held_out / state.models.frame.state_size, ready.setting.recipe)
    return state.models


def _warn_if_blank(scores: np.ndarray, recipe: Recipe) -> None:
    """Warns of models whose held-out cross-entropy per coordinate is worse than that of the data's mean and spread."""
    blank = 0.5 * np.log(2 * np.pi * np.e)
    worse = scores > blank + MARGIN
    is_bound = isinstance(recipe.loss, CEMC | CETD) and getattr(recipe.model, "kl_weight", 1.0) == 1.0
    if is_bound and worse.any():
        warnings.warn(
            f"{worse.sum()} of {len(scores)} models have a held-out loss of up to {scores.max():.2f} nats per "
            f"coordinate after {recipe.steps} steps, but knowing only mean and spread scores {blank:.2f}: train "
            "longer, or on more data; ggpi.diagnose compares models with the truth",
            stacklevel=4,
        )


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
            f"{data.state.dtype}; for integer states there is ggpi.ghm.cetd_replay"
        )
    if data.state.shape[1] != spec.size:
        raise ValueError(f"the spec names {spec.size} numbers, the states have {data.state.shape[1]}")
    if len(data) < recipe.batch_size:
        raise ValueError(f"{len(data)} transitions are fewer than a batch of {recipe.batch_size}")


def _records(
    data: Transitions, num_policies: int, horizons: Sequence[float], recipe: Recipe, key: Key
) -> tuple[Transitions, list[Record]]:
    """The transitions to train on, and the records to train and to score on.

    CEMC needs long trajectories of every policy. Where some part has none, all serve for both, and it is said.
    """
    kept, held = split(data, recipe, key)
    with contextlib.suppress(ValueError):
        return kept, [recipe.loss.record(part, num_policies, horizons) for part in (kept, held)]
    record = recipe.loss.record(data, num_policies, horizons)
    warnings.warn(
        "too few long trajectories to hold some out: held-out scores are of what is trained on", stacklevel=4
    )
    return data, [record, record]


def split(data: Transitions, recipe: Recipe, key: Key) -> tuple[Transitions, Transitions]:
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


def _num_actions(data: Transitions, policies: Sequence[Any]) -> int | None:
    space = space_of(data, policies)
    return int(space.n) if isinstance(space, Discrete) else None


def _frame(
    data: Transitions,
    horizon: float,
    spec: StateSpec,
    recipe: Recipe,
    num_actions: int | None,
    size: int = 20_000,
) -> Frame:
    """Normalisation from pairs and the recorded states about a horizon later, whoever acted."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(data), size=min(size, len(data)))
    times = rng.geometric(1 - horizon, len(rows))
    ends = np.searchsorted(np.flatnonzero(np.append(np.diff(data.episode) != 0, True)), rows)
    last = np.flatnonzero(np.append(np.diff(data.episode) != 0, True))[ends]
    ahead = data.next_state[np.minimum(rows + times - 1, last)]
    return fit_frame(data.state[rows], data.action[rows], ahead, spec, num_actions, recipe.model.predict)


def _slice(models: Any, place: int, count: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[place * count : (place + 1) * count], models)


def _fingerprint(recipe, horizons, spec, key, data: Transitions, policies) -> str:
    """A digest of everything that determines a step; how many there are is not part of it.

    Of policies it takes the arrays, and what they do: functions and settings have no bytes of their own.
    """
    endless = dataclasses.replace(recipe, steps=1)
    digest = hashlib.sha256(repr((endless, horizons, spec, jax.__version__)).encode())
    parts = [jax.random.key_data(key), *(getattr(data, field.name) for field in dataclasses.fields(data))]
    parts += jax.tree.leaves(eqx.filter(list(policies), eqx.is_array))
    parts.append(_deeds(PolicyBank(tuple(policies)), data.state))
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _deeds(bank: PolicyBank, states: np.ndarray, count: int = 64) -> np.ndarray:
    """Actions of every policy in some of the states, always with the same noise."""
    rows = np.linspace(0, len(states) - 1, count).astype(int)
    seen = np.broadcast_to(np.asarray(states[rows], np.float32), (len(bank), count, states.shape[1]))
    return np.asarray(_sampled(bank, seen))


@fast_jit
def _sampled(bank: PolicyBank, states: Any) -> Any:
    return bank.sample_each(states, key=jax.random.key(0))
