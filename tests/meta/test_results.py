"""Measured numbers on the pages are those of `docs/results/`, and every figure of an experiment has a summary."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ggpi.lab import EXPERIMENTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SUMMARIES = sorted((DOCS / "results").glob("*.json"))
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "reference"),
]


def script(name):
    """A script of docs/, imported as a module."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


fill_results = script("fill_results")


def text(page):
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_agree_with_the_summaries(page):
    assert text(page) == fill_results.fill(text(page)), "run: python docs/generate.py"


def test_every_summary_is_shown_and_complete():
    marked = {name for page in PAGES for name in re.findall(r"<!-- (?:results|cell): ([\w-]+)", text(page))}
    assert marked == {path.stem for path in SUMMARIES}
    for path in SUMMARIES:
        assert fill_results.summary(path.stem)["tables"], path.name


def test_every_experiment_and_its_figures_have_results():
    page = text(DOCS / "experiments.md")
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", page, flags=re.DOTALL | re.MULTILINE))
    for name in EXPERIMENTS:
        figures = re.findall(r"\]\(figures/([\w-]+)\.png\)", sections[name])
        shown = re.findall(r"<!-- results: ([\w-]+)", sections[name])
        assert set(shown) >= {name, *figures}, name


def test_commands_of_summaries_name_their_experiment():
    for path in SUMMARIES:
        command = json.loads(text(path))["command"].split()
        if command[:2] == ["ggpi", "run"]:
            assert command[2] in EXPERIMENTS and path.stem.startswith(command[2])


def test_a_place_is_rewritten_whatever_stands_in_it():
    page = "a <!-- cell: four-rooms-transfer | 2 | GSPs -->7<!-- end --> b\n<!-- results: chain 2 -->old<!-- end -->\n"
    filled = fill_results.fill(page)
    assert filled.startswith("a <!-- cell: four-rooms-transfer | 2 | GSPs -->16<!-- end --> b\n")
    assert "old" not in filled and "| k |" in filled
    assert fill_results.fill(filled) == filled


def test_unknown_names_raise():
    with pytest.raises(FileNotFoundError):
        fill_results.fill("<!-- results: nothing --><!-- end -->")
    with pytest.raises(ValueError, match="no table has a row"):
        fill_results.fill("<!-- cell: chain | 99 | GGPI --><!-- end -->")


def test_a_run_is_kept_as_it_was_measured(tmp_path, monkeypatch):
    run = ["run", "four-rooms-transfer", "--preset", "tiny", "--out", str(tmp_path / "run")]
    subprocess.run([sys.executable, "-m", "ggpi", *run], check=True, capture_output=True)
    keep_results = script("keep_results")
    monkeypatch.setattr(keep_results, "RESULTS", tmp_path)
    monkeypatch.setattr(fill_results, "RESULTS", tmp_path)
    keep_results.keep(tmp_path / "run", "kept", ["--seed", "0"])

    metrics = json.loads(text(tmp_path / "run" / "metrics.json"))
    solved = [
        row["optimal"] for world in metrics["worlds"] for row in (*world["depths"], world["closed_loop"])
    ]
    kept = fill_results.summary("kept")
    assert kept["command"] == "ggpi run four-rooms-transfer --seed 0"
    assert (kept["preset"], kept["seeds"]) == ("tiny", {"seed": 0})
    column = kept["tables"][0]["columns"].index(f"optimal, of {metrics['num_states']} states")
    assert [int(row[column]) for table in kept["tables"] for row in table["rows"]] == solved
