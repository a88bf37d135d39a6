"""Checks of a model that need little or no truth.

action     energy distance of μ(·|x, a) and μ(·|x, a′): 0 for a model that ignores the first action
state      distance correlation of x and X ∼ μ(·|x, a): 0 for a model that collapsed to the marginal of states
data       share of samples that are far from all visited states
walls      share of samples that are impossible, where the environment can tell
horizons   μ_γ = (1−γ)/(1−β) μ_β + (γ−β)/(1−β) μ_γ ⊗_π μ_β: 0 for models that agree with each other
"""

from __future__ import annotations

import jax
import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ggpi.diagnosis.distances import Clouds, mean_energy
from ggpi.diagnosis.samples import draw
from ggpi.diagnosis.truth import Truth, scales
from ggpi.ghm.coordinates import SMALLEST_SCALE
from ggpi.policies import PolicyBank
from ggpi.rollout.acting import act
from ggpi.types import GHM, Key, Policy

NUM_PAIRS, NUM_SAMPLES = 16, 256
"""What is drawn when the truth has but one future per pair."""
CERTAIN = 5.0
"""The truth's shift between two actions is this many times its noise, or it is not judged."""
OUTSIDE = 0.01
"""The share of true futures beyond which a sample is off the data."""
TOLERANCE = 0.2
"""Samples nearer than this to a visited state, in spreads of the states, are never off the data."""
NUM_JOINT = 1024
"""Points of which a correlation is taken."""


def action_sensitivity(model: GHM, truth: Truth, *, key: Key) -> dict[str, float]:
    """The energy distance that another first action makes: the model's, and the truth's where it is known.

    `action_response` compares the shifts of the mean, model's and truth's, over all pairs: Σ⟨m, t⟩ / Σ⟨t, t⟩ is 1 for
    a right model and 0 for one that ignores the action. Both shifts are taken with the same random numbers for the
    two actions, and ⟨t, t⟩ between two halves of the true futures, so that it has no bias. It is left out where the
    truth's shift is lost in noise.
    """
    if truth.other is None:
        return {}
    _, scale = scales(truth)
    state, action, count = _pairs(truth)
    other, keys = truth.other[: len(state)], jax.random.split(key)
    first, apart = (draw(model, state, action, count, key=k) for k in keys)
    second = draw(model, state, other, count, key=keys[0])
    shift = (second - first).mean(axis=1) / scale
    facts = {"action_sensitivity": mean_energy(apart, second, scale), "action_shift": _norm(shift)}
    if truth.other_future is not None and truth.again is not None:
        facts["action_sensitivity_true"] = mean_energy(truth.again, truth.other_future, scale)
        facts |= _response(shift, (truth.other_future - truth.future) / scale)
    return facts


def _response(shift: np.ndarray, moved: np.ndarray) -> dict[str, float]:
    """The model's shifts [P, D] along the true ones, of which there are samples [P, N, D]."""
    half = moved.shape[1] // 2
    one, two = moved[:, :half].mean(axis=1), moved[:, half:].mean(axis=1)
    size = float((one * two).sum(axis=1).mean())
    noise = ((one - two) ** 2).sum(axis=1) / 2
    facts = {"action_shift_true": float(np.sqrt(max(size, 0.0)))}
    if size > CERTAIN * np.sqrt((noise**2).sum()) / len(noise):
        mean = (one + two) / 2
        facts["action_response"] = float((shift * mean).sum(axis=1).mean() / size)
        facts["action_response_floor"] = size / float((two**2).sum(axis=1).mean())
    return facts


def _norm(shift: np.ndarray) -> float:
    return float(np.sqrt((shift**2).sum(axis=1).mean()))


