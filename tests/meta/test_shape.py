"""The tree stays one that a reader can hold in the head: bounds of what `tests/shape.py` counts."""

import ast
from pathlib import Path

import pytest

import shape

TREE = shape.Tree()
UNIT = shape.ROOT / "tests" / "unit"
MOST_SIBLINGS, MOST_LAYERS, MOST_PUBLIC_NAMES, LONGEST_MODULE = 22, 19, 41, 300
"""`planning` is the eighteenth layer; it and `evaluate_closed_loop` are the 36th and 37th public name, `policy_family`
and `distil` the 38th and 39th, `jumpy_graph` the 40th, `cluster` the 41st and the 21st sibling; `studio` is the 22nd
and the nineteenth layer."""
MOST_ANY = 0.05
MOST_ANY_IN_LIBRARY = 0.05
MOST_UNTYPED = 0
MOST_TWINS = 7
LONG_MODULES: set[str] = set()
STRAYS: set[str] = set()
LARGE = {
    "cli/play.py:add_options": "one line for each option of a command",
    "diagnosis/comparison.py:compare": "one argument for each thing that episodes depend on, and where they run",
    "diagnosis/report.py:diagnose": "one argument for each thing that models are compared with",
    "improvement.py:policy_iteration": "keyword shortcuts of the README",
    "improvement.py:policy_iteration_sampled": "keyword shortcuts of the README",
    "rollout/collection.py:collect": "one argument for each thing that data depend on, and where they go",
    "learning/fitting.py:fit": "keyword shortcuts of the README",
}
"""Functions that may be large, and why."""


def test_few_siblings():
    assert len(TREE.siblings) <= MOST_SIBLINGS, TREE.siblings


def test_few_layers():
    assert len(TREE.layers) <= MOST_LAYERS, TREE.layers


def test_few_public_names():
    assert len(TREE.public_names) <= MOST_PUBLIC_NAMES, TREE.public_names


def test_modules_read_in_one_sitting():
    long = {module: count for module, count in TREE.lines.items() if count > LONGEST_MODULE}
    assert long.keys() <= LONG_MODULES, long


def test_functions_fit_a_screen():
    assert TREE.large.keys() <= LARGE.keys(), TREE.large


@pytest.mark.parametrize(
    ("functions", "most"),
    [
        pytest.param(TREE.functions, MOST_ANY, id="all"),
        pytest.param(TREE.library, MOST_ANY_IN_LIBRARY, id="library"),
    ],
)
def test_any_is_rare(functions, most):
    count, annotated = shape.share_of_any(functions)
    places = [f"{one.place}({', '.join(one.any_typed)})" for one in functions if one.any_typed]
    assert count <= most * annotated, "\n".join([f"{count} of {annotated}", *places])


def test_public_parameters_are_annotated():
    missing = shape.untyped(TREE.functions)
    assert len(missing) <= MOST_UNTYPED, "\n".join([str(len(missing)), *missing])


def test_functions_are_not_copies_of_each_other():
    assert len(TREE.twins) <= MOST_TWINS, TREE.twins


def test_unit_tests_mirror_the_package():
    strays = {path.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py") if not mirrors(path)}
    assert strays <= STRAYS


def mirrors(test: Path) -> bool:
    """Whether a file of tests is in the directory of a room, or named for a module of the package."""
    *rooms, _ = test.relative_to(UNIT).parts
    if rooms:
        return (TREE.package.joinpath(*rooms) / "__init__.py").exists()
    words = test.stem.removeprefix("test_").split("_")
    names = {"_".join(words[:count]) for count in range(1, len(words) + 1)}
    return bool(names & {*TREE.siblings, "init"})


SAMPLE = '''
class Public:
    def method(self, one: int, two: list[Any], *three, four=1) -> Any:
        """Words."""
        first = 1

        return first

    def __call__(self, x): ...

    def _private(self, x): ...

def outer(x: float):
    def inner(y): ...
    return inner
'''


def test_counts_of_a_sample():
    functions = [shape.Function("sample.py", *found) for found in shape.definitions(ast.parse(SAMPLE))]
    assert [one.name for one in functions] == [
        "Public.method",
        "Public.__call__",
        "Public._private",
        "outer",
        "outer.inner",
    ]
    method = functions[0]
    assert [parameter.arg for parameter in method.parameters] == ["one", "two", "four", "three"]
    assert method.body_lines == 3
    assert shape.share_of_any(functions) == (1, 3)
    assert shape.untyped(functions) == [
        "sample.py:Public.method(four)",
        "sample.py:Public.method(three)",
        "sample.py:Public.__call__(x)",
    ]


def test_shape_ignores_names_and_constants():
    same, other = "def f(a):\n    return a + 1", "def g(b):\n    return b - 1"
    assert shape.shape(ast.parse(same)) == shape.shape(ast.parse("def h(c):\n    return c + 2"))
    assert shape.shape(ast.parse(same)) != shape.shape(ast.parse(other))
