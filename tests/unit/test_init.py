"""The lazy table of public names and what type checkers see are the same."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import ggpi


def seen_by_type_checkers() -> dict[str, str]:
    """Name → module, from the imports under TYPE_CHECKING."""
    tree = ast.parse(Path(ggpi.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    found = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in found for alias in node.names}


def test_type_checkers_see_the_public_names():
    seen = seen_by_type_checkers()
    assert sorted(seen) == sorted(ggpi.__all__)


@pytest.mark.parametrize(("name", "module"), seen_by_type_checkers().items())
def test_a_public_name_is_the_object_that_type_checkers_see(name, module):
    assert getattr(ggpi, name) is getattr(import_module(module), name)
