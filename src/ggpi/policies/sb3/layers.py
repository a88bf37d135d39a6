"""Finds the layers of the actor among the tensors of a Stable-Baselines3 policy.

PyTorch names a layer by its place in a sequence: `q_net.q_net.0.weight`, then an activation at place 1, then
`q_net.q_net.2.weight`. Versions before 1.8 could share the first layers of actor and critic. The last layer of QR-DQN
returns quantiles of each action's value; their mean, which its policy maximises, is a linear layer too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Array

from ggpi.policies.networks import LARGEST, Network, Normaliser, largest_output
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

Tensors = dict[str, np.ndarray]
Layer = tuple[np.ndarray, np.ndarray]
"""Weight and bias."""
DEEPEST = 100
"""The largest number of layers."""
STATES = 1e6
"""States up to this magnitude must not overflow single precision."""


class Actor(NamedTuple):
    """The names of the actor's layers: consecutive sequences, then layers whose outputs are concatenated."""

    sequences: tuple[str, ...]
    last: tuple[str, ...]


ACTORS = {
    "ActorCriticPolicy": Actor(("mlp_extractor.shared_net", "mlp_extractor.policy_net"), ("action_net",)),
    "SACPolicy": Actor(("actor.latent_pi",), ("actor.mu", "actor.log_std")),
    "TD3Policy": Actor(("actor.mu",), ()),
    "DQNPolicy": Actor(("q_net.q_net",), ()),
    "TQCPolicy": Actor(("actor.latent_pi",), ("actor.mu", "actor.log_std")),
    "QRDQNPolicy": Actor(("quantile_net.quantile_net",), ()),
}


def is_of_actor(kind: str, name: str) -> bool:
    """Whether the actor needs this tensor, or the tensor shows that the policy is not supported."""
    actor = ACTORS[kind]
    return (
        name == "log_std" or name.startswith((*actor.sequences, *actor.last)) or "features_extractor." in name
    )


def action_network(
    path: Path,
    kind: str,
    tensors: Tensors,
    normalise: Normaliser,
    activation: str,
    space: Box | Discrete,
    last: tuple[str, ...] | None = None,
) -> Network:
    """The network from observations to the parameters of the action distribution."""
    actor = ACTORS[kind] if last is None else ACTORS[kind]._replace(last=last)
    custom = [name for name in tensors if "features_extractor." in name]
    if custom:
        raise FileError(path, "feature extractors are not supported", field=f"policy.pth: {custom[0][:80]}")
    layers, slopes = [], []
    for sequence in actor.sequences:
        found, learned = _sequence(path, tensors, sequence, activation)
        layers, slopes = layers + found, slopes + learned
    if actor.last:
        pairs = [_linear(path, tensors, name) for name in actor.last]
        layers.append(_joined(path, pairs))
    size = int(space.n) if isinstance(space, Discrete) else len(space.low)
    if kind == "QRDQNPolicy" and layers:
        layers[-1] = _mean_of_quantiles(path, layers[-1], size)
    _check_sizes(path, layers, normalise.mean.shape[0], size * max(1, len(actor.last)))
    _check_slopes(path, layers, slopes, activation)
    weights, biases = zip(*layers, strict=True)
    network = Network(normalise, _arrays(weights), _arrays(biases), _arrays(slopes), activation)
    if not largest_output(network, STATES) < LARGEST:
        raise FileError(
            path, f"has weights so large that states up to {STATES:g} may overflow", field="policy.pth"
        )
    return network


def log_std(path: Path, tensors: Tensors, size: int) -> Array:
    """The log standard deviation that PPO and A2C learn for each action dimension."""
    values = tensor(path, tensors, "log_std")
    if values.shape != (size,):
        problem = f"has shape {values.shape}, expected ({size},)"
        raise FileError(path, problem, field="policy.pth: log_std")
    if (values > np.log(LARGEST)).any():
        raise FileError(
            path, f"is {values.max():g}, whose exponential overflows", field="policy.pth: log_std"
        )
    return jnp.asarray(values)


