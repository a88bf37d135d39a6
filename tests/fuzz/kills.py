"""Kills trainings, experiments and saves at random moments and starts them again: the results are the same bits.

    python tests/fuzz/kills.py --kills 100

Each kind of job first runs undisturbed. Then it runs in another directory and is killed (SIGKILL) at a random moment
of the time that it took, started again in the same directory, and so on; each time that it gets to its end, its results
are compared with the undisturbed ones, byte by byte, and it starts afresh. Jobs are forked before JAX has started.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import numpy as np

import ggpi
from ggpi.cli.main import main as command
from ggpi.ghm.vae import VAEConfig
from ggpi.lab.pretraining import train
from ggpi.learning.fitting import fit as fit_models
from ggpi.learning.log import TrainingLog
from ggpi.learning.recipe import ModelConfig
from ggpi.policies.linear import linear_policy
from ggpi.storage import arrays as io

SAVES = 60


def save(out: Path) -> None:
    """Saves of different sizes, each over the one before; the one that is there is saved again, and then the others."""
    try:
        arrays, about = io.load_arrays(out)
        assert arrays["values"].tolist() == [about["number"]] * (1000 + about["number"])
        done = about["number"]
    except FileNotFoundError:
        done = 0
    for number in range(done, SAVES):
        io.save_arrays(out, {"values": np.full(1000 + number, number)}, {"number": number})


def fit(out: Path, model: ModelConfig, steps: int) -> None:
    """A small fit that writes a checkpoint after every chunk."""
    TrainingLog.EVERY = 0.0
    rng = np.random.default_rng(0)
    episode, step = (part.ravel() for part in np.indices((20, 20)))
    state, action = rng.normal(size=(2, 400, 1)).astype(np.float32)
    ends = step == 19
    data = ggpi.Transitions(state, action, state + action, ends & False, ends, 0 * step, episode, step)
    policies = [linear_policy([[0.0]], push, 0.1, f"push {push}") for push in (-0.5, 0.5)]
    key = jax.random.key(0)
    numbers = {"model": model, "steps": steps, "batch_size": 16}
    fit_models(policies, data, gamma=0.9, alpha=0.5, key=key, out=out, **numbers)


def pretrain(out: Path) -> None:
    """A small pretraining that writes a checkpoint after every round."""
    config = train.preset("tiny", "ppo")
    train.pretrain(dataclasses.replace(config, rounds=12, save_every=1, num_threads=1), out)


def run(out: Path) -> None:
    """An experiment of several cells."""
    assert command(["run", "counterexamples", "--preset", "tiny", "--out", str(out)]) == 0


def saved(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def fitted(out: Path) -> Any:
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return saved(out / "models"), [{**line, "steps_per_second": 0} for line in lines]


def pretrained(out: Path) -> Any:
    return saved(out / "policies"), (out / "training.json").read_bytes()


def shown(out: Path) -> Any:
    return {name: (out / name).read_bytes() for name in ("metrics.json", "figure.png")}


JOBS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "save": (save, saved),
    "run": (run, shown),
    "fit": (partial(fit, model=VAEConfig(width=4, depth=1), steps=3000), fitted),
    "flow": (partial(fit, model=ggpi.FlowMatchingConfig(width=4, depth=1), steps=2000), fitted),
    "pretrain": (pretrain, pretrained),
}


def start(job: Callable[[Path], None], out: Path) -> int:
    """The pid of a process that does the job."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    code = 1
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            sys.stderr = nowhere
            job(out)
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def ended(pid: int, seconds: float | None = None) -> int | None:
    """The exit code, or None if the process is still there after so many seconds."""
    until = time.monotonic() + (float("inf") if seconds is None else seconds)
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.001)


@dataclass
class Trials:
    """The kills of one kind of job."""

    name: str
    folder: Path
    rng: np.random.Generator
    kills: int = 0
    ends: int = 0

    def __post_init__(self):
        self.job, self.results = JOBS[self.name]
        self.finish(self.folder / "warm")  # fills the compilation cache
        begin = time.monotonic()
        self.finish(self.folder / "undisturbed")
        self.seconds = time.monotonic() - begin
        self.expected = self.results(self.folder / "undisturbed")
        assert self.expected == self.results(self.folder / "warm"), f"{self.name} is not deterministic"

    def finish(self, out: Path) -> None:
        code = ended(start(self.job, out))
        if code != 0:
            raise SystemExit(f"{self.name} in {out} ended with code {code} after {self.kills} kills")

    def run(self, number: int, until: float) -> None:
        """Kills so often, or until the time is up; then lets the last one get to its end."""
        while True:
            out = self.folder / f"killed-{self.ends}"
            while self.kills < number and time.monotonic() < until:
                pid = start(self.job, out)
                code = ended(pid, self.rng.uniform(0, self.seconds))
                if code is None:
                    os.kill(pid, signal.SIGKILL)
                    code = ended(pid)
                if code == 0:
                    break
                if code != -signal.SIGKILL:
                    raise SystemExit(f"{self.name} in {out} ended with code {code} after {self.kills} kills")
                self.kills += 1
            self.finish(out)  # which does nothing if it has got there
            self.compare(out)
            self.ends += 1
            if self.kills >= number or time.monotonic() >= until:
                return

    def compare(self, out: Path) -> None:
        if self.results(out) != self.expected:
            raise SystemExit(f"{self.name}: {out} differs from {self.folder / 'undisturbed'}")
        if left := list(out.rglob(".*")):
            raise SystemExit(f"{self.name}: {left} was left behind")


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns the exit code."""
    parser = argparse.ArgumentParser(description="Kills at random moments.")
    parser.add_argument("--kills", type=int, default=100, help="how many in all (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="kill no more after this time")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    options, _ = parser.parse_known_args(arguments)
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="ggpi-kills-"))
    if not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
    for i, name in enumerate(options.jobs):
        if time.monotonic() - begin > options.seconds:
            print(f"{name:8}  no time left")
            continue
        trials = Trials(name, folder / name, np.random.default_rng([options.seed, i]))
        until = begin + options.seconds * (i + 1) / len(options.jobs)
        trials.run(options.kills // len(options.jobs), until)
        print(f"{name:8}  {trials.kills} kills, {trials.ends} runs to the end, all the same bits", flush=True)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
