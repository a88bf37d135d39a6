"""The numbers of all models of a set."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ggpi.data import Transitions
from ggpi.diagnosis.health import (
    action_sensitivity,
    horizon_consistency,
    impossible,
    off_data,
    state_dependence,
)
from ggpi.diagnosis.measures import compare, measure, value_mse
from ggpi.diagnosis.samples import draw_at
from ggpi.diagnosis.teaching import beside_teacher, checked_teacher
from ggpi.diagnosis.truth import RECORDED, VISITED, Source, Truth, recorded_futures, true_futures
from ggpi.diagnosis.verdict import judge
from ggpi.ghm.base import GHMs
from ggpi.progress import progress
from ggpi.types import GHM, Key, Policy


def diagnose(
    ghms: GHMs,
    policies: Sequence[Policy] | None,
    env_or_trajectories: Source,
    *,
    key: Key,
    num_pairs: int = 16,
    num_samples: int = 256,
    keys: Sequence[str] | None = None,
    teacher: GHMs | None = None,
    seed: int = 0,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Numbers by policy and horizon: `numbers["up"]["0.9"]["energy"]`; None takes the models' own policies.

    `numbers["up"]["0.9"]["verdict"]` is "good", "usable" or "bad", and `["why"]` a list of reasons, from the thresholds
    of `ggpi.diagnosis.verdict`.

    Distances are in units of the true displacement's spread, and `…_floor` is the same number between two sets of
    true futures. `left_out` counts the draws of T that lay beyond the recording.

    Args:
        policies: the policies in the order of the models; None takes the models' own.
        env_or_trajectories: where true futures come from: an environment of `ggpi.envs` is simulated, a Gymnasium
            environment is run repeatedly from the same states, and of transitions each policy's own are followed.
        num_pairs: pairs (x, a) at which samples and true futures are compared.
        num_samples: samples and futures at each pair.
        keys: of dictionary observations, the parts that make the state.
        teacher: the models that these were distilled from. `teacher_energy` is the energy distance to its samples, and
            `energy_of_teacher` that of its samples to the truth.
    """
    policies = ghms.policies if policies is None else policies
    if len(policies) != len(ghms.policies):
        raise ValueError(f"there are models of {len(ghms.policies)} policies, got {len(policies)} policies")
    teacher = None if teacher is None else checked_teacher(ghms, teacher)
    horizons = [(ghms.gamma, None), *((ghms.horizon(alpha), alpha) for alpha in ghms.alphas)]
    sizes: dict[str, Any] = {"num_pairs": num_pairs, "num_samples": num_samples, "keys": keys, "seed": seed}
    numbers: dict[str, dict[str, dict[str, Any]]] = {}
    with progress(len(policies) * len(horizons), "diagnosing") as advance:
        for k, name in enumerate(names(policies)):
            for i, (horizon, alpha) in enumerate(horizons):
                truth = true_futures(env_or_trajectories, policies, k, horizon, **sizes)
                now = jax.random.fold_in(jax.random.fold_in(key, k), i)
                about = _about(ghms, policies[k], k, alpha, truth, now)
                if teacher is not None:
                    models = ghms.segment(k, alpha), teacher.segment(k, alpha)
                    about |= beside_teacher(*models, truth, key=jax.random.fold_in(now, 4))
                numbers.setdefault(name, {})[f"{horizon:g}"] = about
                advance(k * len(horizons) + i + 1, name)
    return numbers


def _about(ghms: GHMs, policy: Policy, k: int, alpha: float | None, truth: Truth, key: Key) -> dict[str, Any]:
    """The numbers of one model, and the verdict on it."""
    model, keys = ghms.segment(k, alpha), jax.random.split(key, 4)
    drawn = draw_at(model, truth, key=keys[0])
    facts = measure(model, truth, drawn, key=keys[1])
    facts |= action_sensitivity(model, truth, key=keys[2]) | state_dependence(truth, drawn)
    facts |= off_data(truth, drawn) | impossible(truth, drawn)
    facts |= value_mse(truth, drawn, ghms.horizon(alpha))
    if alpha is not None:
        far, beta = ghms.segment(k, None), ghms.horizon(alpha)
        facts |= horizon_consistency(model, far, policy, beta, ghms.gamma, truth, key=keys[3])
    facts |= {"left_out": truth.left_out}
    return facts | judge(facts)


def diagnose_held_out(
    ghms: GHMs, held: Transitions, seen: Transitions, *, key: Key, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """A short diagnosis from transitions that were held out of the training on `seen`, without an environment.

    A model whose futures cannot be read from `held` has no numbers.
    """
    rows = np.random.default_rng(seed).permutation(len(seen))[:VISITED]
    visited = np.asarray(seen.next_state[np.sort(rows)])
    numbers: dict[str, dict[str, dict[str, Any]]] = {}
    for k, name in enumerate(names(ghms.policies)):
        for i, alpha in enumerate((None, *ghms.alphas)):
            about = numbers.setdefault(name, {}).setdefault(f"{ghms.horizon(alpha):g}", {})
            with contextlib.suppress(ValueError):
                truth = recorded_futures(held, k, ghms.horizon(alpha), RECORDED, seed=seed)
                truth = dataclasses.replace(truth, visited=visited)
                now = jax.random.fold_in(jax.random.fold_in(key, k), i)
                about |= _short(ghms.segment(k, alpha), truth, now)
    return numbers


def _short(model: GHM, truth: Truth, key: Key) -> dict[str, Any]:
    keys = jax.random.split(key)
    drawn = draw_at(model, truth, key=keys[0])
    facts = compare(truth, drawn) | state_dependence(truth, drawn) | off_data(truth, drawn)
    facts |= action_sensitivity(model, truth, key=keys[1])
    return facts | {"left_out": truth.left_out} | judge(facts)


def names(policies: Sequence[Policy]) -> list[str]:
    """A name for each policy, with its number where names repeat."""
    given = [getattr(policy, "name", "") or f"π{k}" for k, policy in enumerate(policies)]
    return [f"{name} ({k})" if given.count(name) > 1 else name for k, name in enumerate(given)]
