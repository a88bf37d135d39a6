"""What a training keeps in its directory: metrics as it goes, and checkpoints to go on from.

OUT/metrics.jsonl    a line per chunk: step, loss and held-out score of each model, steps per second
OUT/checkpoint/      weights, slow copy and moments of the last checkpoint, written at one stroke
OUT/models/          the finished models, as `ggpi.save` writes them
OUT/events.out.…     the same metrics for TensorBoard, on demand
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ggpi.learning.event_file import EventFile
from ggpi.storage.arrays import load_arrays, save_arrays, sweep, to_json, write_text
from ggpi.storage.errors import FileError
from ggpi.storage.reading import parse_json, read_text, short
from ggpi.storage.verify import fits, matching


class TrainingLog:
    """Metrics and checkpoints in a directory; nothing without one."""

    EVERY = 20.0
    """Seconds between checkpoints."""

    def __init__(
        self, out: str | Path | None, fingerprint: str, tensorboard: bool, labels: Sequence[str] = ()
    ):
        self.directory = Path(out) if out else None
        self.labels, self.tensorboard, self.events = labels, tensorboard, None
        self.fingerprint, self.written, self.last_step = fingerprint, time.monotonic(), 0
        if tensorboard and not out:
            raise ValueError("tensorboard=True needs out=, the directory where its files go")
        if self.directory:
            self.directory.mkdir(parents=True, exist_ok=True)
            sweep(self.directory)

    def resume(self, initial: Any, steps: int) -> tuple[Any, int]:
        """The state to start from, and how many of the `steps` it has behind it."""
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

    def checkpoint(self, state: Any, step: int, is_last: bool) -> None:
        if not self.directory or (not is_last and time.monotonic() - self.written < self.EVERY):
            return
        leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
        arrays = {f"{i:05d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        save_arrays(self.directory / "checkpoint", arrays, {"fingerprint": self.fingerprint, "step": step})
        self.written, self.last_step = time.monotonic(), step

    def check_finite(self, losses: np.ndarray, first: int) -> None:
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

    def write(self, step: int, loss: np.ndarray, held_out: np.ndarray, rate: float) -> None:
        if not self.directory:
            return
        row = {"step": step, "loss": loss, "held_out": held_out, "steps_per_second": round(rate, 2)}
        with (self.directory / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(to_json(row).replace("\n", "") + "\n")
        if self.tensorboard:
            self.events = self.events or EventFile(self.directory, self.last_step)
            scalars = {"steps_per_second": rate, "loss": loss.mean(), "held_out": held_out.mean()}
            for name, values in (("loss", loss), ("held_out", held_out)):
                scalars |= {f"{name}/{label}": x for label, x in zip(self.labels, values, strict=True)}
            self.events.write(step, {tag: float(value) for tag, value in scalars.items()})

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
