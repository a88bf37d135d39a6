"""Measured numbers on the pages: filled in from `docs/results/NAME.json`, never typed by hand.

A page marks a place, and `fill` writes what belongs there:

    <!-- results: NAME -->             all tables of NAME.json, and where they come from
    <!-- results: NAME 2 -->           only its second table
    <!-- cell: NAME | ROW | COLUMN --> one cell, within a sentence

Each place ends at the next `<!-- end -->`. `docs/keep_results.py` writes the summaries.
"""

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PLACE = re.compile(r"(<!-- (results|cell): (.+?) -->).*?(<!-- end -->)", re.DOTALL)
FIELDS = ("command", "preset", "seeds", "source", "seconds", "tables")


def fill(page: str) -> str:
    """The page with every marked place rewritten from its summary."""
    return PLACE.sub(lambda place: place[1] + _content(place[2], place[3]) + place[4], page)


def summary(name: str) -> dict[str, Any]:
    """One summary. Raises `ValueError` if a field is missing or a table is ragged."""
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    missing = [field for field in FIELDS if field not in found]
    if missing:
        raise ValueError(f"{name}.json lacks {missing}")
    for table in found["tables"]:
        if any(len(row) != len(table["columns"]) for row in table["rows"]):
            raise ValueError(f"{name}.json: a row of {table['title']!r} does not fit its columns")
    return found


def _content(kind: str, argument: str) -> str:
    if kind == "cell":
        name, row, column = (part.strip() for part in argument.split("|"))
        return cell(summary(name), row, column)
    name, _, number = argument.partition(" ")
    found = summary(name)
    tables = [found["tables"][int(number) - 1]] if number else found["tables"]
    return "\n\n" + "\n\n".join([*map(markdown, tables), provenance(found)]) + "\n\n"


def cell(found: dict[str, Any], row: str, column: str) -> str:
    """The cell of the first table that has this row and column."""
    for table in found["tables"]:
        for cells in table["rows"]:
            if cells[0] == row and column in table["columns"]:
                return cells[table["columns"].index(column)]
    raise ValueError(f"no table has a row {row!r} and a column {column!r}")


def markdown(table: dict[str, Any]) -> str:
    """A table with its title above it and its caption below."""
    rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    parts = [f"**{_escaped(table['title'])}**", "\n".join(lines), _escaped(table["caption"])]
    return "\n\n".join(filter(None, parts))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def provenance(found: dict[str, Any]) -> str:
    """How the numbers were made."""
    return f"`{found['command']}` · preset `{found['preset']}` · {duration(found['seconds'])} · {found['source']}."


def duration(seconds: float | None) -> str:
    """Seconds below two minutes, minutes above."""
    if seconds is None:
        return "time not recorded"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
