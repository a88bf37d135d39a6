"""Trained models in the user's cache folder, one directory per config."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx

from ggpi.ghm.base import GHMs
from ggpi.storage.locking import sole_writer
from ggpi.storage.objects import load

SECONDS = "seconds.json"
"""Of the training, beside the models."""


def kept(config: Any, folder: str) -> Path:
    """The directory of the models of a config."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(json.dumps(dataclasses.asdict(config), sort_keys=True).encode()).hexdigest()[:12]
    return cache / "ggpi" / folder / f"{type(config).__name__}-seed{config.seed}-{digest}"


def trained_once(out: Path, policies: Sequence[Any], train: Callable[[], GHMs]) -> GHMs:
    """The models in `out`, trained now if they are missing; tasks of other processes wait for the one that trains."""
    if found := finished(out, policies):
        return found
    with sole_writer(out, "training models", wait=float("inf")):
        return finished(out, policies) or train()


def seconds_of(out: Path) -> float | None:
    """How long the training of kept models took; None where that was not noted."""
    found = out / SECONDS
    return float(json.loads(found.read_text("utf-8"))["training"]) if found.exists() else None


def finished(out: Path, policies: Sequence[Any]) -> GHMs | None:
    """The models in `out` if their training is finished, None otherwise; models of other policies raise."""
    if not (out / "models" / "about.json").exists():
        return None
    ghms = load(out / "models")
    if not eqx.tree_equal(tuple(ghms.policies), tuple(policies)):
        raise ValueError(
            f"{out} holds models of other policies, perhaps of another version of this library; remove it, and "
            "the models are trained again"
        )
    return ghms
