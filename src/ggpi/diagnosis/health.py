"""Three checks of a model's health that need little or no truth.

action     energy distance of μ(·|x, a) and μ(·|x, a′): 0 for a model that ignores the first action
state      distance correlation of x and X ∼ μ(·|x, a): 0 for a model that fell to the marginal of states
horizons   μ_γ = (1−γ)/(1−β) μ_β + (γ−β)/(1−β) μ_γ ⊗_π μ_β: 0 for models that agree with each other
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.spatial.distance import cdist

from ggpi.compiling import jit
from ggpi.diagnosis.measures import draw, scales
from ggpi.diagnosis.truth import Truth
from ggpi.distances import energy_distance
from ggpi.ghm.frame import SMALLEST_SCALE
from ggpi.policies import PolicyBank
from ggpi.typing import Key

NUM_PAIRS, NUM_SAMPLES = 16, 256
"""What is drawn when the truth has but one future per pair."""
NUM_JOINT = 1024
"""Points of which a correlation is taken."""


def action_sensitivity(model: Any, truth: Truth, *, key: Key) -> dict[str, float]:
    """The energy distance that another first action makes: the model's, and the truth's where it is simulated.

    Beyond the paper: a known fault of models conditioned on actions
    """
    _, scale = scales(truth)
    state, action, count = _pairs(truth)
    other = np.roll(action, 1, axis=0)
    keys = jax.random.split(key)
    ours = [draw(model, state, a, count, key=k) for a, k in zip((action, other), keys, strict=True)]
    facts = {"action_sensitivity": _mean_energy(ours[0], ours[1], scale)}
    if truth.simulate is not None:
        true = [truth.simulate(state, a, 2 + i) for i, a in enumerate((action, other))]
        facts["action_sensitivity_true"] = _mean_energy(true[0], true[1], scale)
    return facts


def _pairs(truth: Truth) -> tuple[np.ndarray, np.ndarray, int]:
    """Pairs to draw a cloud at, and how large a cloud."""
    count = truth.future.shape[1]
    if count > 1:
        return truth.state, truth.action, count
    return truth.state[:NUM_PAIRS], truth.action[:NUM_PAIRS], NUM_SAMPLES


def state_dependence(truth: Truth, drawn: np.ndarray) -> dict[str, float]:
    """How futures depend on the state: the distance correlation of x and X, of samples and in truth.

    Beyond the paper: bootstrapped models may fall to the marginal of states
    """
    return {
        "state_dependence": _dependence(truth, drawn),
        "state_dependence_true": _dependence(truth, truth.future),
    }


def _dependence(truth: Truth, futures: np.ndarray) -> float:
    state_scale, _ = scales(truth)
    each = max(1, NUM_JOINT // len(truth.state))
    futures = futures[:, :each]
    y = futures.reshape(-1, futures.shape[-1])
    x = np.repeat(truth.state / state_scale, futures.shape[1], axis=0)
    return distance_correlation(x, y / np.maximum(y.std(axis=0), SMALLEST_SCALE))


def distance_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """The squared distance correlation of paired points [n, D] and [n, E]: about 0 when independent, at most 1.

    Beyond the paper: Székely and Rizzo (2013), corrected for its bias
    """
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
    near: Any, far: Any, policy: Any, beta: float, gamma: float, truth: Truth, *, key: Key
) -> dict[str, float]:
    """The energy distance between μ_γ and what μ_β and μ_γ say of it together.

    Paper: Prop 2.5, Def 6.1
    """
    _, scale = scales(truth)
    keys = jax.random.split(key, 4)
    state, action, count = _pairs(truth)
    directly = draw(far, state, action, count, key=keys[0])
    first = draw(near, state, action, count, key=keys[1])
    flat = first.reshape(-1, first.shape[-1])
    then = np.asarray(_act(PolicyBank([policy]), flat[None].astype(np.float32), keys[2]))[0]
    second = draw(far, flat, then, 1, key=keys[3]).reshape(first.shape)
    stops = np.random.default_rng(0).random(first.shape[:2]) < (1 - gamma) / (1 - beta)
    return {"consistency": _mean_energy(directly, np.where(stops[..., None], first, second), scale)}


@jit
def _act(bank: PolicyBank, states: Any, key: Any) -> Any:
    return bank.sample_each(states, key=key)


def _mean_energy(x: np.ndarray, y: np.ndarray, scale: np.ndarray) -> float:
    return float(np.mean([energy_distance(a / scale, b / scale) for a, b in zip(x, y, strict=True)]))
