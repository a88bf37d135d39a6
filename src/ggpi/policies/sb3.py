"""Policies that Stable-Baselines3 saved, as JAX modules, without PyTorch.

The zip holds `data`, readable JSON with pickled parts beside it, and `policy.pth`, the tensors. Sizes come from
the tensors; the activation and what else was chosen from the JSON; the policy's class and the spaces from their
pickled parts, which `ggpi.policies.pickles` reads without executing anything. No other pickled part is opened.

    ActorCriticPolicy (PPO, A2C)   clip(m + s ε), or softmax
    SACPolicy                      unscale(tanh(m(x) + s(x) ε))
    TD3Policy (TD3, DDPG)          unscale(tanh(m(x)))
    DQNPolicy                      argmax
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ggpi.policies import kinds, networks
from ggpi.policies.pickles import Record, numpy_and_dicts, read_pickle, record_of
from ggpi.policies.sb3_layers import action_network, log_std
from ggpi.policies.torch_files import read_tensors, read_zip

MAJORS = ("1", "2")
CLASSES = {
    "ActorCriticPolicy": ("stable_baselines3.common.policies", "Tanh"),
    "SACPolicy": ("stable_baselines3.sac.policies", "ReLU"),
    "TD3Policy": ("stable_baselines3.td3.policies", "ReLU"),
    "DQNPolicy": ("stable_baselines3.dqn.policies", "ReLU"),
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
    "features_extractor_class",
    "features_extractor_kwargs",
    "share_features_extractor",
    "normalize_images",
    "optimizer_class",
    "optimizer_kwargs",
}
"""The entries of `policy_kwargs` whose meaning is known."""
FLATTEN = "<class 'stable_baselines3.common.torch_layers.FlattenExtractor'>"


def load_sb3(path: str | Path, *, vecnormalize: Any = None, name: str | None = None) -> Any:
    """A policy from a zip of Stable-Baselines3 (PPO, A2C, SAC, TD3, DDPG or DQN with an MLP).

    It takes raw observations and gives the actions that are executed, in the environment's units. `vecnormalize`
    is the file that `VecNormalize.save` wrote, or a pair (mean, var) of observations. The policy is called `name`,
    or as the file.

    gSDE, images, dictionaries, recurrent policies and custom networks are refused by name.

    Beyond the paper: policies that you already have
    """
    path = _existing(path)
    about, tensors = _read(path)
    kind = _policy_class(path, about)
    _check_choices(path, about)
    size, space = _spaces(path, about)
    normalise = _normaliser(vecnormalize, size, path)
    network = action_network(path, kind, tensors, normalise, _activation(path, about, kind), space)
    return _policy(path, kind, network, tensors, space, name or path.stem)


def _policy(path: Path, kind: str, network: Any, tensors: Any, space: Record, name: str) -> Any:
    if space.name == "Discrete":
        if kind == "DQNPolicy":
            return kinds.ChoicePolicy(networks.Greedy(network), name, int(space.get("n")))
        return kinds.CategoricalPolicy(network, name, int(space.get("n")))
    low, high = (jnp.asarray(np.asarray(space.get(end), np.float32)) for end in ("low", "high"))
    if kind == "SACPolicy":
        return kinds.SquashedGaussianPolicy(networks.MeanAndLogDeviation(network), name, low, high)
    if kind == "TD3Policy":
        return kinds.DeterministicPolicy(networks.Unscaled(network, low, high), name, low, high)
    steady = networks.FixedDeviation(network, log_std(path, tensors, len(low)))
    return kinds.ClippedGaussianPolicy(function=steady, name=name, low=low, high=high)


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if path.exists():
        return path
    if (longer := path.with_name(f"{path.name}.zip")).exists():
        return longer
    raise FileNotFoundError(f"there is no file {path}; expected a zip that Stable-Baselines3 wrote")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON and the tensors of the policy."""
    members = read_zip(path, f"{path}")
    for wanted in ("_stable_baselines3_version", "data", "policy.pth"):
        if wanted not in members:
            raise ValueError(
                f"{path} lacks {wanted!r}, so it is no policy that Stable-Baselines3 saved; "
                f"it holds {', '.join(sorted(members)) or 'nothing'}"
            )
    _check_version(path, members["_stable_baselines3_version"])
    return _json(path, members["data"]), read_tensors(members["policy.pth"], f"{path}: policy.pth")


def _check_version(path: Path, version: bytes) -> None:
    text = version.decode(errors="replace").strip()
    if text.split(".")[0] not in MAJORS:
        raise ValueError(
            f"{path}: _stable_baselines3_version is {text!r}; versions {' and '.join(MAJORS)} are read"
        )


def _json(path: Path, data: bytes) -> dict[str, Any]:
    try:
        about = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: data is damaged or not JSON: {error}") from error
    if not isinstance(about, dict):
        raise ValueError(f"{path}: data is {type(about).__name__}, an object was expected")
    return about


def _blob(path: Path, about: dict[str, Any], field: str) -> Any:
    """The pickled part of a field, as records."""
    entry = about.get(field)
    encoded = entry.get(":serialized:") if isinstance(entry, dict) else None
    if not isinstance(encoded, str):
        raise ValueError(f"{path}: data lacks {field}, or it has no serialised part")
    try:
        content = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{path}: data.{field} is damaged: {error}") from error
    return read_pickle(content, f"{path}: data.{field}", stand_ins)


def stand_ins(module: str, name: str) -> Any:
    """What files of Stable-Baselines3 may name: its own classes, spaces, and NumPy's arrays and generators.

    Beyond the paper: all of them are records, none is the real thing
    """
    packages = ("stable_baselines3", "sb3_contrib", "gymnasium", "gym")
    if module.split(".")[0] in packages or module.startswith("numpy.random."):
        return record_of(module, name)
    return numpy_and_dicts(module, name)


