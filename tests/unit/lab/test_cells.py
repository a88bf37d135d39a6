"""The stamp of stored cells: it changes with the code that the numbers depend on, and with nothing else."""

import ast
import shutil
from pathlib import Path

import pytest

import ggpi
from ggpi.lab import EXPERIMENTS
from ggpi.lab.cells import PACKAGE, code_digest, sources

FILES = {
    "__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop import unrelated",
    "fruit.py": "import shop.tools.knife",
    "tools/__init__.py": "from . import board",
    "tools/board.py": "",
    "tools/knife.py": "def cut():\n    from ..cellar import wine",
    "cellar/__init__.py": "from importlib import import_module\nLAZY = {'wine': 'bottles'}\ndef __getattr__(name):\n"
    "    return import_module(f'shop.cellar.{LAZY[name]}')",
    "cellar/bottles.py": "",
    "cellar/rats.py": "",
    "unrelated.py": "",
    "fruit_figure.py": "from shop import fruit",
}


@pytest.fixture
def shop(tmp_path):
    for name, source in FILES.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "shop"


IMPORTED = [
    "fruit.py",
    "__init__.py",
    "tools/__init__.py",
    "tools/board.py",
    "tools/knife.py",
    "cellar/bottles.py",
]


def test_sources_are_followed(shop):
    found = {path.relative_to(shop).as_posix() for path in sources("shop.fruit", shop).values()}
    assert found == {*IMPORTED, "cellar/__init__.py"}


@pytest.mark.parametrize("name", FILES)
def test_an_edit_counts_where_the_module_is_imported(shop, name):
    """Directly, through other modules, inside a function, relatively, and by a package that imports lazily."""
    before = code_digest("shop.fruit", shop)
    (shop / name).write_text(FILES[name] + "\n# edited")
    changed = code_digest("shop.fruit", shop) != before
    assert changed == (name in [*IMPORTED, "cellar/__init__.py"])


@pytest.fixture
def copy(tmp_path):
    """The library itself, to be edited."""
    shutil.copytree(PACKAGE, tmp_path / "ggpi", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "ggpi"


@pytest.mark.parametrize(
    ("experiment", "edited", "counts"),
    [
        ("chain", "lab/finite/chain.py", True),
        ("chain", "mdp/resolvent.py", True),
        ("chain", "lab/finite/chain_figure.py", False),
        ("chain", "lab/finite/beta_zero.py", False),
        ("chain", "lab/contract.py", False),
        ("chain", "lab/style.py", False),
        ("chain", "learning/fitting.py", False),
        ("chain", "cli/main.py", False),
        ("chain", "storage/weights/ant-policies/training.json", False),
        ("ant-transfer", "envs/ant/dynamics.py", True),
        ("ant-transfer", "learning/losses.py", True),
        ("ant-transfer", "policies/symmetric.py", True),
        ("ant-transfer", "storage/weights/ant-policies/training.json", True),
        ("ant-transfer", "lab/ant/transfer_figure.py", False),
        ("ant-transfer", "lab/finite/chain.py", False),
    ],
)
def test_edits_of_the_library(copy, experiment, edited, counts):
    module = EXPERIMENTS[experiment][0]
    before = code_digest(module, copy)
    with (copy / edited).open("a") as file:
        file.write("\n")
    assert (code_digest(module, copy) != before) == counts


def test_no_module_uses_the_names_of_the_root():
    """`from ggpi import fit` would be imported when it is used, which `sources` does not follow."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "ggpi" and path.parent != PACKAGE:
                assert not {alias.name for alias in node.names} & (set(ggpi.__all__) - set(ggpi._MODULES)), (
                    path
                )


def test_all_that_an_experiment_imports_is_among_its_sources():
    """Compared with the modules that Python has loaded."""
    import subprocess
    import sys

    module = EXPERIMENTS["counterexamples"][0]
    script = f"import sys, {module}; print(*(name for name in sys.modules if name.split('.')[0] == 'ggpi'))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) <= sources(module).keys()


def test_modules_elsewhere(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    assert sources("dummy")["dummy"] == Path(__file__).parent / "dummy.py"
    assert "ggpi.lab.cells" in sources("dummy")
    with pytest.raises(ModuleNotFoundError, match="no module is called nowhere"):
        sources("nowhere")
