"""`python docs/keep_figure.py DIR NAME` keeps the figure of a run as a small `docs/figures/NAME.png`.

At most 1300 pixels wide and 256 colours; a figure that is still larger than 150 kB is rejected.
"""

import sys
from pathlib import Path

from PIL import Image

FIGURES = Path(__file__).parent / "figures"
LARGEST = 150_000


def keep(source: Path, target: Path) -> int:
    """Writes a smaller copy and returns its bytes."""
    picture = Image.open(source).convert("RGB")
    picture.thumbnail((1300, 4000), Image.Resampling.LANCZOS)
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)
    size = target.stat().st_size
    if size > LARGEST:
        target.unlink()
        raise SystemExit(f"{target.name} would have {size} bytes, the limit is {LARGEST}")
    return size


if __name__ == "__main__":
    directory, name = sys.argv[1:]
    print(keep(Path(directory) / "figure.png", FIGURES / f"{name}.png"), "bytes")
