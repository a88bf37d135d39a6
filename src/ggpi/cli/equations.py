"""Where each numbered item of the paper is: in code, in tests, in an experiment, or why in none of them.

The catalogue `equations.toml` lists the items. Code points back at them from its docstrings, whose last line
is `Paper: Thm 3.2, Eq 6`. The sources are parsed, not imported.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Tagged:
    """A definition and the last line of its docstring."""

    path: Path
    line: int
    name: str
    tag: str

    @property
    def ids(self) -> list[str]:
        """The items that the tag names, none if it is not a `Paper:` line."""
        kind, _, items = self.tag.partition(": ")
        return [item.strip().rstrip(".") for item in items.split(",")] if kind == "Paper" else []


def catalogue() -> list[dict[str, Any]]:
    """All numbered items of the paper, in its order."""
    return tomllib.loads((PACKAGE / "cli" / "equations.toml").read_text(encoding="utf-8"))["item"]


def definitions(root: Path = PACKAGE) -> Iterator[Tagged]:
    """Every module, class and function below `root` with the last line of its docstring, "" if it has none."""
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        yield from _definitions(tree, path, module)


def _definitions(node: ast.AST, path: Path, name: str) -> Iterator[Tagged]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        lines = (ast.get_docstring(node) or "").splitlines()
        yield Tagged(path, getattr(node, "lineno", 1), name, lines[-1] if lines else "")
    for child in ast.iter_child_nodes(node):
        inner = getattr(child, "name", None)
        yield from _definitions(child, path, f"{name}.{inner}" if inner else name)


def find(query: str) -> list[dict[str, Any]]:
    """The items that a query such as `3.2`, `thm 3.2`, `eq6` or `Figure 3` may mean."""
    parts = re.fullmatch(r"\s*([a-z]*)[.\s]*\(?([a-z]?\.?\d[\d.]*)\)?\s*", query.lower())
    if parts is None:
        return []
    kind, number = parts.groups()
    items = [item for item in catalogue() if item["id"].lower().split()[1] == number]
    return [item for item in items if _same_kind(kind, item["id"].lower().split()[0])]


def _same_kind(given: str, kind: str) -> bool:
    """`theorem`, `thm` and nothing at all mean Thm: an abbreviation's letters come in the word's order."""
    letters = iter(given)
    return not given or kind.startswith(given) or all(letter in letters for letter in kind)


def report(query: str) -> str:
    """What `ggpi eq` prints: title, places in code, tests, experiment, or why there are none."""
    items = find(query)
    if not items:
        known = ", ".join(item["id"] for item in catalogue())
        raise ValueError(f"the paper has no item {query!r}; it has {known}")
    tagged = [definition for definition in definitions() if definition.ids]
    return "\n\n".join(_describe(item, tagged) for item in items)


def _describe(item: dict[str, Any], tagged: list[Tagged]) -> str:
    lines = [f"{item['id']}: {item['title']}"]
    lines += [f"  code        {_shown(t.path)}:{t.line}  {t.name}" for t in tagged if item["id"] in t.ids]
    lines += [f"  test        {path}" for path in item.get("tests", [])]
    if "experiment" in item:
        lines.append(f"  experiment  ggpi run {item['experiment']}")
    if "why_not" in item:
        lines.append(f"  not in code: {item['why_not']}")
    return "\n".join(lines)


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
