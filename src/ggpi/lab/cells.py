"""Cells: independent pieces of a run, each computed once and stored under a stamp of what it depends on.

An experiment hands its pieces to a function from named tasks to their named results:

    results = cells({"depth-1/seed-0": partial(solve, 1, seed=0), ...})

`compute` only calls them. `resumable` also stores each result in `DIR/cells/NAME.json`, so that an interrupted run
resumes. A stored result is used again under the same stamp: experiment, config, version, and a digest of the sources
of the experiment and of all modules of the library that it imports. Editing another module, or the figure, costs
nothing.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggpi.progress import progress
from ggpi.storage.arrays import read_json, to_json, write_json
from ggpi.storage.tags import BEFORE_TAGS, LIBRARY, UPGRADES

if TYPE_CHECKING:
    from ggpi.cluster import Executor

Metrics = dict[str, Any]
"""A JSON object: numbers, strings, lists and objects by name."""
Tasks = Mapping[str, Callable[[], Any]]
Cells = Callable[[Tasks], Metrics]
PACKAGE = Path(__file__).parents[1]


def compute(tasks: Tasks) -> Metrics:
    """Calls each task; results are as they would be read from disk."""
    return {name: as_stored(task()) for name, task in tasks.items()}


def as_stored(value: Any) -> Any:
    """The value after a round trip through JSON: tuples and arrays become lists, keys become strings."""
    return json.loads(to_json(value))


def resumable(directory: Path, stamp: str, executor: Executor) -> Cells:
    """Like `compute`, with a progress bar; stores each result, and reuses those that are stored under `stamp`.

    Workers of the executor compute, and this process stores: they need not share a disk.
    """

    def run(tasks: Tasks) -> Metrics:
        paths = {name: _cell_path(directory, name) for name in tasks}
        results = {name: cell["result"] for name, path in paths.items() if (cell := _stored(path, stamp))}
        missing = {name: task for name, task in tasks.items() if name not in results}
        with progress(len(tasks), "run", "") as advance:

            def begin(name: str) -> None:
                advance(len(results), name)

            for name, cell in executor.completed(_timed, missing, begin=begin):
                paths[name].parent.mkdir(parents=True, exist_ok=True)
                write_json(paths[name], {"stamp": stamp, **cell})
                results[name] = cell["result"]
            advance(len(results), "")
        return {name: results[name] for name in tasks}

    return run


def _timed(task: Callable[[], Any]) -> Metrics:
    """The result of a cell as it is stored, and how long it took."""
    start = time.perf_counter()
    result = as_stored(task())
    return {"seconds": round(time.perf_counter() - start, 3), "result": result}


def _cell_path(directory: Path, name: str) -> Path:
    if not re.fullmatch(r"\w[\w.=+-]*(/\w[\w.=+-]*)*", name):
        raise ValueError(f"cell name {name!r}: expected words of letters, digits and . = + - _, joined by /")
    return directory / "cells" / f"{name}.json"


def _stored(path: Path, stamp: str) -> Metrics | None:
    """A stored cell; None if it is missing, damaged, or of another config or other code."""
    with contextlib.suppress(OSError, ValueError):
        cell = read_json(path)
        if isinstance(cell, dict) and cell.get("stamp") == stamp and "result" in cell:
            return cell if isinstance(cell.get("seconds"), int | float) else None
    return None


def seconds_spent(directory: Path, stamp: str) -> float:
    """The time that the stored cells of this run took."""
    cells = (_stored(path, stamp) for path in (directory / "cells").rglob("*.json"))
    return sum((float(cell["seconds"]) for cell in cells if cell), 0.0)


def stamp_of(about: Mapping[str, Any]) -> str:
    """A short hash of what determines the numbers: experiment, config, version and code."""
    parts = [about["experiment"], about["config"], about["versions"]["ggpi"], about["code"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def code_digest(module: str, package: Path = PACKAGE) -> str:
    """A digest of the sources that a module's numbers depend on.

    For modules that may load shipped weights, these count too, and the classes that they are instances of.
    """
    paths, weights = sources(module, package), package / "storage" / "weights"
    if package / "storage" / "pretrained.py" in paths.values():
        for kind in _classes_in(weights):
            paths |= sources(kind, package)
        paths |= {path.relative_to(package).as_posix(): path for path in weights.rglob("*") if path.is_file()}
    digest = hashlib.sha256()
    for name, path in sorted(paths.items()):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def sources(module: str, package: Path = PACKAGE) -> dict[str, Path]:
    """Module → file: a module and all modules of a package that it imports, also indirectly and inside functions."""
    found = {module: _file_of(module, package) or _file_elsewhere(module)}
    waiting = [*_imports(module, found[module].name, found[module].read_bytes())]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _file_of(name, package)
        if path is not None:
            found[name] = path
            waiting += _imports(name, path.name, path.read_bytes())
    return found


def _file_of(module: str, package: Path) -> Path | None:
    """The source of a module of a package; None for any other name."""
    root, *parts = module.split(".")
    path = package.joinpath(*parts)
    files = (path / "__init__.py", path.with_suffix(".py")) if root == package.name else ()
    return next((file for file in files if file.is_file()), None)


def _file_elsewhere(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module is called {module}")
    return Path(spec.origin)


@functools.cache
def _imports(module: str, file: str, source: bytes) -> list[str]:
    """What a file may import: modules, names in them (some of which are modules), and the packages around them."""
    tree = _WithoutTypes().visit(ast.parse(source))
    around = module if file == "__init__.py" else module.rpartition(".")[0]
    names = {module, *_lazy(tree, module)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), around)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return sorted({".".join(part[:n]) for part in parts for n in range(1, len(part) + 1)})


class _WithoutTypes(ast.NodeTransformer):
    """Drops what is imported for type checkers only."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return node.orelse
        return self.generic_visit(node)


def _lazy(tree: ast.Module, module: str) -> Iterator[str]:
    """Submodules that a package with a `__getattr__` imports when their names are used: those that its strings name.

    The names of the library's root are not followed: modules of the library import each other.
    """
    if "." in module and any(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body
    ):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                yield f"{module}.{node.value}"


def _classes_in(weights: Path) -> Iterator[str]:
    """Modules of the classes that saved objects are instances of."""
    for path in sorted(weights.rglob("about.json")):
        for name in set(re.findall(r'"class": "([^"]+)"', path.read_text(encoding="utf-8"))):
            tag = BEFORE_TAGS.get(str(name), str(name))
            yield LIBRARY[UPGRADES[tag][0] if tag in UPGRADES else tag].partition(":")[0]
