"""`ggpi fit ant`: the ant's models, and how they compare with simulation."""

import math
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
from ggpi.lab.ant.models import FitConfig, learn, train
from ggpi.lab.fit_directory import World, claim, record
from ggpi.learning.event_file import TensorBoard
from ggpi.storage.arrays import write_json
from ggpi.storage.locking import sole_writer
from ggpi.storage.pretrained import pretrained
from ggpi.switching import beta_of


def fit_ant(config: FitConfig, out: Path, tensorboard: bool = False) -> tuple[RenderableType, str]:
    """Learns the models and keeps them in `out`; how they are calibrated, and what to do next."""
    relative = tuple(SPEC.names[i] for i in SPEC.relative)
    world = World("ggpi/SparseAnt-v0", SPEC.names, relative, (), {"target": None}, "8 numbers")
    settings = {"seed": config.seed, "num_transitions": config.num_transitions, **asdict(config.recipe)}
    with sole_writer(out, "ggpi fit ant"):
        has_more_steps = claim(out, world, settings)
        policies = pretrained("ant-policies")
        names = [policy.name for policy in policies]
        horizons = ant.GAMMA, beta_of(ant.GAMMA, ant.ALPHA)
        with loss_curves.drawing(out, names, horizons, len(SPEC.names)) as draw:
            given = config, policies, ant.GAMMA, ant.ALPHA, out
            obtain = train if has_more_steps else learn
            ghms = obtain(*given, [draw, TensorBoard()] if tensorboard else [draw])
        record(out, world, settings)
    files = f"models: {out / 'models'}\nlosses: {out / 'losses.png'}"
    words = f"{files}\nnext:   ggpi play {out} --reward target:x=2,y=2,radius=.3 --depth 2"
    words += note_on_rates(config.recipe, has_more_steps)
    found = calibration(ghms)
    numbers = judged(found)
    write_json(out / "verdict.json", numbers)
    return Group(calibration_table(ratios(found)), verdict_table(numbers)), words


def judged(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The verdict on each model from its calibration: place and width of where the ant goes."""
    numbers: dict[str, dict[str, Any]] = {}
    for horizon, rows in found.items():
        for row in rows:
            ratios = [row["model"][name] / row["true"][name] for name in ("within_along", "within_across")]
            about = {"energy": row["energy"], "dimensions": 2, "spread_ratio": math.sqrt(math.prod(ratios))}
            numbers.setdefault(row["policy"], {})[horizon] = about | judge(about)
    return numbers
