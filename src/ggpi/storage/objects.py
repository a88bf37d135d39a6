"""Saves and loads objects: arrays in safetensors, structure in JSON, no code.

    {"class": "vae/1", "fields": {"latent": 1, "context": {"array": "models.context"}, …}}

Dataclasses (equinox modules are dataclasses) with a tag are rebuilt field by field, without running their constructors.
Other objects with a name, and objects around a function, are saved by name only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ggpi.storage.arrays import load_arrays, save_arrays, to_json
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate, short
from ggpi.storage.tags import RETIRED, class_of, tag_of, upgrade_of
from ggpi.storage.verify import PartError, verify

Array = np.ndarray | jax.Array


@dataclasses.dataclass(frozen=True)
class Foreign:
    """Placeholder for a policy that is code and was not saved; `load(path, policies=…)` replaces it."""

    name: str
    kind: str


def save(path: str | Path, value: object) -> None:
    """Writes an object to a directory, atomically replacing an older save; `load` reads it.

    Args:
        path: The directory, created if it does not exist.
        value: An object of this library or of a class that `ggpi.savable` registered; also tuples, lists and
            dictionaries of such objects, arrays and numbers.
    """
    arrays: dict[str, Array] = {}
    structure = _structure(value, "", arrays)
    save_arrays(path, {name: np.asarray(array) for name, array in arrays.items()}, {"object": structure})


def check_savable(value: object, name: str) -> None:
    """Raises if `save` cannot write this; call it before long work. `name` stands for the value in errors."""
    to_json(_structure(value, name, {}))


def load(path: str | Path, *, policies: Sequence[object] | None = None) -> Any:
    """Reads an object that `save` wrote. Nothing in the directory is executed; damaged files raise `FileError`.

    Args:
        path: The directory.
        policies: Policies that are code (`ggpi.policy_from`, or your own classes) are saved by name only. To use models
            of such policies, pass the same policies in the same order.
    """
    found = _load(path)
    return found if policies is None else _with_policies(found, tuple(policies), path)


def _load(path: str | Path) -> Any:
    _check_there(Path(path))
    arrays, about = load_arrays(path)
    if "object" not in about:
        raise FileError(path, "holds arrays, but no object that ggpi.save wrote")
    try:
        found = _Reader(arrays).rebuilt(about["object"], "")
        verify(found)
        return found
    except PartError as error:
        raise FileError(path, error.problem, field=error.field or None) from error
    except RecursionError as error:
        raise FileError(path, "is nested too deeply") from error


def _check_there(path: Path) -> None:
    """Raises unless this is a saved directory; the error says what was found and where a saved directory may be."""
    if (path / "about.json").exists():
        return
    expected = "expected a directory that ggpi.save wrote"
    if path.is_file():
        by = "; ggpi.load_sb3 reads zips of Stable-Baselines3" if path.suffix == ".zip" else ""
        raise NotADirectoryError(f"{path} is a file, {expected}{by}")
    if not path.exists():
        raise FileNotFoundError(
            f"there is no directory {path}; {expected}, or models/ in the out= of ggpi.fit"
        )
    inside = sorted(str(part.parent) for part in path.glob("*/about.json"))
    is_fit = any((path / name).exists() for name in ("metrics.jsonl", "world.json"))
    if inside:
        hint = f"did you mean {' or '.join(inside[:3])}?"
    elif is_fit:
        hint = "it belongs to a fit that has not finished; run the fit again to resume it"
    else:
        hint = f"it holds {', '.join(sorted(part.name for part in path.iterdir())[:3]) or 'nothing'}"
    raise FileNotFoundError(f"{path} has no about.json, {expected}: {hint}")


def _with_policies(found: Any, policies: tuple[object, ...], path: str | Path) -> Any:
    """The models with these policies instead of the saved ones, which have the same names."""
    if not (_is_savable(found) and hasattr(found, "policies")):
        raise ValueError(
            f"{path} holds a {type(found).__qualname__}, not models of policies; load it without policies="
        )
    held, given = (
        [str(getattr(policy, "name", type(policy).__qualname__)) for policy in some]
        for some in (found.policies, policies)
    )
    if held != given:
        raise ValueError(
            f"{path} holds models of {len(held)} policies ({', '.join(held)}), got {len(given)} "
            f"({', '.join(given)}); pass the policies that the models were trained for, in this order"
        )
    return dataclasses.replace(found, policies=policies)


def _structure(value: object, name: str, arrays: dict[str, Array]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | jax.Array):
        return {"array": _array_name(value, name, arrays), "jax": isinstance(value, jax.Array)}
    if isinstance(value, tuple | list):
        parts = [_structure(part, f"{name}.{i}", arrays) for i, part in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    if isinstance(value, dict):
        keys = [_structure(key, "", {}) for key in value]
        return {
            "dict": [
                [k, _structure(v, f"{name}.{k}", arrays)] for k, v in zip(keys, value.values(), strict=True)
            ]
        }
    if _is_savable(value) and not _holds_code(value):
        fields = {
            field: _structure(getattr(value, field), f"{name}.{field}".lstrip("."), arrays)
            for field in _field_names(value)
        }
        return {"class": tag_of(type(value)), "fields": fields}
    if (label := getattr(value, "name", None)) is not None:
        return {"foreign": [str(label), type(value).__qualname__]}
    raise TypeError(
        f"{name or 'the object'} is a {type(value).__qualname__}, which cannot be saved: register its class with "
        "@ggpi.savable, or give it an attribute `name` to save it by name"
    )


def _array_name(array: Array, name: str, arrays: dict[str, Array]) -> str:
    """The name under which an array is kept; one that several parts share, such as a network, is kept once."""
    for kept, other in arrays.items():
        if other is array:
            return kept
    while name in arrays:  # dictionary keys such as 1 and "1" have the same name
        name += "′"
    arrays[name] = array
    return name


class _Reader:
    """Rebuilds objects from their structure, which is not trusted."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays
        self.on_device: dict[str, jax.Array] = {}

    def rebuilt(self, structure: object, where: str) -> Any:
        """The value of a structure; `where` is its place in errors."""
        match structure:
            case {"array": str(name), "jax": bool(is_jax), **rest} if not rest:
                return self._array(name, is_jax, where)
            case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
                return float(text)
            case {"tuple": list(parts), **rest} if not rest:
                return tuple(self.rebuilt(part, f"{where}.{i}".lstrip(".")) for i, part in enumerate(parts))
            case {"list": list(parts), **rest} if not rest:
                return [self.rebuilt(part, f"{where}.{i}".lstrip(".")) for i, part in enumerate(parts)]
            case {"dict": list(items), **rest} if not rest:
                return self._dict(items, where)
            case {"foreign": [str(name), str(kind)], **rest} if not rest:
                return Foreign(name, kind)
            case {"class": str(path), "fields": dict(fields), **rest} if not rest:
                return self._instance(path, fields, where)
            case str() | int() | float() | None if _is_plain(structure):
                return structure
        raise PartError(where, f"unknown structure {abbreviate(structure)}")

    def _array(self, name: str, is_jax: bool, where: str) -> Any:
        if name not in self.arrays:
            raise PartError(where, f"there is no array {short(name, 60)!r}")
        if not is_jax:
            return self.arrays[name]
        if name not in self.on_device:
            self.on_device[name] = jnp.asarray(self.arrays[name])
        return self.on_device[name]

    def _dict(self, items: list[object], where: str) -> dict[Any, Any]:
        found = {}
        for item in items:
            if not isinstance(item, list) or len(item) != 2:
                raise PartError(where, "expected pairs of a key and a value")
            key = self.rebuilt(item[0], where)
            if not isinstance(key, str | int | float | tuple | None) or key in found:
                raise PartError(where, f"expected distinct keys, got {short(key, 60)}")
            found[key] = self.rebuilt(item[1], f"{where}.{short(key, 60)}".lstrip("."))
        return found

    def _instance(self, path: str, structures: dict[str, object], where: str) -> Any:
        kind = _class(path, where)
        defaults = {field.name: field.default for field in dataclasses.fields(kind)}
        needed = {name for name, default in defaults.items() if default is dataclasses.MISSING}
        if not needed <= structures.keys() <= defaults.keys():
            raise PartError(where, f"{path} has fields {sorted(defaults)}, got {short(sorted(structures))}")
        fields = {  # a field that is newer than the file has its default
            name: self.rebuilt(structures[name], f"{where}.{name}".lstrip("."))
            if name in structures
            else default
            for name, default in defaults.items()
        }
        built = object.__new__(kind)
        for name, value in _upgraded(path, fields, where).items():
            object.__setattr__(built, name, value)
        return built


