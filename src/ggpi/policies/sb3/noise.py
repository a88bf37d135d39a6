"""gSDE, the generalised state-dependent exploration of Stable-Baselines3, as a Markov policy.

The noise of an action is φ(x)ᵀE, where φ are the inputs of the actor's last layer. The matrix E, with independent
Eᵢⱼ ∼ N(0, σᵢⱼ²), is redrawn every `sde_sample_freq` steps, or once per rollout. So the action in one state is

    aⱼ ∼ N(mⱼ(x), sⱼ²(x)),   sⱼ²(x) = Σᵢ φᵢ²(x) σᵢⱼ² + 10⁻⁶,

squashed by tanh for some policies (Stable-Baselines3 adds the 10⁻⁶). This distribution and its mode are reproduced.
The correlation over time of actions with the same E is not: a policy here depends on the state only.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ggpi.policies.networks import FeatureNoise, Network, largest_output
from ggpi.policies.sb3.fields import Json
from ggpi.policies.sb3.layers import STATES, Tensors, tensor
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

LARGEST = 1e15
"""Standard deviations below this can be squared and added in single precision."""
EPSILON = 1e-6
"""Added by Stable-Baselines3 with `use_expln`."""
LOG_STD = {"ActorCriticPolicy": "log_std", "SACPolicy": "actor.log_std", "TQCPolicy": "actor.log_std"}
"""The policies that may use gSDE, and the name of their tensor log σ."""


class Exploration(NamedTuple):
    """The options of gSDE: whether actions are squashed, how σ is computed, and the limit of means."""

    is_squashed: bool
    uses_expln: bool
    limit: float


def exploration(path: Path, about: Json, chosen: Json, kind: str) -> Exploration | None:
    """The options of gSDE; None for a policy without it."""
    if not (about.get("use_sde") or chosen.get("use_sde")):
        return None
    if kind not in LOG_STD:
        raise FileError(path, f"is set, but a {kind} has no gSDE", field="data.use_sde")
    uses_expln = bool(chosen.get("use_expln"))
    if kind == "ActorCriticPolicy":
        return Exploration(bool(chosen.get("squash_output")), uses_expln, math.inf)
    limit = chosen.get("clip_mean", 2.0)
    if type(limit) not in (int, float) or not math.isfinite(limit):
        problem = f"is {abbreviate(limit)}, expected a number"
        raise FileError(path, problem, field="data.policy_kwargs.clip_mean")
    return Exploration(True, uses_expln, limit if limit > 0 else math.inf)


def mean_layer(kind: str, chosen: Exploration) -> tuple[str]:
    """The name of the layer of the means; if they are limited, it is the first of a sequence."""
    if kind == "ActorCriticPolicy":
        return ("action_net",)
    return ("actor.mu.0",) if math.isfinite(chosen.limit) else ("actor.mu",)


def feature_noise(
    path: Path, kind: str, tensors: Tensors, network: Network, chosen: Exploration
) -> FeatureNoise:
    """The function of mean and standard deviation."""
    name = LOG_STD[kind]
    logs = tensor(path, tensors, name).astype(np.float64)
    actions, features = network.weights[-1].shape
    if logs.shape not in ((features, actions), (features, 1)):
        problem = f"has shape {logs.shape}, but {features} features and {actions} actions need {(features, actions)}"
        raise FileError(path, problem, field=f"policy.pth: {name}")
    falling = np.exp(np.minimum(logs, 700.0))
    rising = np.log1p(np.maximum(logs, 0.0) + EPSILON) + 1
    std = np.where(logs > 0, rising, falling) if chosen.uses_expln else falling
    if not max(1.0, largest_output(network, STATES)) * std.max() * math.sqrt(features) < LARGEST:
        problem = f"is so large that states up to {STATES:g} may overflow"
        raise FileError(path, problem, field=f"policy.pth: {name}")
    std = np.broadcast_to(std, (features, actions))
    return FeatureNoise(network, jnp.asarray(std, jnp.float32), jnp.asarray(chosen.limit, jnp.float32))
