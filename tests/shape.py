"""The shape of the source tree in numbers; `python tests/shape.py [CHECKOUT]` prints them.

Bodies are counted without signature and docstring. A parameter counts as `Any` when the name stands anywhere in its
annotation, and `self` and `cls` are not counted. Two functions are near-identical when their bodies have the same
syntax tree but for names and constants.
"""

from __future__ import annotations

import ast
import itertools
import statistics
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_BODY, MOST_PARAMETERS = 40, 8
SMALLEST_TWIN = 20
"""Bodies with fewer syntax nodes are too short to be called copies of each other."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function or method: where it is, and what it takes."""

    module: str
    name: str
    """With the names of the classes and functions around it."""
    node: Definition
    is_nested: bool

    @property
    def place(self) -> str:
        return f"{self.module}:{self.name}"

    @property
    def is_public(self) -> bool:
        names = self.name.split(".")
        return not self.is_nested and all(not name.startswith("_") or is_dunder(name) for name in names)

    @cached_property
    def parameters(self) -> list[ast.arg]:
        given = self.node.args
        positional = [*given.posonlyargs, *given.args]
        if "." in self.name and not self.is_nested and positional and positional[0].arg in ("self", "cls"):
            positional = positional[1:]
        return [*positional, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]

    @cached_property
    def body_lines(self) -> int:
        body = self.node.body[1:] if ast.get_docstring(self.node) is not None else self.node.body
        return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # pyright: ignore[reportOptionalOperand]

    @property
    def untyped(self) -> list[str]:
        return [parameter.arg for parameter in self.parameters if parameter.annotation is None]

    @property
    def typed(self) -> list[ast.arg]:
        return [parameter for parameter in self.parameters if parameter.annotation is not None]

    @property
    def any_typed(self) -> list[str]:
        return [parameter.arg for parameter in self.typed if mentions_any(parameter.annotation)]


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def mentions_any(annotation: ast.expr | None) -> bool:
    parts = ast.walk(annotation) if annotation else ()
    return any(isinstance(part, ast.Name) and part.id == "Any" for part in parts)


@dataclass(frozen=True)
class Tree:
    """The package of one checkout."""

    root: Path = ROOT

    @property
    def package(self) -> Path:
        return self.root / "src" / "ggpi"

    @cached_property
    def modules(self) -> dict[str, str]:
        """The text of each module by its path inside of the package."""
        paths = sorted(self.package.rglob("*.py"))
        return {path.relative_to(self.package).as_posix(): path.read_text(encoding="utf-8") for path in paths}

    @property
    def lines(self) -> dict[str, int]:
        return {name: text.count("\n") for name, text in self.modules.items()}

    @cached_property
    def functions(self) -> list[Function]:
        return [
            Function(module, name, node, is_nested)
            for module, text in self.modules.items()
            for name, node, is_nested in definitions(ast.parse(text))
        ]

    @property
    def library(self) -> list[Function]:
        return [one for one in self.functions if room(one.module) not in ("lab", "cli")]

    @property
    def siblings(self) -> list[str]:
        """Modules and rooms directly under the package."""
        files = [path for path in self.package.iterdir() if path.suffix == ".py"]
        rooms = [path for path in self.package.iterdir() if (path / "__init__.py").exists()]
        return sorted(path.stem for path in files + rooms if not is_dunder(path.stem))

    @property
    def layers(self) -> list[str]:
        settings = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        contracts = settings["tool"]["importlinter"]["contracts"]
        (layers,) = (c["layers"] for c in contracts if c["type"] == "layers" and c["containers"] == ["ggpi"])
        return layers

    @property
    def public_names(self) -> list[str]:
        """The modules and names that `ggpi/__init__.py` lists."""
        tree = ast.parse(self.modules["__init__.py"])
        assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
        lists = {ast.unparse(node.targets[0]): node.value for node in assigned}
        return [*ast.literal_eval(lists["_MODULES"]), *ast.literal_eval(lists["_NAMES"])]

    @property
    def large(self) -> dict[str, str]:
        """Functions with long bodies or many parameters, and how large they are."""
        return {
            one.place: f"{one.body_lines} lines, {len(one.parameters)} parameters"
            for one in self.functions
            if one.body_lines > LONGEST_BODY or len(one.parameters) > MOST_PARAMETERS
        }

    @property
    def twins(self) -> list[tuple[str, str]]:
        """Pairs of functions whose bodies have the same shape."""
        groups: dict[str, list[str]] = defaultdict(list)
        for one in self.functions:
            body = one.node.body[1:] if ast.get_docstring(one.node) is not None else one.node.body
            if sum(1 for part in body for _ in ast.walk(part)) >= SMALLEST_TWIN:
                groups["\n".join(map(shape, body))].append(one.place)
        return [pair for group in groups.values() for pair in itertools.combinations(group, 2)]


