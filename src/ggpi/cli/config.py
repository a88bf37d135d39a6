"""Options on the command line: one-line errors, and the fields of a config as options.

A config is a frozen dataclass with a text under each field. `read_config` reads its fields from options such as
`--num-samples 20`, and `show_help` describes them. Fields of a part that is a dataclass itself have names such as
`--recipe.loss.n-step`; their last part, `--n-step`, is enough where no other field has it.
"""

import argparse
import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar

Config = TypeVar("Config")
METAVARS = {int: "N", float: "X", str: "TEXT"}


class Parser(argparse.ArgumentParser):
    """Raises errors as one line."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("invalid int value:", "expected a whole number, got")
        raise ValueError(f"{message.replace('unrecognized', 'unrecognised')}; see {self.prog} --help")


def read_config(prog: str, default: Config | type[Config], arguments: Sequence[str]) -> Config:
    """A config in which the fields that were given as options are replaced.

    Args:
        prog: The command, for error messages.
        default: A config, or a class whose fields without a default have to be given.
        arguments: Options, such as `["--gamma", "1/9"]`.
    """
    parser = Parser(prog=prog, add_help=False, allow_abbrev=False)
    add_fields(parser, "fields", default)
    paths = list(_paths(default))
    given = vars(parser.parse_args([_in_full(word, paths) for word in arguments]))
    missing = [
        f"--{name}" for name, value in _values(default) if value is dataclasses.MISSING and name not in given
    ]
    if missing:
        raise ValueError(f"{prog} needs {' and '.join(missing)}; see {prog} --help")
    return _replaced(default, given)


def show_help(parser: argparse.ArgumentParser, title: str, config: object) -> None:
    """Prints a command's help with the fields of a config, or of its class, among the options."""
    add_fields(parser, title, config)
    print(parser.format_help())


def add_fields(parser: argparse.ArgumentParser, title: str, config: object, prefix: str = "") -> None:
    """Adds a group of options to a parser: the fields of a config, or of its class."""
    kind = config if isinstance(config, type) else type(config)
    texts, hints = field_texts(kind), typing.get_type_hints(kind)
    group = parser.add_argument_group(title)
    for field, value in _values(config):
        name = prefix + field
        if _is_config(value):
            add_fields(parser, f"{name} ({type(value).__name__})", value, f"{name}.")
            continue
        text = f"{texts.get(field, '')} {_shown(value)}".strip().replace("%", "%%")
        settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": text}
        flag = f"--{name.replace('_', '-')}"
        if hints[field] is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **settings)
        else:
            group.add_argument(flag, action=_Read, hint=hints[field], **settings)


class _Read(argparse.Action):
    """Reads the words of an option as its field's type."""

    def __init__(self, hint: object, **settings: Any):
        self.hint = hint
        super().__init__(nargs=_nargs(hint), metavar=_metavar(hint), **settings)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[str] | None,
        option_string: str | None = None,
    ) -> None:
        try:
            value = _read(self.hint, [values] if isinstance(values, str) else list(values or ()))
        except (ValueError, ZeroDivisionError) as error:
            raise argparse.ArgumentError(self, str(error)) from error
        setattr(namespace, self.dest, value)


def _read(hint: object, words: Sequence[str]) -> Any:
    """A value of a type from the words of an option."""
    inner = typing.get_args(hint)
    if _is_optional(hint):
        return None if words == ["None"] else _read(_without_none(hint), words)
    if typing.get_origin(hint) is tuple:
        kinds = [inner[0]] * len(words) if inner[-1] is ... else inner
        return tuple(_read(kind, [word]) for kind, word in zip(kinds, words, strict=True))
    (word,) = words
    if typing.get_origin(hint) is typing.Literal:
        if word not in inner:
            raise ValueError(f"expected one of {', '.join(inner)}, got {word!r}")
        return word
    return _number(hint, word) if hint in (int, float) else word


def _number(kind: type[int] | type[float], word: str) -> float:
    """A whole number, or a decimal number or fraction such as 1/9."""
    from fractions import Fraction

    try:
        return int(word) if kind is int else float(Fraction(word)) if "/" in word else float(word)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise ValueError(f"expected {expected}, got {word!r}") from error


def _nargs(hint: object) -> str | int | None:
    hint, inner = _without_none(hint), typing.get_args(_without_none(hint))
    if typing.get_origin(hint) is not tuple:
        return None
    return "*" if inner[-1] is ... else len(inner)


def _metavar(hint: object) -> str | tuple[str, ...]:
    hint, inner = _without_none(hint), typing.get_args(_without_none(hint))
    if typing.get_origin(hint) is typing.Literal:
        return f"{{{','.join(map(str, inner))}}}"
    if typing.get_origin(hint) is tuple:
        metavars = tuple(str(_metavar(kind)) for kind in inner if kind is not ...)
        return metavars[0] if inner[-1] is ... else metavars
    return METAVARS.get(hint, "TEXT")


def _is_optional(hint: object) -> bool:
    return typing.get_origin(hint) in (UnionType, typing.Union)


def _without_none(hint: object) -> Any:
    """X of X | None."""
    return (
        next(part for part in typing.get_args(hint) if part is not NoneType) if _is_optional(hint) else hint
    )


def _is_config(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _values(config: Any) -> Iterator[tuple[str, Any]]:
    """Fields and values of a config; defaults, or `MISSING`, for its class."""
    for field in dataclasses.fields(config):
        if not isinstance(config, type):
            yield field.name, getattr(config, field.name)
        elif field.default_factory is dataclasses.MISSING:
            yield field.name, field.default
        else:
            yield field.name, field.default_factory()


def _replaced(config: Any, given: Mapping[str, Any], prefix: str = "") -> Any:
    """The config with new values of some fields, also of its parts."""
    values = {}
    for field, value in _values(config):
        name = prefix + field
        if name in given:
            values[field] = given[name]
        elif any(other.startswith(f"{name}.") for other in given):
            values[field] = _replaced(value, given, f"{name}.")
    return config(**values) if isinstance(config, type) else dataclasses.replace(config, **values)


def field_texts(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass, its own or inherited."""
    import ast
    import inspect
    import textwrap

    texts = field_texts(kind.__base__) if kind.__base__ and dataclasses.is_dataclass(kind.__base__) else {}
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name) and isinstance(text.value, ast.Constant)
            texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts


def _shown(value: object) -> str:
    """A default, in words."""
    if value is dataclasses.MISSING:
        return "(required)"
    if value is None or value in ((), ""):
        return ""
    words = map(str, value) if isinstance(value, tuple) else [str(value)]
    return f"(default: {' '.join(words)})"


def _in_full(word: str, paths: Sequence[str]) -> str:
    """An option with the full name of its field, such as --recipe.steps for --steps; with dashes."""
    flag, equals, value = word.partition("=")
    name = flag.removeprefix("--").replace("-", "_")
    if not flag.startswith("--"):
        return word
    found = [path for path in paths if path.rpartition(".")[2] == name]
    full = found[0] if len(found) == 1 else name
    return f"--{full.replace('_', '-')}{equals}{value}"


def _paths(config: Any, prefix: str = "") -> Iterator[str]:
    """Names of all fields that are not configs themselves, such as recipe.loss.n_step."""
    for field, value in _values(config):
        if _is_config(value):
            yield from _paths(value, f"{prefix}{field}.")
        else:
            yield prefix + field
