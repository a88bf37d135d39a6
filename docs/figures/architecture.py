"""`python docs/figures/architecture.py` draws the rooms of docs/architecture.md from the table on that page."""

import re
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
PAGE = HERE.parent / "architecture.md"
COLOURS = ("#F3D9B1", "#CFE3C8", "#BFD7EA", "#D9CFE8", "#E3E3E3")
INK = "#333333"
WIDTH = 10.0


def rooms() -> dict[str, list[tuple[str, str]]]:
    """Band → its rooms with their contents, in the order of the page."""
    bands: dict[str, list[tuple[str, str]]] = {}
    rows = re.findall(r"^\| ([\w ]+) \| `(\w+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for band, room, contents in rows:
        bands.setdefault(band, []).append((room, contents))
    return bands


def draw_band(ax: Axes, top: float, colour: str, band: str, members: list[tuple[str, str]]) -> None:
    """One row of boxes of equal width, with the name of the band on their left."""
    ax.text(-0.15, top - 0.5, band.replace(" ", "\n"), ha="right", va="center", fontsize=10, color=INK)
    width = WIDTH / len(members)
    for i, (room, contents) in enumerate(members):
        left = i * width
        ax.add_patch(
            FancyBboxPatch(
                (left + 0.06, top - 0.92),
                width - 0.12,
                0.84,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=colour,
                edgecolor="none",
            )
        )
        middle = left + width / 2
        ax.text(middle, top - 0.3, room, ha="center", va="center", fontsize=11, weight="bold", color=INK)
        lines = textwrap.fill(contents, int(width * 10))
        ax.text(middle, top - 0.64, lines, ha="center", va="center", fontsize=7.5, color=INK, linespacing=1.3)


def draw() -> plt.Figure:
    """All bands, and an arrow in the direction of imports."""
    bands = rooms()
    canvas, ax = plt.subplots(figsize=(10, 5.2))
    for k, (colour, (band, members)) in enumerate(zip(COLOURS, bands.items(), strict=True)):
        draw_band(ax, len(bands) - k, colour, band, members)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.5}
    ax.annotate("", (WIDTH + 0.25, 0.1), (WIDTH + 0.25, len(bands) - 0.1), arrowprops=arrow)
    ax.text(WIDTH + 0.4, len(bands) / 2, "imports", rotation=270, va="center", fontsize=10, color=INK)
    ax.set(xlim=(-1.3, WIDTH + 0.7), ylim=(0, len(bands)))
    ax.axis("off")
    return canvas


def main() -> None:
    sys.path.insert(0, str(HERE.parent))
    from keep_figure import keep

    with tempfile.TemporaryDirectory() as aside:
        draw().savefig(Path(aside) / "figure.png", dpi=150, bbox_inches="tight")
        print("architecture", keep(Path(aside) / "figure.png", HERE / "architecture.png"), "bytes")


if __name__ == "__main__":
    main()
