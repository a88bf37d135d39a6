"""Reads policies of Stable-Baselines3 as JAX modules, without PyTorch.

The zip holds `data`, JSON with pickled parts, and `policy.pth`, the tensors. Sizes come from the tensors, options such
as the activation from the JSON, the class of the policy and its spaces from the pickled parts, which
`ggpi.policies.sb3.pickles` reads without executing them. No other pickled part is opened.

    ActorCriticPolicy (PPO, A2C, TRPO)    clip(m + s ε), or softmax
    SACPolicy, TQCPolicy                  unscale(tanh(m(x) + s(x) ε))
    TD3Policy (TD3, DDPG)                 unscale(tanh(m(x)))
    DQNPolicy, QRDQNPolicy                argmax

With gSDE, s(x) is that of `ggpi.policies.sb3.noise`. TRPO, TQC and QR-DQN are in sb3-contrib.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.policies import action_heads, networks
from ggpi.policies.action_heads import Head, ModePolicy
from ggpi.policies.networks import Network
from ggpi.policies.sb3 import torch_files
from ggpi.policies.sb3.archives import Archive, damaged
from ggpi.policies.sb3.fields import Json, action_space, observation_size, pickled, statistics
from ggpi.policies.sb3.layers import Tensors, action_network, is_of_actor, log_std
from ggpi.policies.sb3.noise import Exploration, exploration, feature_noise, mean_layer
from ggpi.policies.sb3.pickled_arrays import Name
from ggpi.policies.sb3.torch_files import read_tensors
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate
from ggpi.types import ArrayLike

MAJORS = ("1", "2")
Statistics = str | Path | Sequence[ArrayLike] | None
"""Where the statistics of `VecNormalize` are: a file, (mean, var), or nowhere."""
JSON_BYTES = 16 * 2**20
"""The largest `data`."""
CLASSES = {
    "ActorCriticPolicy": ("stable_baselines3.common.policies", "Tanh"),
    "SACPolicy": ("stable_baselines3.sac.policies", "ReLU"),
    "TD3Policy": ("stable_baselines3.td3.policies", "ReLU"),
    "DQNPolicy": ("stable_baselines3.dqn.policies", "ReLU"),
    "TQCPolicy": ("sb3_contrib.tqc.policies", "ReLU"),
    "QRDQNPolicy": ("sb3_contrib.qrdqn.policies", "ReLU"),
}
"""Supported classes: their modules and default activations."""
CHOICES = {
    "net_arch",
    "activation_fn",
    "ortho_init",
    "use_sde",
    "log_std_init",
    "full_std",
    "use_expln",
    "squash_output",
    "clip_mean",
    "n_critics",
    "n_quantiles",
    "features_extractor_class",
    "features_extractor_kwargs",
    "share_features_extractor",
    "normalize_images",
    "optimizer_class",
    "optimizer_kwargs",
}
"""Supported entries of `policy_kwargs`."""
GREEDY = ("DQNPolicy", "QRDQNPolicy")
FLATTEN = "<class 'stable_baselines3.common.torch_layers.FlattenExtractor'>"


def load_sb3(
    path: str | Path, *, vecnormalize: Statistics = None, deterministic: bool = False, name: str | None = None
) -> Head | ModePolicy:
    """Loads a policy of Stable-Baselines3 (PPO, A2C, SAC, TD3, DDPG, DQN) or sb3-contrib (TRPO, TQC, QR-DQN).

    The policy takes raw observations and returns executed actions, in the environment's units. MLP policies are
    supported, with or without gSDE (actions keep their distribution in each state, but not their correlation over
    time). Nothing in the files is executed. Files that are damaged, too large or not supported (images, dictionaries,
    recurrent policies, custom networks) raise `ggpi.FileError`, which names the field.

    Args:
        path: The zip that `model.save` wrote.
        vecnormalize: The file that `VecNormalize.save` wrote, or a pair (mean, var) of the observations.
        deterministic: Always take the mode, the action of `predict(deterministic=True)`.
        name: By default the name of the file.
    """
    path = _existing(path)
    with path.open("rb", buffering=0) as file:
        archive = _archive(path, file)
        _check_version(path, archive.read("_stable_baselines3_version", 1000))
        about = _json(path, archive.read("data", JSON_BYTES))
        kind = _policy_class(path, about)
        _check_choices(path, about)
        tensors = read_tensors(
            archive.read("policy.pth", torch_files.BYTES),
            path,
            "policy.pth",
            lambda name: is_of_actor(kind, name),
        )
    if vecnormalize is None:
        _warn_if_normalised(path, kind, about)
    space = action_space(path, about)
    normalise = _normaliser(vecnormalize, observation_size(path, about))
    noise = exploration(path, about, _choices(path, about), kind)
    last = None if noise is None else mean_layer(kind, noise)
    network = action_network(path, kind, tensors, normalise, _activation(path, about, kind), space, last)
    name = name or path.stem
    if isinstance(space, Discrete):
        policy = _discrete(path, kind, network, name, space)
    else:
        policy = _continuous(path, kind, network, name, space, tensors, noise)
    return ModePolicy(policy) if deterministic else policy


def _discrete(path: Path, kind: str, network: Network, name: str, space: Discrete) -> Head:
    """A policy with discrete actions."""
    count = int(space.n)
    if kind in GREEDY:
        return action_heads.ChoicePolicy(networks.Greedy(network), name, count)
    if kind == "ActorCriticPolicy":
        return action_heads.CategoricalPolicy(network, name, count)
    raise FileError(path, f"is Discrete, but a {kind} has actions in a Box", field="data.action_space")


def _continuous(
    path: Path,
    kind: str,
    network: Network,
    name: str,
    space: Box,
    tensors: Tensors,
    noise: Exploration | None,
) -> Head:
    """A policy with continuous actions."""
    if kind in GREEDY:
        raise FileError(path, f"is a Box, but a {kind} has Discrete actions", field="data.action_space")
    low, high = jnp.asarray(space.low), jnp.asarray(space.high)
    explored = None if noise is None else feature_noise(path, kind, tensors, network, noise)
    if kind == "ActorCriticPolicy" and not (noise and noise.is_squashed):
        function = explored or networks.FixedDeviation(network, log_std(path, tensors, len(low)))
        return action_heads.ClippedGaussianPolicy(function=function, name=name, low=low, high=high)
    if not np.isfinite(space.high - space.low).all():
        raise FileError(
            path, f"has bounds that are not finite, but a {kind} scales by them", field="data.action_space"
        )
    if kind == "TD3Policy":
        return action_heads.DeterministicPolicy(networks.Unscaled(network, low, high), name, low, high)
    function = (
        networks.MeanAndLogDeviation(network) if explored is None else networks.FeatureLogNoise(explored)
    )
    return action_heads.SquashedGaussianPolicy(function, name, low, high)


def _existing(path: str | Path) -> Path:
    path = Path(path)
    for there in (path, Path(f"{path}.zip")):
        if there.is_file():
            return there
    if path.exists():
        raise FileError(path, "expected a zip file")
    raise FileNotFoundError(f"there is no file {path}; expected a zip that Stable-Baselines3 wrote")


def _archive(path: Path, file: io.RawIOBase) -> Archive:
    """The zip of a model; files of `torch.save` get an error of their own."""
    is_old = file.read(len(torch_files.LEGACY)) == torch_files.LEGACY
    file.seek(0)
    if not is_old:
        archive = Archive(file, path)
        if "data" in archive.names or not any(name.endswith("/data.pkl") for name in archive.names):
            return archive
    raise FileError(
        path,
        "is a file of torch.save, which does not describe its policy; expected the zip that Stable-Baselines3 "
        "writes with model.save('policy.zip'). ggpi.policy_from makes a policy from any function",
    )


def _warn_if_normalised(path: Path, kind: str, about: Json) -> None:
    """PPO, A2C and TRPO keep their last raw observation if and only if they were trained with `VecNormalize`."""
    if kind == "ActorCriticPolicy" and about.get("_last_original_obs") is not None:
        warnings.warn(
            f"{path} was trained with VecNormalize and expects normalised observations; pass the statistics, "
            "vecnormalize='vecnormalize.pkl' (--vecnormalize on the command line), unless yours are normalised",
            stacklevel=3,
        )


def _check_version(path: Path, version: bytes) -> None:
    text = version.decode(errors="replace").strip()
    if text.split(".")[0] not in MAJORS:
        problem = f"is {abbreviate(text)}, but versions {' and '.join(MAJORS)} are supported"
        raise FileError(path, problem, field="_stable_baselines3_version")


def _json(path: Path, data: bytes) -> Json:
    with damaged(path, "data", "damaged or not JSON"):
        about = json.loads(data)
    if not isinstance(about, dict):
        raise FileError(path, f"is a {type(about).__name__}, expected an object", field="data")
    return about


def _policy_class(path: Path, about: Json) -> str:
    kind, field = pickled(path, about, "policy_class"), "data.policy_class"
    if not isinstance(kind, Name):
        raise FileError(path, f"is {abbreviate(kind)}, expected a class", field=field)
    if CLASSES.get(kind.name, ("",))[0] != kind.module:
        problem = (
            f"{kind.module[:80]}.{kind.name[:80]} is not supported; supported MLP policies: {', '.join(CLASSES)}. "
            "Wrap policies of images and dictionaries, recurrent and custom policies with ggpi.policy_from"
        )
        raise FileError(path, problem, field=field)
    return kind.name


def _choices(path: Path, about: Json) -> Json:
    given = about.get("policy_kwargs") or {}
    if not isinstance(given, dict):
        raise FileError(path, f"is {abbreviate(given)}, expected an object", field="data.policy_kwargs")
    return {key: value for key, value in given.items() if not key.startswith(":")}


def _check_choices(path: Path, about: Json) -> None:
    chosen = _choices(path, about)
    unknown = sorted(chosen.keys() - CHOICES)
    if unknown:
        problem = "is not a supported option"
        raise FileError(path, problem, field=f"data.policy_kwargs.{unknown[0][:80]}")
    extractor = chosen.get("features_extractor_class", FLATTEN)
    if extractor != FLATTEN:
        problem = f"is {abbreviate(extractor)}; only MLP policies on vectors are supported"
        raise FileError(path, problem, field="data.policy_kwargs.features_extractor_class")


def _activation(path: Path, about: Json, kind: str) -> str:
    text = _choices(path, about).get("activation_fn", f"<class 'torch.nn.{CLASSES[kind][1]}'>")
    match = (
        re.fullmatch(r"<class 'torch\.nn\.(?:modules\.\w+\.)?(\w+)'>", text)
        if isinstance(text, str)
        else None
    )
    name = match[1] if match else ""
    if name not in networks.ACTIVATIONS and name != "PReLU":
        known = ", ".join(sorted([*networks.ACTIVATIONS, "PReLU"]))
        problem = f"{abbreviate(text)} is not supported; supported, with PyTorch's default constants: {known}"
        raise FileError(path, problem, field="data.policy_kwargs.activation_fn")
    return name


def _normaliser(given: object, size: int) -> networks.Normaliser:
    """The normalisation of observations."""
    if given is None:
        return networks.normaliser(np.zeros(size), np.ones(size), 0.0, np.inf)
    if isinstance(given, str | Path):
        numbers = statistics(Path(given), size)
        try:
            return networks.normaliser(*numbers)
        except ValueError as error:
            raise FileError(given, str(error)) from error
    if isinstance(given, tuple | list) and len(given) == 2:
        for field, values in zip(("mean", "var"), given, strict=True):
            if np.shape(values) != (size,):
                problem = f"{field} has shape {np.shape(values)}, expected ({size},)"
                raise ValueError(f"vecnormalize: {problem}")
        return networks.normaliser(*given)
    raise TypeError(f"vecnormalize must be a path or a pair (mean, var), got {type(given).__name__}")
