"""`distil`: samples of finished models at the cost of one forward pass.

    ‖g(ε|x, a) − ψ₁(ε|x, a)‖²,   (x, a) recorded or a ∼ π(·|x), ε ∼ N(0, I)

ψ₁(ε) is where the teacher's solver ends. The same noise leads to the same sample, so the student learns a function, not
a distribution, and needs neither rewards nor futures.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ggpi._jax.batching import part_of, stack
from ggpi._jax.forking import check_process
from ggpi._jax.random import checked_key, quick
from ggpi.data import StateSpec, Transitions
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import Conditioned, conditioned, following_path, over_paths
from ggpi.ghm.flow_matching import FlowMatchingConfig
from ggpi.ghm.one_pass import OnePass, student_of
from ggpi.ghm.paths import AbstractPathGHM
from ggpi.learning.fitting import by_horizon, train
from ggpi.learning.horizons import drawn_conditions, spread
from ggpi.learning.log import TrainingLog
from ggpi.learning.losses import Batch, Problem, Step, act
from ggpi.learning.preparation import Inputs, training_of
from ggpi.learning.recipe import Recipe
from ggpi.learning.targets import Dataset, draw_rows, n_step_dataset
from ggpi.policies.checks import check_policies, listed, space_of
from ggpi.storage.locking import sole_writer
from ggpi.storage.objects import check_savable, save
from ggpi.types import Key


@dataclass(frozen=True)
class Distillation:
    """The squared distance between samples of student and teacher from the same noise."""

    def dataset(self, data: Transitions, num_policies: int, betas: Sequence[float]) -> Dataset:
        return n_step_dataset(data, num_policies, 1)

    def batch(
        self, models: AbstractGHM, slow: AbstractGHM, problem: Problem, batch_size: int, *, key: Key
    ) -> tuple[Float[Array, "M"], Batch]:
        horizon_key, row_key, action_key, noise_key = jax.random.split(key, 4)
        if isinstance(models, Conditioned) and isinstance(slow, Conditioned):
            _, (models, slow) = drawn_conditions(problem, [models, slow], key=horizon_key)
        rows = draw_rows(problem.data, problem.num_horizons, batch_size, key=row_key)
        state, recorded = problem.data.state[rows], problem.data.action[rows]
        own = act(problem.bank, state, key=action_key)
        action = jnp.concatenate([recorded[:, ::2], own[:, 1::2]], axis=1)
        state = jnp.concatenate([state[:, ::2], state[:, 1::2]], axis=1)
        noise = jax.random.normal(quick(noise_key), (*rows.shape, models.noise_size))
        target = jax.lax.stop_gradient(over_paths(_sampled, slow, state, action, noise))
        found = over_paths(_sampled, models, state, action, noise)
        return ((found - target) ** 2).sum(-1).mean(-1), Batch(state, action, target)

    def slow_copy(self, slow: AbstractGHM | None, models: AbstractGHM, step: Step) -> AbstractGHM | None:
        return None


def _sampled(model: AbstractPathGHM, state: Array, action: Array, noise: Array) -> Array:
    """Samples in the coordinates of the frame."""
    times = jnp.linspace(0.0, 1.0, model.num_steps + 1)
    return model.carry(model.encode(state, action), noise, times)[2]


def distil(
    ghms: GHMs,
    data: Transitions,
    *,
    steps: int,
    recipe: Recipe | None = None,
    out: str | Path | None = None,
    key: Key,
) -> GHMs:
    """Models that sample as the given ones do, in one forward pass; they have no densities.

    With `out`, an interrupted run resumes when it is started again with the same arguments, as in `ggpi.fit`.

    Args:
        ghms: flow-matching or diffusion models of `ggpi.fit`.
        data: transitions from whose states the student learns; those that the models were trained on, or others.
        steps: training steps.
        recipe: batch size, learning rate, and the student's shape if its model is a `ggpi.FlowMatchingConfig`; by
            default the student is as large as its teacher and starts from its weights.
        out: directory of this training.
        key: the source of batches.
    """
    check_process()
    teacher = _teacher(ghms)
    recipe = replace(recipe or Recipe(), loss=Distillation(), steps=steps)
    if not isinstance(recipe.model, FlowMatchingConfig | type(Recipe().model)):
        raise TypeError(
            f"the shape of a student is a ggpi.FlowMatchingConfig, got a {type(recipe.model).__name__}; without one "
            "the student is as large as its teacher"
        )
    horizons = spread(ghms.network.largest) if ghms.network else tuple(dict.fromkeys(ghms.horizons))
    inputs = Inputs(listed(ghms.policies), data, horizons, recipe, _spec(teacher, data), checked_key(key))
    data.check()
    check_policies(
        ghms.policies, np.asarray(data.state[:1], np.float32), space_of(data, ghms.policies), "the data"
    )
    if out:
        check_savable(tuple(ghms.policies), "policies")
    with sole_writer(out, "ggpi.distil") if out else contextlib.nullcontext():
        log = TrainingLog(Path(out) if out else None, _fingerprint(inputs, teacher) if out else "")
        labels = [f"{name} {horizon:g}" for horizon in horizons for name in ghms.names]
        weight_key = jax.random.fold_in(inputs.key, 2**31 - 1)
        training, state = training_of(inputs, lambda *_: _student(teacher, recipe, weight_key))
        student = train(replace(training, teacher=teacher), state, log, labels, (), "distil")
        taught = replace(ghms, models=by_horizon(student, horizons, ghms.horizons))
        if out:
            save(Path(out) / "models", taught)
        return taught


def _teacher(ghms: GHMs) -> AbstractGHM:
    """The network that has all models, or the models at all distinct horizons, one after the other."""
    if not isinstance(ghms, GHMs):
        raise TypeError(
            f"distil takes the models that ggpi.fit returns, got a {type(ghms).__name__}; load saved ones with "
            "ggpi.load(path)"
        )
    distinct = dict(zip(ghms.horizons, ghms.models, strict=True)).values()
    models = ghms.network or jax.tree.map(lambda *stacks: jnp.concatenate(stacks), *distinct)
    kind = models.model if isinstance(models, Conditioned) else models
    if not isinstance(kind, AbstractPathGHM) or isinstance(kind, OnePass):
        raise TypeError(
            "distil takes flow-matching or diffusion models, whose samples need a solver, got "
            f'{type(kind).__name__}; fit with model="flow-matching"'
        )
    return models


def _student(teacher: AbstractGHM, recipe: Recipe, key: Key) -> AbstractGHM:
    """The teacher with one step of its solver; or fresh weights of another shape, if the recipe has one."""
    shape = recipe.model if isinstance(recipe.model, FlowMatchingConfig) else None
    if isinstance(teacher, Conditioned):
        own = jax.tree.map(jnp.array, teacher)
        if shape is None:
            return eqx.tree_at(lambda network: network.model, own, student_of(own.model))
        model_key, shift_key = jax.random.split(key)
        model = student_of(shape.build(own.frame, key=model_key))
        return conditioned(model, own.codes, own.largest, len(own.condition), key=shift_key)
    if shape is None:
        return student_of(following_path(teacher))
    frames = [part_of(teacher.frame, i) for i in range(len(jax.tree.leaves(teacher.frame)[0]))]
    keys = jax.random.split(key, len(frames))
    return stack([student_of(shape.build(frame, key=k)) for frame, k in zip(frames, keys, strict=True)])


def _spec(teacher: AbstractGHM, data: Transitions) -> StateSpec:
    """The coordinates of the teacher; raises if they are not those of the data."""
    size, given = teacher.frame.state_size, np.shape(data.state)[1:]
    if given != (size,):
        raise ValueError(
            f"the models are of states of size {size}, the data have states of shape {list(given)}; use transitions of "
            "the environment that the models were trained for"
        )
    return StateSpec(tuple(f"x{i}" for i in range(size)))


def _fingerprint(inputs: Inputs, teacher: AbstractGHM) -> str:
    """A digest of what determines a step: as in `ggpi.fit`, and the teacher."""
    digest = hashlib.sha256(inputs.fingerprint().encode())
    for leaf in jax.tree.leaves(teacher):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()
