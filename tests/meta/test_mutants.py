"""The lists of mutants fit the sources and the tests as they are; `make mutants` tries them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from mutants.run import load

ROOT = Path(__file__).parents[2]
MUTANTS = load()


def problem(mutant):
    """What is wrong with an entry, in words."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        return f"{mutant.old!r} occurs {source.count(mutant.old)} times in {mutant.file}"
    if mutant.new == mutant.old or not mutant.what or not mutant.tests:
        return "it changes nothing, or says nothing, or names no tests"
    compile(source.replace(mutant.old, mutant.new), f"{mutant.id} of {mutant.file}", "exec")
    for test in mutant.tests:
        file, *names = re.sub(r"\[.*\]$", "", test).split("::")
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
        if not text or not all(re.search(rf"^\s*(def|class) {name}\b", text, re.MULTILINE) for name in names):
            return f"{test} does not exist"
    return None


def test_ids_are_unique():
    assert not [i for i, count in Counter(mutant.id for mutant in MUTANTS).items() if count > 1]


@pytest.mark.parametrize("area", sorted({mutant.area for mutant in MUTANTS}))
def test_every_mutant_changes_one_place_and_names_tests(area):
    found = {mutant.id: problem(mutant) for mutant in MUTANTS if mutant.area == area}
    assert not {i: said for i, said in found.items() if said}
