"""The actor's layers among the tensors of a Stable-Baselines3 policy, by their names.

PyTorch names a layer by its place in a sequence: `q_net.q_net.0.weight`, then an activation at place 1, then
`q_net.q_net.2.weight`. Versions before 1.8 could share the first layers of actor and critic.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ggpi.policies.networks import Network, Normaliser
from ggpi.policies.pickles import Record

Tensors = dict[str, np.ndarray]


class Actor(NamedTuple):
    """Where the actor's layers are: sequences one after the other, then layers whose outputs are joined.

    Beyond the paper: the policies of Stable-Baselines3
    """

    sequences: tuple[str, ...]
    last: tuple[str, ...]


ACTORS = {
    "ActorCriticPolicy": Actor(("mlp_extractor.shared_net", "mlp_extractor.policy_net"), ("action_net",)),
    "SACPolicy": Actor(("actor.latent_pi",), ("actor.mu", "actor.log_std")),
    "TD3Policy": Actor(("actor.mu",), ()),
    "DQNPolicy": Actor(("q_net.q_net",), ()),
}


def action_network(
    path: Path, kind: str, tensors: Tensors, normalise: Normaliser, activation: str, space: Record
) -> Network:
    """The network from observations to the numbers of the action distribution.

    Beyond the paper: the policies of Stable-Baselines3
    """
    actor = ACTORS[kind]
    custom = [name for name in tensors if "features_extractor." in name]
    if custom:
        raise ValueError(f"{path}: policy.pth holds {custom[0]}: feature extractors are not supported")
    layers, slopes = [], []
    for sequence in actor.sequences:
        found, learned = _sequence(path, tensors, sequence, activation)
        layers, slopes = layers + found, slopes + learned
    if actor.last:
        pairs = [_linear(path, tensors, name) for name in actor.last]
        layers.append(tuple(np.concatenate(parts) for parts in zip(*pairs, strict=True)))
    size = int(space.get("n")) if space.name == "Discrete" else len(np.asarray(space.get("low")))
    _check_sizes(path, layers, normalise.mean.shape[0], size * max(1, len(actor.last)))
    if activation == "PReLU" and len(slopes) != len(layers) - 1:
        raise ValueError(f"{path}: policy.pth has {len(slopes)} slopes of PReLU for {len(layers)} layers")
    weights, biases = zip(*layers, strict=True)
    return Network(normalise, _arrays(weights), _arrays(biases), _arrays(slopes), activation)


def log_std(path: Path, tensors: Tensors, size: int) -> Any:
    """The logarithm of the deviation that PPO and A2C learn for each coordinate.

    Beyond the paper: the policies of Stable-Baselines3
    """
    values = _tensor(path, tensors, "log_std")
    if values.shape != (size,):
        raise ValueError(
            f"{path}: policy.pth has log_std of shape {values.shape}, actions have {size} numbers"
        )
    return jnp.asarray(values)


def _sequence(path: Path, tensors: Tensors, prefix: str, activation: str) -> tuple[list[Any], list[Any]]:
    """Its linear layers, and the slopes between them if they are learned."""
    places = [re.fullmatch(rf"{re.escape(prefix)}\.(\d+)\.weight", name) for name in tensors]
    numbers = sorted(int(match[1]) for match in places if match)
    linear, learned = (
        [n for n in numbers if (tensors[f"{prefix}.{n}.weight"].ndim == 2) == is_linear]
        for is_linear in (True, False)
    )
    allowed = [n for n in range(1, 2 * len(linear), 2) if activation == "PReLU"]
    strange = [n for n in learned if n not in allowed] + [n for n in linear if n % 2]
    if strange or linear != list(range(0, 2 * len(linear), 2)):
        raise ValueError(
            f"{path}: policy.pth has layers {numbers} in {prefix}; linear layers at 0, 2, 4, … were expected, "
            "with only activations between them"
        )
    layers = [_linear(path, tensors, f"{prefix}.{n}") for n in linear]
    return layers, [_tensor(path, tensors, f"{prefix}.{n}.weight") for n in learned]


def _linear(path: Path, tensors: Tensors, name: str) -> tuple[np.ndarray, np.ndarray]:
    weight, bias = (_tensor(path, tensors, f"{name}.{part}") for part in ("weight", "bias"))
    if weight.ndim != 2 or bias.shape != weight.shape[:1]:
        raise ValueError(
            f"{path}: policy.pth has {name} with weight {weight.shape} and bias {bias.shape}, no linear layer"
        )
    return weight, bias


def _tensor(path: Path, tensors: Tensors, name: str) -> np.ndarray:
    if name not in tensors:
        raise ValueError(f"{path}: policy.pth lacks {name}; it holds {', '.join(tensors) or 'nothing'}")
    values = tensors[name].astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{path}: policy.pth has numbers in {name} that are not finite")
    return values


def _check_sizes(path: Path, layers: list[Any], observation: int, action: int) -> None:
    sizes = [layers[0][0].shape[1], *(len(bias) for _, bias in layers)]
    inputs = [weight.shape[1] for weight, _ in layers]
    if inputs != sizes[:-1]:
        raise ValueError(f"{path}: policy.pth has layers with inputs {inputs} and outputs {sizes[1:]}")
    if sizes[0] != observation:
        raise ValueError(
            f"{path}: policy.pth takes {sizes[0]} numbers, but data.observation_space has {observation}"
        )
    if sizes[-1] != action:
        raise ValueError(
            f"{path}: policy.pth gives {sizes[-1]} numbers, but data.action_space needs {action}"
        )


def _arrays(values: Any) -> tuple[Any, ...]:
    return tuple(jnp.asarray(value) for value in values)
