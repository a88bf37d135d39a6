"""Options of configs that hold other configs: `--steps` for `--recipe.steps`, and fields of which only a protocol is
known.
"""

from __future__ import annotations

import dataclasses
import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

REGISTRY = ConstructorRegistry()


@REGISTRY.struct_rule
def _by_default(info: StructTypeInfo) -> StructConstructorSpec | None:
    """A field whose type is a protocol has the options of its default, if that is a dataclass."""
    if not getattr(info.type, "_is_protocol", False) or not dataclasses.is_dataclass(info.default):
        return None
    kind, hints = type(info.default), typing.get_type_hints(type(info.default))
    fields = [(field.name, hints[field.name]) for field in dataclasses.fields(info.default)]
    return StructConstructorSpec(
        instantiate=kind,
        fields=tuple(StructFieldSpec(name, hint, getattr(info.default, name)) for name, hint in fields),
    )


def with_prefixes(config: Any, arguments: Sequence[str]) -> list[str]:
    """Arguments with the full names of options: the last part of a name is enough if no other field has it."""
    own = {path.rpartition(".")[2]: path for path in reversed(list(_paths(config)))}
    counts = Counter(path.rpartition(".")[2] for path in _paths(config))
    short = {name: path for name, path in own.items() if counts[name] == 1}
    return [_with_prefix(word, short) for word in arguments]


def _with_prefix(word: str, short: dict[str, str]) -> str:
    flag, equals, value = word.partition("=")
    name = flag.removeprefix("--").replace("-", "_")
    if not flag.startswith("--") or name not in short:
        return word
    return f"--{short[name].replace('_', '-')}{equals}{value}"


def _paths(config: Any, prefix: str = "") -> Iterator[str]:
    """The names of all fields that are not configs themselves, such as recipe.loss.n_step."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name, field.default)
        if dataclasses.is_dataclass(value):
            yield from _paths(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name