def _policy_class(path: Path, about: dict[str, Any]) -> str:
    kind = _blob(path, about, "policy_class")
    if not (isinstance(kind, type) and issubclass(kind, Record)):
        raise ValueError(f"{path}: data.policy_class is {kind!r}, a class was expected")
    if CLASSES.get(kind.name, ("",))[0] != kind.module:
        raise ValueError(
            f"{path}: data.policy_class is {kind.module}.{kind.name}, which is not supported; MLP policies are: "
            f"{', '.join(CLASSES)}. Images, dictionaries, recurrent and custom policies can be wrapped with "
            "ggpi.policy_from"
        )
    return kind.name


def _choices(about: dict[str, Any]) -> dict[str, Any]:
    given = about.get("policy_kwargs") or {}
    return {key: value for key, value in given.items() if not key.startswith(":")}


def _check_choices(path: Path, about: dict[str, Any]) -> None:
    chosen = _choices(about)
    if about.get("use_sde") or chosen.get("use_sde"):
        raise ValueError(f"{path}: data.use_sde is true: gSDE (state-dependent exploration) is not supported")
    unknown = sorted(chosen.keys() - CHOICES)
    if unknown:
        raise ValueError(f"{path}: data.policy_kwargs.{unknown[0]} is unknown, so the policy is not read")
    extractor = chosen.get("features_extractor_class", FLATTEN)
    if extractor != FLATTEN:
        raise ValueError(
            f"{path}: data.policy_kwargs.features_extractor_class is {extractor}, which is not supported; "
            "only MLP policies on plain vectors are"
        )


def _activation(path: Path, about: dict[str, Any], kind: str) -> str:
    text = str(_choices(about).get("activation_fn", f"<class 'torch.nn.{CLASSES[kind][1]}'>"))
    match = re.fullmatch(r"<class 'torch\.nn\.(?:modules\.\w+\.)?(\w+)'>", text)
    name = match[1] if match else ""
    if name not in networks.ACTIVATIONS and name != "PReLU":
        raise ValueError(
            f"{path}: data.policy_kwargs.activation_fn is {text}, which is not supported; there are "
            f"{', '.join(sorted([*networks.ACTIVATIONS, 'PReLU']))}, each as PyTorch makes it by default"
        )
    return name


def _spaces(path: Path, about: dict[str, Any]) -> tuple[int, Record]:
    """The observation's size and the action space."""
    seen, done = _blob(path, about, "observation_space"), _blob(path, about, "action_space")
    for field, space, known in (
        ("observation_space", seen, ("Box",)),
        ("action_space", done, ("Box", "Discrete")),
    ):
        if not isinstance(space, Record) or space.name not in known:
            found = getattr(space, "name", type(space).__name__)
            raise ValueError(
                f"{path}: data.{field} is {found}, which is not supported; {' or '.join(known)} is"
            )
        if space.name == "Box" and np.ndim(space.get("low")) != 1:
            shape = np.shape(space.get("low"))
            raise ValueError(f"{path}: data.{field} has shape {shape}, only vectors are supported")
    if done.name == "Discrete" and not isinstance(done.get("n"), int):
        raise ValueError(f"{path}: data.action_space lacks n, the number of actions")
    if done.name == "Discrete" and done.get("start", 0):
        raise ValueError(f"{path}: data.action_space starts at {done.get('start')}, only 0 is supported")
    return len(np.asarray(seen.get("low"))), done


def _normaliser(given: Any, size: int, path: Path) -> networks.Normaliser:
    """What makes raw observations those that the policy was trained on."""
    if given is None:
        return networks.normaliser(np.zeros(size), np.ones(size), 0.0, np.inf)
    if isinstance(given, str | Path):
        source = str(given)
        mean, var, epsilon, limit = _statistics(Path(given), size)
    elif isinstance(given, tuple | list) and len(given) == 2:
        source, (mean, var), epsilon, limit = "vecnormalize", given, 1e-8, 10.0
    else:
        raise TypeError(f"vecnormalize is a path or a pair (mean, var), got {type(given).__name__}")
    for field, values in (("mean", mean), ("var", var)):
        if np.shape(values) != (size,):
            raise ValueError(
                f"{source}: {field} has shape {np.shape(values)}, but {path} has observations of {size} numbers"
            )
        if not np.isfinite(values).all() or (field == "var" and np.min(values) < 0):
            raise ValueError(f"{source}: {field} has numbers that no statistics have: {np.asarray(values)}")
    return networks.normaliser(mean, var, epsilon, limit)


def _statistics(path: Path, size: int) -> tuple[Any, Any, float, float]:
    """mean, var, ε and the limit of what `VecNormalize.save` wrote."""
    try:
        saved = read_pickle(path.read_bytes(), f"{path} (vecnormalize)", stand_ins)
    except ValueError as error:
        raise ValueError(f"{error}. The statistics can also be given as vecnormalize=(mean, var)") from error
    if not isinstance(saved, Record) or saved.name != "VecNormalize":
        raise ValueError(
            f"{path} is no file of VecNormalize.save: it holds {getattr(saved, 'name', type(saved))}"
        )
    if not saved.get("norm_obs", True):
        return np.zeros(size), np.ones(size), 0.0, np.inf
    moments = saved.get("obs_rms")
    if not isinstance(moments, Record):
        raise ValueError(
            f"{path}: obs_rms is {type(moments).__name__}; statistics of dictionary observations are not supported"
        )
    mean, var = (np.asarray(moments.get(field), np.float64) for field in ("mean", "var"))
    return mean, var, float(saved.get("epsilon", 1e-8)), float(saved.get("clip_obs", 10.0))