def off_data(truth: Truth, drawn: Clouds) -> dict[str, float]:
    """The share of samples that lie farther from every visited state than all but 1% of true futures do.

    Distances up to a fifth of the states' spread do not count, however near the truth is to what was visited.
    `off_data_floor` is this share of a second set of true futures, about 0.01 or less.
    """
    if truth.visited is None:
        return {}
    scale = np.maximum(truth.visited.std(axis=0), SMALLEST_SCALE)
    near = KDTree(truth.visited / scale)
    far = _distance(near, truth.future / scale)
    limit = max(float(np.quantile(far, 1 - OUTSIDE)), TOLERANCE)
    parts = {"off_data": drawn, "off_data_floor": truth.again}
    return {
        name: float((_distance(near, points / scale) > limit).mean())
        for name, points in parts.items()
        if points is not None
    }


def impossible(truth: Truth, drawn: Clouds) -> dict[str, float]:
    """The share of samples that cannot be states, such as places inside walls; only where the environment can tell."""
    if truth.possible is None:
        return {}
    parts = {"impossible": drawn, "impossible_floor": truth.again}
    return {
        name: float(1 - np.mean(truth.possible(points)))
        for name, points in parts.items()
        if points is not None
    }


def _distance(near: KDTree, points: np.ndarray) -> np.ndarray:
    return near.query(points.reshape(-1, points.shape[-1]))[0]


def _pairs(truth: Truth) -> tuple[np.ndarray, np.ndarray, int]:
    """Pairs to draw a cloud at, and how large a cloud."""
    count = truth.future.shape[1]
    if count > 1:
        return truth.state, truth.action, count
    return truth.state[:NUM_PAIRS], truth.action[:NUM_PAIRS], NUM_SAMPLES


def state_dependence(truth: Truth, drawn: Clouds) -> dict[str, float]:
    """How futures depend on the state: the distance correlation of x and X, of samples and in truth."""
    return {
        "state_dependence": _dependence(truth, drawn),
        "state_dependence_true": _dependence(truth, truth.future),
    }


def _dependence(truth: Truth, futures: Clouds) -> float:
    state_scale, _ = scales(truth)
    each = max(1, NUM_JOINT // len(truth.state))
    futures = futures[:, :each]
    y = futures.reshape(-1, futures.shape[-1])
    x = np.repeat(truth.state / state_scale, futures.shape[1], axis=0)
    return distance_correlation(x, y / np.maximum(y.std(axis=0), SMALLEST_SCALE))


def distance_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """The squared distance correlation of paired points [n, D] and [n, E]: about 0 when independent, at most 1."""
    a, b = _centred(x), _centred(y)
    return float((a * b).sum() / max(np.sqrt((a * a).sum() * (b * b).sum()), 1e-12))


def _centred(x: np.ndarray) -> np.ndarray:
    """Distances less their row and column means, so that those of independent points have no correlation."""
    d, n = cdist(x, x), len(x)
    rows = d.sum(axis=1) / (n - 2)
    d = d - rows[:, None] - rows + d.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(d, 0.0)
    return d


def horizon_consistency(
    near: GHM, far: GHM, policy: Policy, beta: float, gamma: float, truth: Truth, *, key: Key
) -> dict[str, float]:
    """The energy distance between μ_γ and its composition of μ_β and μ_γ; its floor is that of μ_γ to itself.

    Paper: Prop 2.5, Def 6.1
    """
    _, scale = scales(truth)
    keys = jax.random.split(key, 5)
    state, action, count = _pairs(truth)
    directly, again = (draw(far, state, action, count, key=k) for k in (keys[0], keys[4]))
    first = draw(near, state, action, count, key=keys[1])
    flat = first.reshape(-1, first.shape[-1])
    then = np.asarray(act(PolicyBank([policy]), np.int32(0), flat.astype(np.float32), keys[2]))
    second = draw(far, flat, then, 1, key=keys[3]).reshape(first.shape)
    stops = np.random.default_rng(0).random(first.shape[:2]) < (1 - gamma) / (1 - beta)
    composed = np.where(stops[..., None], first, second)
    return {
        "consistency": mean_energy(directly, composed, scale),
        "consistency_floor": mean_energy(directly, again, scale),
    }
