"""The architecture page: its rooms are those of the package, its walks name files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ggpi"
PAGE = ROOT / "docs" / "architecture.md"
LONGEST = {"Walk 1: evaluate": 8, "Walk 2: fit": 16, "Walk 3: act": 9, "Walk 4: run": 8}
"""Files that a reader may have to open."""


def sections():
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE))


def steps(section):
    return re.findall(r"^\| `([\w/.]+)::([\w.]+)` \|", section, flags=re.MULTILINE)


def is_defined(tree, dotted):
    body = tree.body
    for name in dotted.split("."):
        found = [node for node in body if getattr(node, "name", None) == name]
        if not found:
            return False
        body = found[0].body
    return True


@pytest.mark.parametrize("walk", LONGEST)
def test_walks_name_what_exists(walk):
    assert len(steps(sections()[walk])) >= 5
    missing = [
        f"{path}::{name}"
        for path, name in steps(sections()[walk])
        if not (PACKAGE / path).is_file()
        or not is_defined(ast.parse((PACKAGE / path).read_text(encoding="utf-8")), name)
    ]
    assert not missing


@pytest.mark.parametrize("walk", LONGEST)
def test_walks_are_short(walk):
    assert len({path for path, _ in steps(sections()[walk])}) <= LONGEST[walk]


def test_every_row_of_a_walk_is_a_step():
    for walk in LONGEST:
        rows = [line for line in sections()[walk].splitlines() if line.startswith("| `")]
        assert len(rows) == len(steps(sections()[walk]))


def test_rooms_are_those_of_the_package():
    named = re.findall(r"^\| [\w ]+ \| `(\w+)` \|", sections()["Rooms"], flags=re.MULTILINE)
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert len(named) == len(set(named))
    assert set(named) == modules | packages
