"""Policies that Stable-Baselines3 saved, as JAX modules, without PyTorch.

The zip holds `data`, readable JSON with pickled parts beside it, and `policy.pth`, the tensors. Sizes come from
the tensors; the activation and what else was chosen from the JSON; the policy's class and the spaces from their
pickled parts, which `ggpi.policies.sb3.pickles` reads without executing anything. No other pickled part is opened.

    ActorCriticPolicy (PPO, A2C, TRPO)    clip(m + s ε), or softmax
    SACPolicy, TQCPolicy                  unscale(tanh(m(x) + s(x) ε))
    TD3Policy (TD3, DDPG)                 unscale(tanh(m(x)))
    DQNPolicy, QRDQNPolicy                argmax

With gSDE, `ggpi.policies.sb3.noise` says what s(x) is. TRPO, TQC and QR-DQN are those of sb3-contrib.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.policies import action_heads, networks
from ggpi.policies.sb3 import torch_files
from ggpi.policies.sb3.archives import Archive, damaged
from ggpi.policies.sb3.fields import action_space, observation_size, pickled, statistics
from ggpi.policies.sb3.layers import action_network, is_of_actor, log_std
from ggpi.policies.sb3.noise import Exploration, exploration, feature_noise, mean_layer
from ggpi.policies.sb3.pickled_arrays import Name
from ggpi.policies.sb3.torch_files import read_tensors
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

MAJORS = ("1", "2")
JSON_BYTES = 16 * 2**20
"""The largest `data` that is read."""
CLASSES = {
    "ActorCriticPolicy": ("stable_baselines3.common.policies", "Tanh"),
    "SACPolicy": ("stable_baselines3.sac.policies", "ReLU"),
    "TD3Policy": ("stable_baselines3.td3.policies", "ReLU"),
    "DQNPolicy": ("stable_baselines3.dqn.policies", "ReLU"),
    "TQCPolicy": ("sb3_contrib.tqc.policies", "ReLU"),
    "QRDQNPolicy": ("sb3_contrib.qrdqn.policies", "ReLU"),
}
"""The classes that are read: their modules, and the activation that each has when none was chosen."""
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
"""The entries of `policy_kwargs` whose meaning is known."""
GREEDY = ("DQNPolicy", "QRDQNPolicy")
FLATTEN = "<class 'stable_baselines3.common.torch_layers.FlattenExtractor'>"


def load_sb3(
    path: str | Path, *, vecnormalize: Any = None, deterministic: bool = False, name: str | None = None
) -> Any:
    """A policy from a zip of Stable-Baselines3 (PPO, A2C, SAC, TD3, DDPG or DQN) or sb3-contrib (TRPO, TQC, QR-DQN).

    It takes raw observations and gives the actions that are executed, in the environment's units. `vecnormalize`
    is the file that `VecNormalize.save` wrote, or a pair (mean, var) of observations. With `deterministic` it always
    takes the action of `predict(deterministic=True)`, the mode. The policy is called `name`, or as the file.

    Policies with an MLP are read, with or without gSDE, of which actions in one state keep their distribution but
    lose their correlation over time. Nothing in the files is executed. One that is damaged, too large, or not supported
    (images, dictionaries, recurrent policies, custom networks) raises `ggpi.FileError`, which names the field.
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
    given = path, kind, network, name or path.stem
    is_discrete = isinstance(space, Discrete)
    policy = _choosing(*given, space) if is_discrete else _moving(*given, space, tensors, noise)
    return action_heads.ModePolicy(policy) if deterministic else policy


def _choosing(path: Path, kind: str, network: Any, name: str, space: Discrete) -> Any:
    """A policy with discrete actions."""
    count = int(space.n)
    if kind in GREEDY:
        return action_heads.ChoicePolicy(networks.Greedy(network), name, count)
    if kind == "ActorCriticPolicy":
        return action_heads.CategoricalPolicy(network, name, count)
    raise FileError(path, f"Discrete, but a {kind} has actions in a Box", field="data.action_space")


