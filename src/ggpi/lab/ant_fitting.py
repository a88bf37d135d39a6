"""`ggpi fit ant`: the ant's models, held against simulation."""

from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from ggpi.envs.ant import SPEC
from ggpi.lab.ant_calibration import calibration, calibration_table, ratios
from ggpi.lab.ant_models import FitConfig, fit_models
from ggpi.lab.world_file import World, claim
from ggpi.locking import sole_writer


def fit_ant(config: FitConfig, out: Path) -> tuple[Table, str]:
    """Learns the models and keeps them in `out`; how they are calibrated, and what to do next."""
    relative = tuple(SPEC.names[i] for i in SPEC.relative)
    world = World("ggpi/SparseAnt-v0", SPEC.names, relative, (), {"target": None}, "8 numbers")
    with sole_writer(out, "ggpi fit ant"):
        claim(out, world, asdict(config))
        ghms = fit_models(config, out)
    words = f"models: {out / 'models'}\nnext:   ggpi play {out} --reward target:x=2,y=2,radius=.3 --depth 2"
    return calibration_table(ratios(calibration(ghms))), words
