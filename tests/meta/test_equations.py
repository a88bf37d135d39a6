"""The paper's catalogue and the code's tags agree."""

import ast
from pathlib import Path

import pytest

from ggpi.cli import equations
from ggpi.lab import EXPERIMENTS

ROOT = Path(__file__).parents[2]
ITEMS = equations.catalogue()
IDS = [item["id"] for item in ITEMS]
TAGGED = [definition for definition in equations.definitions() if definition.ids]


def public_definitions():
    """Functions and classes at the top of public modules; the command line and the experiments are apart."""
    for path in sorted(equations.PACKAGE.rglob("*.py")):
        parts = path.relative_to(equations.PACKAGE).with_suffix("").parts
        hidden = any(part.startswith("_") and part != "__init__" for part in parts)
        if hidden or parts[0] in ("cli", "lab"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield pytest.param(node, id=".".join([*parts, node.name]))


@pytest.mark.parametrize("node", list(public_definitions()))
def test_public_definitions_have_a_docstring(node):
    assert ast.get_docstring(node)


@pytest.mark.parametrize("item", IDS)
def test_at_most_three_definitions_claim_an_item(item):
    """`ggpi eq` leads to where a reader of the item wants to land."""
    assert len([tagged.name for tagged in TAGGED if item in tagged.ids]) <= 3


@pytest.mark.parametrize("tagged", TAGGED, ids=lambda tagged: tagged.name)
def test_named_items_exist(tagged):
    assert set(tagged.ids) <= set(IDS)


@pytest.mark.parametrize("item", ITEMS, ids=IDS)
def test_item_went_somewhere(item):
    assert item.keys() <= {"id", "title", "tests", "experiment", "why_not"}
    in_code = any(item["id"] in tagged.ids for tagged in TAGGED)
    assert in_code or item.keys() & {"tests", "experiment", "why_not"}
    assert not (in_code and "why_not" in item), "it is in code after all"
    assert item.get("experiment", "chain") in EXPERIMENTS
    assert all((ROOT / path).is_file() for path in item.get("tests", []))


def test_ids_are_unique_and_complete():
    assert len(set(IDS)) == len(IDS)
    assert {f"Eq {n}" for n in range(1, 13)} | {f"Fig {n}" for n in range(1, 20)} <= set(IDS)


def test_the_docs_show_the_same_catalogue():
    shown = ROOT / "docs" / "equations.toml"
    assert shown.resolve() == equations.PACKAGE.resolve() / "cli" / "equations.toml"