def _moving(
    path: Path, kind: str, network: Any, name: str, space: Box, tensors: Any, noise: Exploration | None
) -> Any:
    """A policy whose actions are vectors."""
    if kind in GREEDY:
        raise FileError(path, f"Box, but a {kind} has Discrete actions", field="data.action_space")
    low, high = jnp.asarray(space.low), jnp.asarray(space.high)
    explored = None if noise is None else feature_noise(path, kind, tensors, network, noise)
    if kind == "ActorCriticPolicy" and not (noise and noise.is_squashed):
        function = explored or networks.FixedDeviation(network, log_std(path, tensors, len(low)))
        return action_heads.ClippedGaussianPolicy(function=function, name=name, low=low, high=high)
    if not np.isfinite(space.high - space.low).all():
        raise FileError(
            path, f"bounds that are not finite, but a {kind} scales by them", field="data.action_space"
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
        raise FileError(path, "a zip file was expected")
    raise FileNotFoundError(f"there is no file {path}; expected a zip that Stable-Baselines3 wrote")


def _archive(path: Path, file: Any) -> Archive:
    """The zip of a model; files of `torch.save` alone are named as such."""
    is_old = file.read(len(torch_files.LEGACY)) == torch_files.LEGACY
    file.seek(0)
    if not is_old:
        archive = Archive(file, path)
        if "data" in archive.names or not any(name.endswith("/data.pkl") for name in archive.names):
            return archive
    raise FileError(
        path,
        "a file of torch.save, which does not say what its tensors are for; expected the zip that "
        "model.save('policy.zip') of Stable-Baselines3 writes. ggpi.policy_from makes a policy of any function",
    )


def _warn_if_normalised(path: Path, kind: str, about: dict[str, Any]) -> None:
    """PPO, A2C and TRPO keep their last raw observation if and only if they were trained with `VecNormalize`."""
    if kind == "ActorCriticPolicy" and about.get("_last_original_obs") is not None:
        warnings.warn(
            f"{path} was trained with VecNormalize and expects normalised observations; give the statistics too, "
            "vecnormalize='vecnormalize.pkl' (on the command line --vecnormalize), unless observations are normalised",
            stacklevel=3,
        )


def _check_version(path: Path, version: bytes) -> None:
    text = version.decode(errors="replace").strip()
    if text.split(".")[0] not in MAJORS:
        problem = f"{abbreviate(text)}, but versions {' and '.join(MAJORS)} are read"
        raise FileError(path, problem, field="_stable_baselines3_version")


def _json(path: Path, data: bytes) -> dict[str, Any]:
    with damaged(path, "data", "damaged or not JSON"):
        about = json.loads(data)
    if not isinstance(about, dict):
        raise FileError(path, f"{type(about).__name__}, an object was expected", field="data")
    return about


def _policy_class(path: Path, about: dict[str, Any]) -> str:
    kind, field = pickled(path, about, "policy_class"), "data.policy_class"
    if not isinstance(kind, Name):
        raise FileError(path, f"{abbreviate(kind)}, a class was expected", field=field)
    if CLASSES.get(kind.name, ("",))[0] != kind.module:
        problem = (
            f"{kind.module[:80]}.{kind.name[:80]} is not supported; MLP policies are: {', '.join(CLASSES)}. "
            "Images, dictionaries, recurrent and custom policies can be wrapped with ggpi.policy_from"
        )
        raise FileError(path, problem, field=field)
    return kind.name


def _choices(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    given = about.get("policy_kwargs") or {}
    if not isinstance(given, dict):
        raise FileError(path, f"{abbreviate(given)}, an object was expected", field="data.policy_kwargs")
    return {key: value for key, value in given.items() if not key.startswith(":")}


def _check_choices(path: Path, about: dict[str, Any]) -> None:
    chosen = _choices(path, about)
    unknown = sorted(chosen.keys() - CHOICES)
    if unknown:
        problem = "not an option that is known, so the policy is not read"
        raise FileError(path, problem, field=f"data.policy_kwargs.{unknown[0][:80]}")
    extractor = chosen.get("features_extractor_class", FLATTEN)
    if extractor != FLATTEN:
        problem = f"{abbreviate(extractor)} is not supported; only MLP policies on plain vectors are"
        raise FileError(path, problem, field="data.policy_kwargs.features_extractor_class")


def _activation(path: Path, about: dict[str, Any], kind: str) -> str:
    text = _choices(path, about).get("activation_fn", f"<class 'torch.nn.{CLASSES[kind][1]}'>")
    match = (
        re.fullmatch(r"<class 'torch\.nn\.(?:modules\.\w+\.)?(\w+)'>", text)
        if isinstance(text, str)
        else None
    )
    name = match[1] if match else ""
    if name not in networks.ACTIVATIONS and name != "PReLU":
        known = ", ".join(sorted([*networks.ACTIVATIONS, "PReLU"]))
        problem = (
            f"{abbreviate(text)} is not supported; there are {known}, each as PyTorch makes it by default"
        )
        raise FileError(path, problem, field="data.policy_kwargs.activation_fn")
    return name


def _normaliser(given: Any, size: int) -> networks.Normaliser:
    """What makes raw observations those that the policy was trained on."""
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
                problem = f"{field} has shape {np.shape(values)}, but observations have {size} numbers"
                raise ValueError(f"vecnormalize: {problem}")
        return networks.normaliser(*given)
    raise TypeError(f"vecnormalize is a path or a pair (mean, var), got {type(given).__name__}")
