"""The page of deviations stays a table that one can scan."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "deviations.md"
LONGEST = 200


def rows():
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_cells_are_short():
    assert len(list(rows())) > 30
    for row in rows():
        for cell in row:
            assert len(cell) <= LONGEST, f"{len(cell)} characters, move details to the experiment: {cell}"


def test_rows_fit_their_columns():
    counts = [len(row) for row in rows()]
    assert set(counts) <= {2, 4}
