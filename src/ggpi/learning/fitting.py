"""`fit`: one training loop for every model and loss.

All models (K policies × horizons) are one stacked module; a chunk of steps is one compiled scan with the data
on the device, and Python runs only between chunks: to check the loss, to log, and to write a checkpoint.
Step i draws everything from key folded with i, so a run that was killed and started again with the same
arguments and `out` gives bit for bit the models of one that was not. The number of steps is not part of that: a
finished run continues when it is given more. With a constant learning rate it then gives the models of a run that had
the larger number from the start; with a linear one it cannot, because the first steps were taken at other rates.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Float

from ggpi._jax.batching import part_of, stack
from ggpi._jax.forking import check_process
from ggpi._jax.random import checked_key
from ggpi.data import StateSpec, Transitions
from ggpi.data.memory import is_mapped, within_memory
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import Conditioned
from ggpi.ghm.timed import Timed, TimedConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.energy_losses import EnergyLoss, EnergyTD
from ggpi.learning.flow_losses import DirectLoss, NextStateCFM, PathLoss
from ggpi.learning.horizons import AnyHorizon
from ggpi.learning.log import Callback, Report, TrainingLog
from ggpi.learning.loop import Training, TrainState, run_chunk, score
from ggpi.learning.losses import CEMC, CETD, Loss
from ggpi.learning.parts import Choose, fit_parts, single_models
from ggpi.learning.preparation import Inputs, new_training
from ggpi.learning.recipe import CPU, ModelConfig, Recipe, any_horizon, changed
from ggpi.learning.targets import warn_if_loose
from ggpi.mdp.tabular import check_gamma
from ggpi.policies.checks import check_policies, listed, space_of
from ggpi.progress import Advance, progress
from ggpi.storage.locking import sole_writer
from ggpi.storage.objects import check_savable, save
from ggpi.switching import beta_of
from ggpi.types import Actor, Key, Scalar, reals

if TYPE_CHECKING:
    from ggpi.cluster import Executor

MARGIN = 0.1
"""Nats per coordinate by which a model may score worse than mean and spread of the data: its loss is a noisy bound."""
MEMORY = 1.0
"""Gigabytes of memory-mapped transitions that are loaded; a training takes up to five times as much."""


def fit(
    policies: Sequence[Actor],
    data: Transitions,
    *,
    gamma: Scalar,
    alpha: Scalar | Sequence[Scalar] | str,
    recipe: Recipe = CPU,
    spec: StateSpec | None = None,
    out: str | Path | None = None,
    consistency: float = 0.0,
    model: str | ModelConfig | None = None,
    loss: str | Loss | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    callbacks: Sequence[Callback] = (),
    executor: Executor | None = None,
    key: Key,
) -> GHMs:
    """Learns μ_γ and μ_β, β = γ(1−α), of every policy from transitions of any behaviour policy.

    With `out`, metrics, checkpoints and the finished models are written there, and an interrupted run resumes when it
    is started again with the same arguments. A finished run continues with a larger `steps`: bit for bit the models of
    a run of so many steps if the recipe's `decay` is "constant". If it is "linear", the learning rate, which had fallen
    to zero, follows the line of the larger number from there on.

    Args:
        policies: the policies to evaluate; `data.behaviour` holds their indices.
        data: transitions of state vectors. Of memory-mapped ones larger than 1 GB random whole episodes are used,
            with a warning; to use more, load them with `ggpi.data.within_memory(data, gigabytes)` first.
        gamma: the discount γ, which is the horizon of a plan's last segment.
        alpha: the probability of a switch after each step; several give models for each, () none. "any" trains one
            flow-matching or diffusion network for all policies and all horizons up to γ: the models accept any α, and
            `ghms.with_gamma` any smaller γ.
        recipe: model, loss and the numbers of the optimiser; `CPU` and `PAPER` are in `ggpi.learning.recipe`.
        spec: names of the state's coordinates, and which of them are positions or rotations.
        out: directory of this training; one process at a time may write to it.
        consistency: with alpha="any", the share of rows that are trained through a shorter horizon, such as 0.25.
        model: instead of the recipe's: "vae", "flow", "flow-matching", "diffusion", "timed", or a config with `build`.
        loss: instead of the recipe's: "cetd", "cemc", "ll2td"; for flow matching "td2-cfm" (its default), "td-cfm",
            "td-cfm-c", "mc-cfm"; for diffusion "td2-dd" (its default), "td-dd"; for timed
            "energy-td" (its default), "energy-mc"; or any `ggpi.learning.losses.Loss`.
        steps: instead of the recipe's.
        batch_size: instead of the recipe's.
        learning_rate: instead of the recipe's.
        callbacks: called with a `Report` before the first chunk and after every chunk.
        executor: trains each model in a task of its own, such as `ggpi.cluster.processes(4)`; the same models on every
            executor, though not those of the undivided training. One network for all horizons is one task.
        key: the source of weights, batches and held-out episodes.

    Paper: Alg 2, Eq 8
    """
    check_process()
    policies, key = listed(policies), checked_key(key)
    numbers = {"steps": steps, "batch_size": batch_size, "learning_rate": learning_rate}
    recipe = changed(recipe, model=model, loss=loss, **numbers)
    gamma, alphas = check_gamma(gamma), _alphas(alpha)
    if model == "vae" and isinstance(alpha, str):
        raise TypeError(
            'alpha="any" trains one flow-matching or diffusion network, got model="vae"; leave it out'
        )
    recipe = _for_horizons(recipe, alpha, gamma, consistency)
    segments = gamma, *(beta_of(gamma, alpha) for alpha in alphas)
    horizons = trained_horizons(recipe, segments)
    spec = spec or StateSpec(tuple(f"x{i}" for i in range(np.shape(data.state)[-1])))
    if is_mapped(data):
        data = within_memory(data, MEMORY, seed=int(jax.random.key_data(key)[-1]))
    inputs = Inputs(policies, data, horizons, recipe, spec, key)
    _check(inputs, is_saved=out is not None)
    with sole_writer(out, "ggpi.fit") if out else contextlib.nullcontext():
        place = Path(out) if out else None
        if executor is None:
            trained, one_step = _fit_here(inputs, place, callbacks)
        else:
            trained, one_step = _fit_elsewhere(inputs, place, callbacks, executor)
        ghms = GHMs(policies, gamma, alphas, by_horizon(trained, horizons, segments), one_step)
        if out:
            save(Path(out) / "models", ghms)
        return ghms


def _alphas(alpha: Scalar | Sequence[Scalar] | str) -> tuple[float, ...]:
    if isinstance(alpha, str):
        if alpha != "any":
            raise ValueError(f'alpha is a probability, several, or "any"; got {alpha!r}')
        return ()
    return tuple(dict.fromkeys(reals(alpha, "α").ravel().tolist()))


def _for_horizons(recipe: Recipe, alpha: object, gamma: float, consistency: float) -> Recipe:
    """The recipe of one network for all horizons, or of models that are trained apart."""
    if isinstance(alpha, str):
        return any_horizon(recipe, gamma, consistency)
    if consistency:
        raise ValueError(
            "consistency relates the horizons of one network, and these models are trained apart: use "
            f'alpha="any", or consistency=0 instead of {consistency:g}'
        )
    return recipe


def trained_horizons(recipe: Recipe, segments: Sequence[float]) -> tuple[float, ...]:
    """The horizons at which models are trained; from one at γ, the first, all shorter ones may follow."""
    if isinstance(recipe.loss, AnyHorizon):
        return recipe.loss.horizons
    return (segments[0],) if isinstance(recipe.model, TimedConfig) else tuple(dict.fromkeys(segments))


def by_horizon(
    trained: AbstractGHM, horizons: Sequence[float], segments: Sequence[float]
) -> tuple[AbstractGHM, ...]:
    """The models of all policies at the horizon of each segment."""
    if isinstance(trained, Conditioned | Timed):
        return tuple(map(trained.at_horizon, segments))
    count = len(jax.tree.leaves(trained)[0]) // len(horizons)
    return tuple(part_of(trained, slice(i * count, (i + 1) * count)) for i in map(horizons.index, segments))


def _check(inputs: Inputs, is_saved: bool) -> None:
    """Raises for everything that would only fail later, before any training."""
    policies, data, loss = inputs.policies, inputs.data, inputs.recipe.loss
    loss = loss.loss if isinstance(loss, AnyHorizon) else loss
    inputs.check()
    check_policies(policies, np.asarray(data.state[:1], np.float32), space_of(data, policies), "the data")
    if is_saved:
        check_savable(tuple(policies), "policies")
    if isinstance(loss, CETD | PathLoss | EnergyTD):
        warn_if_loose(data, len(policies), loss.n_step)


def _fit_here(
    inputs: Inputs, out: Path | None, callbacks: Sequence[Callback]
) -> tuple[AbstractGHM, AbstractGHM | None]:
    """All models as one stack, and that of the next state if actions are discrete."""
    fingerprint = inputs.fingerprint() if out else ""
    names = [getattr(policy, "name", type(policy).__name__) for policy in inputs.policies]
    labels = [f"{name} {horizon:g}" for horizon in inputs.horizons for name in names]
    trained = train(*new_training(inputs), TrainingLog(out, fingerprint), labels, callbacks, "fit")
    if inputs.num_actions is None:
        return trained, None
    log = TrainingLog(out and out / "one-step", fingerprint)
    one_step = train(*new_training(_one_step(inputs)), log, ["next state"], callbacks, "next state")
    return trained, part_of(one_step, 0)


def _fit_elsewhere(
    inputs: Inputs, out: Path | None, callbacks: Sequence[Callback], executor: Executor
) -> tuple[AbstractGHM, AbstractGHM | None]:
    """The same with a task for each model, or for the network that all horizons share."""
    if callbacks:
        raise ValueError("callbacks run where the models are trained: give no callbacks, or no executor")
    is_shared = isinstance(inputs.recipe.loss, AnyHorizon)
    parts: dict[str, Choose] = {"all horizons": _unchanged} if is_shared else single_models(inputs)
    if inputs.num_actions is not None:
        parts = {**parts, "next state": _one_step}
    found = fit_parts(_fit_part, inputs, parts, executor, out)
    one_step = part_of(found.pop(), 0) if inputs.num_actions is not None else None
    return found[0] if is_shared else stack([part_of(one, 0) for one in found]), one_step


def _fit_part(inputs: Inputs, out: Path | None) -> AbstractGHM:
    log = TrainingLog(out, inputs.fingerprint() if out else "")
    labels = [f"model {m}" for m in range(len(inputs.horizons) * len(inputs.policies))]
    return train(*new_training(inputs), log, labels, (), "fit")


def _unchanged(inputs: Inputs) -> Inputs:
    return inputs


def _one_step(inputs: Inputs) -> Inputs:
    """For the model at horizon 0, of all transitions: the next state does not depend on the policy."""
    loss: Loss = CETD(n_step=1)
    if isinstance(inputs.recipe.loss, PathLoss | DirectLoss | AnyHorizon):
        loss = NextStateCFM()
    elif isinstance(inputs.recipe.loss, EnergyLoss):
        loss = EnergyTD(n_step=1)
    recipe = replace(inputs.recipe, loss=loss)
    key = jax.random.fold_in(inputs.key, 2**31 - 3)
    return replace(inputs, policies=inputs.policies[:1], horizons=(0.0,), recipe=recipe, key=key)


def train(
    training: Training,
    state: TrainState,
    log: TrainingLog,
    labels: Sequence[str],
    callbacks: Sequence[Callback],
    what: str,
) -> AbstractGHM:
    """The stacked models after all steps; what a directory holds of them already is not repeated."""
    recipe = training.recipe
    with progress(recipe.steps, what) as advance:
        state, done = log.resume(state, recipe.steps)

        def report(loss: np.ndarray | None = None, held_out: np.ndarray | None = None, rate: float = 0.0):
            for callback in callbacks:
                callback(Report(done, state.models, tuple(labels), loss, held_out, rate, log.directory))

        report()
        _announce(advance, done, recipe)
        begun, first = time.monotonic(), done
        while done < recipe.steps:
            count = min(recipe.chunk - done % recipe.chunk, recipe.steps - done)
            state, losses = run_chunk(training, state, first=done, count=count)
            losses = np.asarray(losses)
            log.check_finite(losses, done)
            done += count
            rate = (done - first) / (time.monotonic() - begun)
            held_out = np.asarray(score(training, state.models))
            log.write(done, losses.mean(axis=0), held_out, rate)
            log.checkpoint(state, done, is_last=done == recipe.steps)
            report(losses.mean(axis=0), held_out, rate)
            advance(done, f"{rate:.0f} steps/s, loss {losses.mean():.3f}, held-out {held_out.mean():.3f}")
            if done == recipe.steps:
                _warn_if_blank(held_out / state.models.frame.target_size, recipe)
    return state.models


def _announce(advance: Advance, done: int, recipe: Recipe) -> None:
    more = (
        f"compiling, then the first {min(recipe.chunk, recipe.steps)} steps…" if done < recipe.steps else ""
    )
    advance(done, more)


def _warn_if_blank(scores: Float[np.ndarray, "M"], recipe: Recipe) -> None:
    """Warns of models whose held-out cross-entropy per coordinate is worse than that of the data's mean and spread."""
    blank = 0.5 * np.log(2 * np.pi * np.e)
    worse = scores > blank + MARGIN
    is_weighted = isinstance(recipe.model, VAEConfig) and recipe.model.kl_weight != 1.0
    if isinstance(recipe.loss, CEMC | CETD) and not is_weighted and worse.any():
        warnings.warn(
            f"{worse.sum()} of {len(scores)} models have a held-out loss of up to {scores.max():.2f} nats per "
            f"coordinate after {recipe.steps} steps, but knowing only mean and spread scores {blank:.2f}: train "
            "longer, or on more data; ggpi.diagnose compares models with the truth",
            stacklevel=4,
        )
