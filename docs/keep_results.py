"""`python docs/keep_results.py DIR NAME [OPTION ...]` keeps the tables of a run as `docs/results/NAME.json`.

DIR was written by `ggpi run`; the tables are those that it printed, rendered from `DIR/metrics.json`. NAME is the
experiment, with a suffix for a variant: `keep_results.py results/x ghm-losses-ant --worlds ant` records that the run
had the option `--worlds ant`. `python docs/generate.py` then fills the pages.
"""

import datetime
import json
import sys
from pathlib import Path
from typing import Any

from fill_results import RESULTS
from rich.table import Table
from rich.text import Text

from ggpi.lab import contract


def keep(directory: Path, name: str, options: list[str]) -> dict[str, Any]:
    """Writes the summary of a finished run and returns it."""
    about, metrics = contract.read_results(directory)
    tables = contract.experiment(about["experiment"]).table(metrics)
    day = datetime.date.fromtimestamp((directory / "metrics.json").stat().st_mtime)
    seeds = {name: value for name, value in about["config"].items() if "seed" in name}
    found = {
        "command": " ".join(["ggpi run", about["experiment"], *options]),
        "preset": about["preset"],
        "seeds": seeds,
        "source": f"run of {day}, ggpi {about['versions']['ggpi']}, jax {about['versions']['jax']}",
        "code": about["code"],
        "seconds": about["seconds"],
        "tables": [_plain(table) for table in (tables if isinstance(tables, list) else [tables])],
    }
    (RESULTS / f"{name}.json").write_text(dumps(found), encoding="utf-8")
    return found


def dumps(found: dict[str, Any]) -> str:
    """JSON in which every row of a table is one line."""
    rows = [row for table in found["tables"] for row in table["rows"]]
    marks = iter(range(len(rows)))
    tables = [table | {"rows": [f"row {next(marks)}" for _ in table["rows"]]} for table in found["tables"]]
    text = json.dumps(found | {"tables": tables}, indent=1, ensure_ascii=False)
    for mark, row in enumerate(rows):
        text = text.replace(f'"row {mark}"', json.dumps(row, ensure_ascii=False))
    return text + "\n"


def _plain(table: Table) -> dict[str, Any]:
    """Title, caption, columns and rows of a table, without colours and bars."""
    cells = [[_words(cell) for cell in column.cells] for column in table.columns]
    return {
        "title": _words(table.title),
        "caption": _words(table.caption),
        "columns": [_words(column.header) for column in table.columns],
        "rows": [list(row) for row in zip(*cells, strict=True)],
    }


def _words(text: Any) -> str:
    plain = text if isinstance(text, Text) else Text.from_markup(str(text or ""))
    return " ".join(plain.plain.replace("█", "").split())


if __name__ == "__main__":
    directory, name, *options = sys.argv[1:]
    found = keep(Path(directory), name, options)
    print(f"docs/results/{name}.json: {sum(len(table['rows']) for table in found['tables'])} rows")
