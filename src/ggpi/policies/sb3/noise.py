"""gSDE, the state-dependent exploration of Stable-Baselines3, as a policy of one state.

The noise of an action is φ(x)ᵀE, where φ are the inputs of the actor's last layer and the matrix E, with independent
Eᵢⱼ ∼ N(0, σᵢⱼ²), is drawn anew every `sde_sample_freq` steps, or once for a rollout. In one state the action is
therefore

    aⱼ ∼ N(mⱼ(x), sⱼ²(x)),   sⱼ²(x) = Σᵢ φᵢ²(x) σᵢⱼ² + 10⁻⁶,

squashed by tanh where the policy says so (10⁻⁶ is what Stable-Baselines3 adds). This is kept, and with it the mode.
That actions of the same E are correlated over time is not: a policy here depends on nothing but the state.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ggpi.policies.networks import FeatureNoise, Network, largest_output
from ggpi.policies.sb3.layers import STATES, Tensors, tensor
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

LARGEST = 1e15
"""Deviations below this can be squared and added in single precision."""
EPSILON = 1e-6
"""What Stable-Baselines3 adds under `use_expln`."""
LOG_STD = {"ActorCriticPolicy": "log_std", "SACPolicy": "actor.log_std", "TQCPolicy": "actor.log_std"}
"""The policies that may have gSDE, and what their tensor of log σ is called."""


class Exploration(NamedTuple):
    """What was chosen of gSDE: whether actions are squashed, how σ comes from its tensor, and how far means go."""

    is_squashed: bool
    uses_expln: bool
    limit: float


def exploration(path: Path, about: dict[str, Any], chosen: dict[str, Any], kind: str) -> Exploration | None:
    """What a file says of gSDE; None where actions are explored without it."""
    if not (about.get("use_sde") or chosen.get("use_sde")):
        return None
    if kind not in LOG_STD:
        raise FileError(path, f"gSDE, which a {kind} does not have", field="data.use_sde")
    uses_expln = bool(chosen.get("use_expln"))
    if kind == "ActorCriticPolicy":
        return Exploration(bool(chosen.get("squash_output")), uses_expln, math.inf)
    limit = chosen.get("clip_mean", 2.0)
    if type(limit) not in (int, float) or not math.isfinite(limit):
        problem = f"{abbreviate(limit)}, a number was expected"
        raise FileError(path, problem, field="data.policy_kwargs.clip_mean")
    return Exploration(True, uses_expln, limit if limit > 0 else math.inf)


def mean_layer(kind: str, chosen: Exploration) -> tuple[str]:
    """The name of the layer that gives means: where they are limited, it is the first of a sequence."""
    if kind == "ActorCriticPolicy":
        return ("action_net",)
    return ("actor.mu.0",) if math.isfinite(chosen.limit) else ("actor.mu",)


def feature_noise(
    path: Path, kind: str, tensors: Tensors, network: Network, chosen: Exploration
) -> FeatureNoise:
    """Mean and deviation of the actions in a state."""
    name = LOG_STD[kind]
    logs = tensor(path, tensors, name).astype(np.float64)
    actions, features = network.weights[-1].shape
    if logs.shape not in ((features, actions), (features, 1)):
        problem = (
            f"shape {logs.shape}, but {features} features and {actions} actions have {(features, actions)}"
        )
        raise FileError(path, problem, field=f"policy.pth: {name}")
    falling = np.exp(np.minimum(logs, 700.0))
    rising = np.log1p(np.maximum(logs, 0.0) + EPSILON) + 1
    std = np.where(logs > 0, rising, falling) if chosen.uses_expln else falling
    if not max(1.0, largest_output(network, STATES)) * std.max() * math.sqrt(features) < LARGEST:
        problem = f"deviations so large that states up to {STATES:g} may overflow"
        raise FileError(path, problem, field=f"policy.pth: {name}")
    std = np.broadcast_to(std, (features, actions))
    return FeatureNoise(network, jnp.asarray(std, jnp.float32), jnp.asarray(chosen.limit, jnp.float32))
