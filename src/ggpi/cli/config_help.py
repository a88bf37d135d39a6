"""Fields of a config in the help of a command, in the same style as its other options.

A config is a frozen dataclass with a text under each field; its fields are read by tyro, and described here.
"""

import argparse
import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from typing import Any

METAVARS = {int: "N", float: "X"}


def add_fields(parser: argparse.ArgumentParser, title: str, config: Any, prefix: str = "") -> None:
    """Adds a group of options to a parser, only to be printed: the fields of a config, or of its class."""
    kind = config if isinstance(config, type) else type(config)
    texts, hints = field_texts(kind), typing.get_type_hints(kind)
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(kind):
        value, name = getattr(config, field.name, field.default), prefix + field.name
        if dataclasses.is_dataclass(value):
            add_fields(parser, f"{title}: {name}", value, f"{name}.")
            continue
        flag = f"--{name.replace('_', '-')}"
        text = f"{texts.get(field.name, '')} {_default(value)}".strip().replace("%", "%%")
        if hints[field.name] is bool:
            group.add_argument(flag, f"--no-{flag[2:]}", action="store_true", help=text)
        else:
            group.add_argument(flag, metavar=_metavar(hints[field.name]), help=text)


def field_texts(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name) and isinstance(text.value, ast.Constant)
            texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts


def _metavar(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType or origin is typing.Union:
        return _metavar(next(part for part in inner if part is not types.NoneType))
    if origin is typing.Literal:
        return f"{{{','.join(map(str, inner))}}}"
    if origin is tuple:
        return f"{_metavar(inner[0])} …" if inner[-1] is ... else " ".join(map(_metavar, inner))
    return METAVARS.get(hint, "TEXT")


def _default(value: Any) -> str:
    if value is dataclasses.MISSING:
        return "(required)"
    if value is None or value in ((), ""):
        return ""
    words = map(str, value) if isinstance(value, tuple) else [str(value)]
    return f"(default: {' '.join(words)})"
