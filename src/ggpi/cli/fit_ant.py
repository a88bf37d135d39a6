"""`ggpi fit ant`: the ant's models, and how they compare with simulation."""

import math
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from ggpi.cli import loss_curves
from ggpi.cli.fit_recipe import note_on_rates
from ggpi.cli.verdict_table import verdict_table
from ggpi.diagnosis.verdict import judge
from ggpi.envs.ant import SPEC
from ggpi.lab.ant import episodes as ant
from ggpi.lab.ant.calibration import calibration, calibration_table, ratios
from ggpi.lab.ant.models import FITS as FITS
from ggpi.lab.ant.models import TOWARDS_X, AnyFit, WalkConfig, fit_models, train_models
from ggpi.lab.fit_directory import World, claim, record
from ggpi.learning.event_file import TensorBoard
from ggpi.learning.log import Callback
from ggpi.storage.arrays import write_json
from ggpi.storage.locking import sole_writer
from ggpi.storage.pretrained import pretrained
from ggpi.switching import beta_of


def fit_ant(config: AnyFit, out: Path, tensorboard: bool = False) -> tuple[RenderableType, str]:
    """Learns the models and keeps them in `out`; how they are calibrated, and what to do next."""
    relative = tuple(SPEC.names[i] for i in SPEC.relative)
    world = World("ggpi/SparseAnt-v0", SPEC.names, relative, (), {"target": None}, "8 numbers")
    fields = asdict(config)
    settings = fields | fields.pop("recipe")
    with sole_writer(out, "ggpi fit ant"):
        has_more_steps = claim(out, world, settings)
        with _drawing(config, out) as draw:
            obtain = train_models if has_more_steps else fit_models
            ghms = obtain(config, out, [draw, TensorBoard()] if tensorboard else [draw])
        record(out, world, settings)
    files = f"models: {out / 'models'}\nlosses: {_folder(config, out) / 'losses.png'}"
    words = f"{files}\nnext:   ggpi play {out} --reward target:x=2,y=2,radius=.3 --depth 2"
    words += note_on_rates(config.recipe, has_more_steps)
    found = calibration(ghms)
    numbers = judged(found)
    write_json(out / "verdict.json", numbers)
    return Group(calibration_table(ratios(found)), verdict_table(numbers)), words


def _drawing(config: AnyFit, out: Path) -> AbstractContextManager[Callback]:
    """Draws the losses of all models, or those of the one network."""
    names = [policy.name for policy in pretrained("ant-policies")]
    horizons = ant.GAMMA, beta_of(ant.GAMMA, ant.ALPHA)
    if isinstance(config, WalkConfig):
        return loss_curves.drawing(_folder(config, out), names[:1], horizons[:1], len(SPEC.names), None)
    return loss_curves.drawing(out, names, horizons, len(SPEC.names))


def _folder(config: AnyFit, out: Path) -> Path:
    """Where the training writes its losses."""
    return out / TOWARDS_X if isinstance(config, WalkConfig) else out


def judged(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The verdict on each model from its calibration: place and width of where the ant goes."""
    numbers: dict[str, dict[str, Any]] = {}
    for horizon, rows in found.items():
        for row in rows:
            ratios = [row["model"][name] / row["true"][name] for name in ("within_along", "within_across")]
            about = {"energy": row["energy"], "dimensions": 2, "spread_ratio": math.sqrt(math.prod(ratios))}
            numbers.setdefault(row["policy"], {})[horizon] = about | judge(about)
    return numbers
