"""`losses.png`: the losses of a fit against training steps, of a finished one or so far."""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ggpi.diagnosis.verdict import KNOWING_NOTHING
from ggpi.lab import style
from ggpi.learning.log import Callback, Report
from ggpi.storage.arrays import replacing

EVERY = 30.0
"""Seconds between two drawings while a fit runs."""


@contextlib.contextmanager
def drawing(
    out: Path,
    names: Sequence[str],
    horizons: Sequence[float],
    size: int,
    blank: float | None = KNOWING_NOTHING,
) -> Iterator[Callback]:
    """Yields a callback of `ggpi.fit` that draws `metrics.jsonl` now and then, and draws it once more at the end.

    A fit that is interrupted leaves the picture of what it did. `blank` is what knowing nothing scores; None for losses
    that are no likelihoods.
    """
    drawn = time.monotonic()

    def callback(report: Report) -> None:
        nonlocal drawn
        if time.monotonic() - drawn > EVERY:
            draw(out, names, horizons, size, blank)
            drawn = time.monotonic()

    try:
        yield callback
    finally:
        draw(out, names, horizons, size, blank)


def draw(
    out: Path,
    names: Sequence[str],
    horizons: Sequence[float],
    size: int,
    blank: float | None = KNOWING_NOTHING,
) -> None:
    """Writes `losses.png` beside `metrics.jsonl`, if there is anything to draw."""
    path = out / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if not lines:
        return
    with replacing(out / "losses.png") as aside:
        canvas = picture([json.loads(line) for line in lines], names, horizons, size, blank)
        canvas.savefig(aside, format="png", dpi=150)


def picture(
    rows: Sequence[dict[str, Any]],
    names: Sequence[str],
    horizons: Sequence[float],
    size: int,
    blank: float | None = KNOWING_NOTHING,
) -> Figure:
    """A panel for each horizon, and in it a line for each policy: held out, and faint what it was trained on."""
    steps = [row["step"] for row in rows]
    shape = (len(rows), len(horizons), len(names))
    held_out, loss = (np.reshape([row[name] for row in rows], shape) / size for name in ("held_out", "loss"))
    canvas, axes = style.figure(1, len(horizons), (4, 3), sharey=True)
    for h, (ax, horizon) in enumerate(zip(axes[0], horizons, strict=True)):
        for k, name in enumerate(names):
            colour = style.PALETTE[k % len(style.PALETTE)]
            dashes = ("-", "--", ":")[k // len(style.PALETTE) % 3]
            marker = "o" if len(steps) == 1 else ""
            ax.plot(steps, held_out[:, h, k], dashes, color=colour, marker=marker, label=name)
            ax.plot(steps, loss[:, h, k], color=colour, alpha=0.3, linewidth=0.8)
        if blank is not None:
            ax.axhline(blank, color=style.GREY, linestyle=":", linewidth=1)
        ax.set_title(f"horizon {horizon:g}", fontsize=9, color=style.INK)
        ax.set_xlabel("training step", fontsize=8, color=style.INK)
    if blank is not None:
        axes[0, 0].annotate(
            "mean and spread only",
            (0.99, blank),
            (0, 2),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            fontsize=7,
            color="grey",
        )
    unit = "per coordinate" if blank is None else "nats per coordinate"
    axes[0, 0].set_ylabel(f"held-out loss (faint: training)\n{unit}", fontsize=8, color=style.INK)
    axes[0, -1].legend(fontsize=7, frameon=False)
    return canvas
