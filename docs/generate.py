"""Generated pages: `python docs/generate.py` writes the equation index and the API reference, and fills in results.

The first two go to `docs/reference/`, a page to play with to `docs/play/` (see `build_twin.py`); neither is committed.
The catalogue of the paper, the `Paper:` lines of docstrings and the contents page of the package are the only sources
of the former. Measured numbers on the other pages come from `docs/results/` (see `fill_results.py`).
"""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from build_twin import build
from fill_results import fill

import ggpi
from ggpi.cli import equations
from ggpi.studio import frames, protocol

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
MODULES = ("rewards", "envs", "data", "policies", "ghm", "diagnosis")
"""Packages whose public names stand beside those of `ggpi` itself."""


def equation_index() -> str:
    """Every numbered item of the paper: what it is, and where it went."""
    tagged = [definition for definition in equations.definitions() if definition.ids]
    lines = [
        "# Equation index",
        "",
        "Every numbered item of the paper, in order, and where it is in code, tests and experiments. This page is",
        "generated from `src/ggpi/equations.toml` and the `Paper:` lines of docstrings; `ggpi eq 3.2` prints the same",
        "with line numbers.",
        "",
        "| item | what it is | in code | tests and experiments |",
        "|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_row(item, tagged) for item in equations.catalogue())]) + "\n"


def _row(item: dict, tagged: list[equations.Tagged]) -> str:
    names = [place.name for place in tagged if item["id"] in place.ids]
    code = [f"`{name}`" for name in names if name.rpartition(".")[0] not in names]
    seen = [f"`{path}`" for path in item.get("tests", [])]
    if "experiment" in item:
        seen.append(f"[ggpi run {item['experiment']}](../experiments.md#{item['experiment']})")
    if "why_not" in item:
        seen.append(f"not in code: {item['why_not']}")
    cells = [item["id"], item["title"], "<br>".join(code), "<br>".join(seen)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def api_reference() -> str:
    """All public names of `ggpi` in the paper's order, then those of its packages."""
    lines = [
        "# API reference",
        "",
        "The public names of `ggpi`, in the paper's order. A docstring that ends with `Paper:` names the item of the",
        "paper that it implements.",
        "",
    ]
    for heading, names in sections():
        lines += [f"## {heading}", ""]
        for name in names:
            lines += _entry(f"ggpi.{name}", getattr(ggpi, name))
    shown = {id(getattr(ggpi, name)) for _, names in sections() for name in names}
    for name in MODULES:
        module = importlib.import_module(f"ggpi.{name}")
        lines += [f"## ggpi.{name}", "", *_first_line(module), ""]
        for member in public_names(module):
            if id(value := getattr(module, member)) not in shown:
                shown.add(id(value))
                lines += _entry(f"ggpi.{name}.{member}", value)
    return "\n".join(lines) + "\n"


def studio_protocol() -> str:
    """Every message and frame of the studio, field by field."""
    lines = [
        "# The studio's protocol",
        "",
        f"Version {protocol.VERSION}. A WebSocket at `/ws?token=…` carries JSON text in both directions and, from the",
        "server, binary frames: the length of a JSON header in four bytes (little endian), the header with spaces up",
        'to a multiple of four bytes, and the arrays that `header["arrays"]` names with their shapes, as float32.',
        f"Every message and frame has a `type`; messages have at most {protocol.LARGEST:,} bytes. `plans[].value` is a",
        "field of each object in the list `plans`.",
        "",
        frames.tables(),
    ]
    return "\n".join(lines)


def sections() -> Iterator[tuple[str, list[str]]]:
    """The contents page of `ggpi`: the comments in its list of names are headings."""
    source = Path(ggpi.__file__).read_text(encoding="utf-8")
    listed = source.split("_NAMES = {")[1].split("\n}")[0]
    for part in re.split(r"^    # ", listed, flags=re.MULTILINE)[1:]:
        heading, _, rows = part.partition("\n")
        yield heading, re.findall(r'^    "(\w+)":', rows, flags=re.MULTILINE)


def public_names(module: ModuleType) -> list[str]:
    """What a package lists, or what a module defines itself: functions and classes."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [name for name, value in own.items() if getattr(value, "__module__", "") == module.__name__]


def _first_line(module: ModuleType) -> list[str]:
    return (module.__doc__ or "").strip().splitlines()[:1]


def _entry(name: str, value: object) -> list[str]:
    """A directive for mkdocstrings, which reads the source where the object is defined."""
    if not callable(value):
        return []
    path = f"{value.__module__}.{getattr(value, '__qualname__', name)}"
    return [f"::: {path}", "    options:", f"      heading: {name}", f"      toc_label: {name}", ""]


def main() -> None:
    build()
    REFERENCE.mkdir(exist_ok=True)
    pages = {"equations.md": equation_index(), "api.md": api_reference(), "studio.md": studio_protocol()}
    for name, text in pages.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    for page in (DOCS.parent / "README.md", *DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if text != fill(text):
            page.write_text(fill(text), encoding="utf-8")


if __name__ == "__main__":
    main()
