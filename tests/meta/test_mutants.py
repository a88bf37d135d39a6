"""The lists of mutants fit the sources and the tests as they are; `make mutants` tries them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from mutants.run import load

ROOT = Path(__file__).parents[2]


MUTANTS = load()


def test_ids_are_unique():
    repeated = [i for i, count in Counter(mutant.id for mutant in MUTANTS).items() if count > 1]
    assert not repeated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_changes_one_place_and_names_tests(mutant):
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"{mutant.old!r} has to occur once in {mutant.file}"
    assert mutant.new != mutant.old and mutant.what
    compile(source.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        file, *names = re.sub(r"\[.*\]$", "", test).split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        for name in names:
            assert re.search(rf"^\s*(def|class) {name}\b", text, flags=re.MULTILINE), f"{test} does not exist"
