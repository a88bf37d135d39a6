"""Texts are in plain English: none of the phrases of `plain_english.py`. Add paths to TEXTS to check more."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "mkdocs.yml")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "reference"),
    *sorted((ROOT / "docs").rglob("*.py")),
    *sorted((ROOT / "docs" / "results").glob("*.json")),
]


found = runpy.run_path(str(Path(__file__).with_name("plain_english.py")))["found"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_texts_are_in_plain_english(path):
    assert not list(found(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "The numbers of\nthe state",
        "a set without its suffixes is refused",
        "a run that was stopped goes on",
        "hold saved models against true futures",
        "half of its samples are no states of a pendulum",
        "more slowly, for it bootstraps",
        "steps=100)  # take 10_000",
    ],
)
def test_phrases_are_found(text):
    assert list(found(text))


@pytest.mark.parametrize(
    "text",
    [
        "There is no new model.",
        "a reward for it",
        "the model is sampled",
        "it is no longer needed",
        "going on foot",
    ],
)
def test_plain_text_passes(text):
    assert not list(found(text))


def test_the_line_of_a_phrase_is_reported():
    assert next(found("one\ntwo\nalas three")) == "3: 'alas'"