def _class(name: str, where: str) -> type:
    kind = class_of(name)
    if name in RETIRED:
        raise PartError(where, f"{name} is of an earlier version of ggpi: {RETIRED[name]}")
    if kind is None:
        raise PartError(
            where,
            f"{short(name, 60)!r} is not a class of this version of ggpi; if it is your own, import the module that "
            "registers it with @ggpi.savable before loading",
        )
    return kind


def _upgraded(path: str, fields: dict[str, Any], where: str) -> dict[str, Any]:
    """The fields of an object as its class has them today."""
    upgrade = upgrade_of(path)
    try:
        return fields if upgrade is None else upgrade(fields)
    except Exception as error:  # fields of a damaged file may be anything
        raise PartError(where, f"{path}: {short(error)}") from error


def _is_plain(value: object) -> bool:
    """Whether an integer has at most 64 bits, and a string can be printed."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def _field_names(value: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(value)]


def _is_savable(value: object) -> bool:
    return dataclasses.is_dataclass(value) and tag_of(type(value)) is not None


def _holds_code(value: Any) -> bool:
    """Whether a savable object contains a function, which cannot be saved."""
    parts = [getattr(value, name) for name in _field_names(value)]
    return any(_holds_code(part) if _is_savable(part) else callable(part) for part in parts)
