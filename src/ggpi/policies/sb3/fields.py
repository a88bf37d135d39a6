"""The pickled fields of a Stable-Baselines3 policy: its class, its spaces and its statistics.

`ggpi.policies.sb3.pickles` returns them as records; their types, shapes and values are checked here.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.policies.sb3 import pickles
from ggpi.policies.sb3.pickled_arrays import Name
from ggpi.policies.sb3.pickles import Record, read_pickle
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate, read_bytes

Json = dict[str, Any]
"""The object of a JSON file that is not trusted."""
PACKAGES = ("stable_baselines3", "sb3_contrib", "gymnasium", "gym")


def admits(name: Name) -> bool:
    """Whether a file of Stable-Baselines3 may contain a name: its own classes, spaces, and NumPy's generators."""
    return name.module.split(".")[0] in PACKAGES or name.module.startswith("numpy.random.")


def pickled(path: Path, about: Json, field: str) -> Any:
    """The pickled part of a field of the JSON, as records."""
    entry = about.get(field)
    encoded = entry.get(":serialized:") if isinstance(entry, dict) else None
    if not isinstance(encoded, str):
        raise FileError(path, "is missing, or has no serialised part", field=f"data.{field}")
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FileError(path, f"is damaged: {error}", field=f"data.{field}") from error
    return read_pickle(content, path, f"data.{field}", admits)


def observation_size(path: Path, about: Json) -> int:
    """The number of observation dimensions; observations must be vectors."""
    space = _space(path, about, "observation_space", ("Box",))
    low, _ = _bounds(path, "data.observation_space", space)
    return len(low)


def action_space(path: Path, about: Json) -> Box | Discrete:
    """The action space: vectors, or integers from 0."""
    field = "data.action_space"
    space = _space(path, about, "action_space", ("Box", "Discrete"))
    if space.name == "Discrete":
        n, start = space.get("n"), space.get("start", 0)
        if type(n) is not int or not 1 <= n < 2**31:
            raise FileError(path, f"n is {abbreviate(n)}, expected the number of actions", field=field)
        if type(start) is not int or start:
            raise FileError(path, f"starts at {abbreviate(start)}, only 0 is supported", field=field)
        return Discrete(n)
    low, high = _bounds(path, field, space)
    if np.isposinf(low).any() or np.isneginf(high).any():
        raise FileError(path, "has bounds that no finite action satisfies", field=field)
    return Box(low, high, dtype=np.float32)


def _space(path: Path, about: Json, field: str, known: tuple[str, ...]) -> Record:
    space = pickled(path, about, field)
    if isinstance(space, Record) and space.name in known:
        return space
    found = space.name if isinstance(space, Record) else type(space).__name__
    problem = f"{found[:80]} is not supported; {' or '.join(known)} is"
    raise FileError(path, problem, field=f"data.{field}")


def _bounds(path: Path, field: str, space: Record) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of a Box of vectors, in single precision."""
    ends = []
    for end in ("low", "high"):
        values = space.array(end)
        if values is None:
            raise FileError(path, f"{end} is {abbreviate(space.get(end))}, expected an array", field=field)
        if values.ndim != 1 or not len(values):
            raise FileError(path, f"has shape {values.shape}, only vectors are supported", field=field)
        if np.isnan(values).any():
            raise FileError(path, f"{end} contains NaN", field=field)
        with np.errstate(over="ignore"):  # larger than single precision means unbounded
            ends.append(values.astype(np.float32))
    low, high = ends
    if low.shape != high.shape or space.get("_shape", low.shape) != low.shape:
        sizes = (
            f"has {len(low)} lower and {len(high)} upper bounds for shape {abbreviate(space.get('_shape'))}"
        )
        raise FileError(path, sizes, field=field)
    if (low > high).any():
        raise FileError(path, "has lower bounds above upper bounds", field=field)
    return low, high


def statistics(path: Path, size: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Mean, variance, ε and clipping limit of a file that `VecNormalize.save` wrote."""
    if not path.exists():
        raise FileNotFoundError(
            f"there is no file {path}; vecnormalize= expects the one that VecNormalize.save wrote, or (mean, var)"
        )
    try:
        saved = read_pickle(read_bytes(path, pickles.BYTES), path, None, admits)
    except FileError as error:
        advice = f"{error.problem}. You can also pass vecnormalize=(mean, var)"
        raise FileError(path, advice, field=error.field) from error
    if not isinstance(saved, Record) or saved.name != "VecNormalize":
        raise FileError(path, f"is not a file of VecNormalize.save: it holds {abbreviate(saved)}")
    if saved.get("norm_obs", True) is False:
        return np.zeros(size), np.ones(size), 0.0, np.inf
    moments = saved.get("obs_rms")
    if not isinstance(moments, Record):
        problem = f"is a {type(moments).__name__}; statistics of dictionary observations are not supported"
        raise FileError(path, problem, field="obs_rms")
    mean, var = (_vector(path, moments, field, size) for field in ("mean", "var"))
    epsilon, limit = (_number(path, saved, *of) for of in (("epsilon", 1e-8), ("clip_obs", 10.0)))
    return mean, var, epsilon, limit


def _vector(path: Path, moments: Record, field: str, size: int) -> np.ndarray:
    values = moments.array(field)
    if values is None or values.shape != (size,):
        found = abbreviate(moments.get(field)) if values is None else f"has shape {values.shape}"
        raise FileError(path, f"{found}, expected shape ({size},)", field=f"obs_rms.{field}")
    return values.astype(np.float64)


def _number(path: Path, saved: Record, field: str, default: float) -> float:
    value = saved.get(field, default)
    if not isinstance(value, float) and not (type(value) is int and abs(value) < 2**53):
        raise FileError(path, f"is {abbreviate(value)}, expected a number", field=field)
    return float(value)