def definitions(
    node: ast.AST, prefix: str = "", is_nested: bool = False
) -> Iterator[tuple[str, Definition, bool]]:
    """Each function with its qualified name, and whether it is inside of another function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield prefix + child.name, child, is_nested
            yield from definitions(child, f"{prefix}{child.name}.", True)
        elif isinstance(child, ast.ClassDef):
            yield from definitions(child, f"{prefix}{child.name}.", is_nested)
        else:
            yield from definitions(child, prefix, is_nested)


def shape(node: ast.AST) -> str:
    """A syntax tree without names and constants."""
    parts = ",".join(map(shape, ast.iter_child_nodes(node)))
    return f"{type(node).__name__}({parts})"


def room(module: str) -> str:
    """The room of a module, or the module itself where it has none."""
    first, *rest = module.split("/")
    return first if rest else first.removesuffix(".py")


def share_of_any(functions: list[Function]) -> tuple[int, int]:
    """How many annotated parameters there are, and how many of them are `Any`."""
    return sum(len(one.any_typed) for one in functions), sum(len(one.typed) for one in functions)


def untyped(functions: list[Function]) -> list[str]:
    """Parameters of public functions that have no annotation."""
    return [f"{one.place}({name})" for one in functions if one.is_public for name in one.untyped]


def summary(tree: Tree) -> dict[str, str]:
    """What the numbers are called, and the numbers."""
    sizes = sorted(tree.lines.values())
    bodies = sorted(one.body_lines for one in tree.functions)
    library_lines = sum(n for module, n in tree.lines.items() if room(module) not in ("lab", "cli"))
    any_all, any_library = share_of_any(tree.functions), share_of_any(tree.library)
    return {
        "modules": f"{len(sizes)}",
        "lines": f"{sum(sizes)} (library {library_lines})",
        "largest module": f"{sizes[-1]} lines",
        "siblings": f"{len(tree.siblings)}",
        "layers": f"{len(tree.layers)}",
        "public names": f"{len(tree.public_names)}",
        "functions": f"{len(bodies)}",
        "body lines": f"median {statistics.median(bodies):g}, p90 {percentile(bodies)}, max {bodies[-1]}",
        "large functions": f"{len(tree.large)}",
        "Any": "{}; library {}".format(*(f"{a} of {n} ({a / n:.1%})" for a, n in (any_all, any_library))),
        "unannotated": f"{len(untyped(tree.functions))} of public functions",
        "near-identical": f"{len(tree.twins)} pairs",
    }


def percentile(values: list[int]) -> int:
    """The smallest value that at least 90% of them do not exceed."""
    return values[-(-9 * len(values) // 10) - 1]


def by_room(tree: Tree) -> Iterator[str]:
    """A line for each room: modules, lines, `Any`, unannotated."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for module in tree.modules:
        rooms[room(module)].append(module)
    yield f"{'room':12} {'modules':>7} {'lines':>6} {'Any':>5} {'of':>5} {'unannotated':>11}"
    for name, modules in sorted(rooms.items()):
        functions = [one for one in tree.functions if one.module in modules]
        any_typed, typed = share_of_any(functions)
        lines = sum(tree.lines[module] for module in modules)
        missing = len(untyped(functions))
        yield f"{name:12} {len(modules):7} {lines:6} {any_typed:5} {typed:5} {missing:11}"


def main(root: Path) -> None:
    tree = Tree(root)
    for name, value in summary(tree).items():
        print(f"{name:16} {value}")
    print()
    print("\n".join(by_room(tree)))
    print("\nlarge functions")
    for place, size in tree.large.items():
        print(f"  {place}: {size}")
    print("near-identical functions")
    for one, other in tree.twins:
        print(f"  {one} ~ {other}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
