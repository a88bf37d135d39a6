"""What a training writes to its directory: metrics as it goes, and checkpoints to resume from.

OUT/metrics.jsonl    a line per chunk: step, loss and held-out score of each model, steps per second
OUT/checkpoint/      weights, slow copy and moments of the last checkpoint, written atomically
OUT/models/          the finished models, as `ggpi.save` writes them
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, PyTree

from ggpi.ghm.abstract import AbstractGHM
from ggpi.storage.arrays import load_arrays, save_arrays, sweep, to_json, write_text
from ggpi.storage.errors import FileError
from ggpi.storage.reading import parse_json, read_text, short
from ggpi.storage.verify import fits, matching

State = TypeVar("State")


class Report(NamedTuple):
    """What callbacks of a training receive, before the first chunk and after every chunk."""

    step: int
    """Steps so far."""
    models: AbstractGHM
    """The stacked models, horizon by horizon. Copy what you keep: the next chunk overwrites their arrays."""
    labels: tuple[str, ...]
    """Policy and horizon of each model; "next state" for that of horizon 0, which is trained last."""
    loss: Float[np.ndarray, "M"] | None
    """The mean loss of each model over the chunk; None before the first one."""
    held_out: Float[np.ndarray, "M"] | None
    """The loss of each model on held-out data; None before the first chunk."""
    rate: float
    """Steps per second."""
    directory: Path | None
    """Where this training writes to."""


Callback = Callable[[Report], None]


class TrainingLog:
    """Metrics and checkpoints in a directory; without one nothing is written."""

    EVERY = 20.0
    """Seconds between checkpoints."""

    def __init__(self, directory: Path | None, fingerprint: str):
        self.directory, self.fingerprint = directory, fingerprint
        self.written, self.last_step = time.monotonic(), 0
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
            sweep(directory)

    def resume(self, initial: State, steps: int) -> tuple[State, int]:
        """The state to start from, and how many of the `steps` were taken before it."""
        if not self.directory or not (self.directory / "checkpoint" / "about.json").exists():
            self._forget_metrics_after(0)
            return initial, 0
        path = self.directory / "checkpoint"
        arrays, about = load_arrays(path)
        if about.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{self.directory} holds a run with other data, policies or settings; choose another out="
            )
        leaves, structure = jax.tree.flatten(eqx.filter(initial, eqx.is_array))
        step = about.get("step")
        if not isinstance(step, int) or step < 0:
            raise FileError(path, f"expected a number of steps, got {short(step)}", field="step")
        if step > steps:
            raise ValueError(
                f"{self.directory} holds a run of {step} steps, now steps is {steps}; more steps continue it, "
                "for fewer choose another out="
            )
        saved = matching(leaves, [arrays[name] for name in sorted(arrays)], path)
        self.last_step = step
        self._forget_metrics_after(self.last_step)
        return eqx.combine(jax.tree.unflatten(structure, saved), initial), self.last_step

    def checkpoint(self, state: PyTree, step: int, is_last: bool) -> None:
        """Writes the state, unless the last checkpoint is a few seconds old."""
        if not self.directory or (not is_last and time.monotonic() - self.written < self.EVERY):
            return
        leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
        arrays = {f"{i:05d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        save_arrays(self.directory / "checkpoint", arrays, {"fingerprint": self.fingerprint, "step": step})
        self.written, self.last_step = time.monotonic(), step

    def check_finite(self, losses: Float[np.ndarray, "n M"], first: int) -> None:
        """Raises if a loss is not finite; `first` is the number of the first step."""
        bad = np.argwhere(~np.isfinite(losses))
        if len(bad):
            where = (
                f"{self.directory / 'checkpoint'} (step {self.last_step})"
                if self.directory
                else "none (no out=)"
            )
            raise FloatingPointError(
                f"the loss of model {bad[0, 1]} is {losses[tuple(bad[0])]} at step {first + bad[0, 0]}; "
                f"last good checkpoint: {where}. A smaller learning_rate or kl_weight may help"
            )

    def write(
        self, step: int, loss: Float[np.ndarray, "M"], held_out: Float[np.ndarray, "M"], rate: float
    ) -> None:
        """Appends a line to the metrics."""
        if not self.directory:
            return
        row = {"step": step, "loss": loss, "held_out": held_out, "steps_per_second": round(rate, 2)}
        with (self.directory / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(to_json(row).replace("\n", "") + "\n")

    def _forget_metrics_after(self, step: int) -> None:
        path = self.directory / "metrics.jsonl" if self.directory else None
        if path and path.exists():
            lines = read_text(path).splitlines()
            kept = [line for line in lines if line.endswith("}") and _step_of(line, path) <= step]
            write_text(path, "".join(line + "\n" for line in kept))


def _step_of(line: str, path: Path) -> int:
    row = parse_json(line.encode(), path)
    if not isinstance(row, dict) or not fits(row.get("step"), int):
        raise FileError(path, f"expected a number in {short(line)}", field="step")
    return row["step"]
