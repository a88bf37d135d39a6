"""`python docs/figures/maze_strip.py` joins maps of OGBench's mazes, as `keep_figure.py` kept them, into one strip."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HERE = Path(__file__).parent
MAZES = {
    "ogbench-mazes-medium": "pointmaze-medium",
    "ogbench-mazes": "pointmaze-giant",
    "ogbench-mazes-teleport": "pointmaze-teleport",
    "ogbench-mazes-antmaze-large": "antmaze-large",
}
"""Figures, and the mazes that they are of."""
HEIGHT, TITLE, GAP = 230, 22, 14
"""Pixels of a map, of the line above it, and between two."""
TINT = 32
"""Walls are grey; the 256 colours of a kept figure tint them a little."""


def map_of(figure: Image.Image) -> Image.Image:
    """The map in the right part of a figure: the columns and rows around which walls are drawn without a break."""
    pixels = np.asarray(figure.convert("RGB")).astype(int)
    right = pixels.shape[1] * 46 // 100
    inked = (pixels[:, right:] < 250).any(axis=2)
    columns = np.flatnonzero(inked.mean(axis=0) > 0.5) + right
    rows = np.flatnonzero(inked.mean(axis=1) > 0.5)
    pixels = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    tinted = np.ptp(pixels, axis=2, keepdims=True) < TINT
    return Image.fromarray(np.where(tinted, pixels.mean(axis=2, keepdims=True), pixels).astype(np.uint8))


def strip() -> Image.Image:
    """The maps side by side, at one height, each below the name of its maze."""
    maps = [map_of(Image.open(HERE / f"{name}.png")) for name in MAZES]
    maps = [one.resize((one.width * HEIGHT // one.height, HEIGHT), Image.Resampling.LANCZOS) for one in maps]
    canvas = Image.new("RGB", (sum(one.width + GAP for one in maps) - GAP, HEIGHT + TITLE), "white")
    draw, left = ImageDraw.Draw(canvas), 0
    for one, name in zip(maps, MAZES.values(), strict=True):
        draw.text((left + one.width // 2, TITLE // 2), name, fill="black", anchor="mm", font_size=15)
        canvas.paste(one, (left, TITLE))
        left += one.width + GAP
    return canvas


if __name__ == "__main__":
    strip().save(HERE / "ogbench-strip.webp", quality=90, method=6)