def _sequence(
    path: Path, tensors: Tensors, prefix: str, activation: str
) -> tuple[list[Layer], list[np.ndarray]]:
    """The linear layers of a sequence, and the learned slopes between them."""
    places = [re.fullmatch(rf"{re.escape(prefix)}\.(0|[1-9][0-9]{{0,3}})\.weight", name) for name in tensors]
    numbers = sorted(int(match[1]) for match in places if match)
    linear, learned = (
        [n for n in numbers if (tensors[f"{prefix}.{n}.weight"].ndim == 2) == is_linear]
        for is_linear in (True, False)
    )
    allowed = [n for n in range(1, 2 * len(linear), 2) if activation == "PReLU"]
    strange = [n for n in learned if n not in allowed] + [n for n in linear if n % 2]
    if strange or linear != list(range(0, 2 * len(linear), 2)) or len(linear) > DEEPEST:
        problem = (
            f"has layers {abbreviate(numbers)}; expected at most {DEEPEST} linear layers at 0, 2, 4, …, "
            "with only activations between them"
        )
        raise FileError(path, problem, field=f"policy.pth: {prefix}")
    layers = [_linear(path, tensors, f"{prefix}.{n}") for n in linear]
    return layers, [tensor(path, tensors, f"{prefix}.{n}.weight") for n in learned]


def _linear(path: Path, tensors: Tensors, name: str) -> Layer:
    weight, bias = (tensor(path, tensors, f"{name}.{part}") for part in ("weight", "bias"))
    if weight.ndim != 2 or bias.shape != weight.shape[:1]:
        problem = f"weight {weight.shape} and bias {bias.shape} are not a linear layer"
        raise FileError(path, problem, field=f"policy.pth: {name}")
    return weight, bias


def tensor(path: Path, tensors: Tensors, name: str) -> np.ndarray:
    """The tensor of this name, which must be finite."""
    if name not in tensors:
        there = abbreviate(sorted(tensors)) if tensors else "none"
        raise FileError(
            path, f"is missing; the tensors of the actor are {there}", field=f"policy.pth: {name}"
        )
    values = tensors[name].astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        raise FileError(path, "has numbers that are not finite", field=f"policy.pth: {name}")
    return values


def _joined(path: Path, pairs: list[Layer]) -> Layer:
    """Parallel layers as one layer."""
    inputs = [weight.shape[1] for weight, _ in pairs]
    if len(set(inputs)) > 1:
        raise FileError(
            path, f"has last layers with {inputs} inputs, which must be equal", field="policy.pth"
        )
    weights, biases = zip(*pairs, strict=True)
    return np.concatenate(weights), np.concatenate(biases)


def _mean_of_quantiles(path: Path, layer: Layer, size: int) -> Layer:
    """The layer of each action's mean value, from outputs ordered by quantile, then by action."""
    outputs = len(layer[1])
    if outputs % size:
        problem = f"has {outputs} outputs, which is not a multiple of {size} actions"
        raise FileError(path, problem, field="policy.pth")
    parts = (part.reshape(-1, size, *part.shape[1:]) for part in layer)
    weight, bias = (part.mean(axis=0, dtype=np.float64).astype(np.float32) for part in parts)
    return weight, bias


def _check_sizes(path: Path, layers: list[Layer], observation: int, action: int) -> None:
    if not layers:
        raise FileError(path, "has no layers of the actor", field="policy.pth")
    sizes = [layers[0][0].shape[1], *(len(bias) for _, bias in layers)]
    inputs = [weight.shape[1] for weight, _ in layers]
    if inputs != sizes[:-1]:
        problem = f"has layers with inputs {abbreviate(inputs)} and outputs {abbreviate(sizes[1:])}"
        raise FileError(path, problem, field="policy.pth")
    if sizes[0] != observation:
        problem = f"has {sizes[0]} inputs, but data.observation_space has {observation} dimensions"
        raise FileError(path, problem, field="policy.pth")
    if sizes[-1] != action:
        problem = f"has {sizes[-1]} outputs, but data.action_space needs {action}"
        raise FileError(path, problem, field="policy.pth")


def _check_slopes(path: Path, layers: list[Layer], slopes: list[np.ndarray], activation: str) -> None:
    """Raises unless PReLU has one slope, or one per output, after each layer except the last."""
    if activation == "PReLU" and len(slopes) != len(layers) - 1:
        problem = f"has {len(slopes)} slopes of PReLU for {len(layers)} layers"
        raise FileError(path, problem, field="policy.pth")
    for slope, (_, bias) in zip(slopes, layers, strict=False):
        if slope.shape not in ((1,), bias.shape):
            problem = f"has slopes of PReLU of shape {slope.shape} after {len(bias)} outputs"
            raise FileError(path, problem, field="policy.pth")


def _arrays(values: Iterable[np.ndarray]) -> tuple[Array, ...]:
    return tuple(jnp.asarray(value) for value in values)
