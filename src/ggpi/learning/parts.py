"""A training divided over an executor: each model is a task, with a key and checkpoints of its own.

Models of several policies and horizons share nothing but the data. Trained one by one they differ from the undivided
stack in their random draws only, and not from executor to executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from ggpi.ghm.abstract import AbstractGHM
from ggpi.learning.preparation import Inputs
from ggpi.progress import progress
from ggpi.storage.locking import sole_writer

if TYPE_CHECKING:
    from ggpi.cluster import Executor

Train = Callable[[Inputs, Path | None], AbstractGHM]
Choose = Callable[[Inputs], Inputs]
"""Inputs of all models ↦ inputs of one task."""


def single_models(inputs: Inputs) -> dict[str, Choose]:
    """Name → task for each model, horizon by horizon as in the stack."""
    names = [getattr(policy, "name", type(policy).__name__) for policy in inputs.policies]
    pairs = [(horizon, k) for horizon in inputs.horizons for k in range(len(names))]
    return {
        f"{number}: {names[k]} {horizon:g}": partial(single_model, policy=k, horizon=horizon, number=number)
        for number, (horizon, k) in enumerate(pairs)
    }


def single_model(inputs: Inputs, policy: int, horizon: float, number: int) -> Inputs:
    """The inputs of one model: its policy is the only one, and other behaviour policies are unknown."""
    behaviour = np.where(np.asarray(inputs.data.behaviour) == policy, 0, -1)
    return replace(
        inputs,
        policies=(inputs.policies[policy],),
        data=replace(inputs.data, behaviour=behaviour),
        horizons=(horizon,),
        key=jax.random.fold_in(inputs.key, number),
    )


def fit_parts(
    train: Train, inputs: Inputs, parts: Mapping[str, Choose], executor: Executor, out: Path | None
) -> list[AbstractGHM]:
    """What each part has learned, in their order; parts that a directory holds are not repeated.

    Args:
        train: trains models from inputs, with checkpoints in a directory.
        inputs: of all models; sent to each worker once.
        parts: as `single_models`.
        executor: where parts are trained. With `out`, its workers share the disk of that directory.
        out: directory of the whole training.
    """
    tasks = {
        name: (choose, out and out / "parts" / f"{i:03}") for i, (name, choose) in enumerate(parts.items())
    }
    found: dict[str, AbstractGHM] = {}
    with progress(len(tasks), "fit", "") as advance:

        def begin(name: str) -> None:
            advance(len(found), name)

        for name, models in executor.completed(partial(_trained, train, inputs), tasks, begin=begin):
            found[name] = models
            advance(len(found), "")
    return [found[name] for name in parts]


def _trained(train: Train, inputs: Inputs, task: tuple[Choose, Path | None]) -> AbstractGHM:
    choose, out = task
    if out is None:
        return train(choose(inputs), None)
    with sole_writer(out, "ggpi.fit", wait=float("inf")):  # a worker that was given up may still be writing
        return train(choose(inputs), out)
