"""OGBench's ant among pillars: where its walkers learn to walk, without knowledge of any maze.

The body is OGBench's own file: motors of 30, hips of ±30°, control steps of 5 × 0.02 s. Pillars as wide and as high as
the blocks of its mazes stand at random places, so that walkers also learn not to fall where they cannot go on.
"""

# MuJoCo's bindings are compiled and have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from ggpi.envs.ant.physics import REACH, Ground
from ggpi.envs.ant.task import HALF_WIDTH

SUBSTEPS = 5
WIDTH, HEIGHT = 4.0, 2.0
"""Of a pillar."""
GAP = 2 * REACH
"""The smallest distance between pillars."""
NUM_PILLARS = 10
MISSING = "OGBench's ant needs the extra: pip install '.[ogbench]' in the checkout, with a Python before 3.13"


@functools.cache
def ogbench_ground(integrator: str = "RK4", num_pillars: int = NUM_PILLARS) -> Ground:
    """OGBench's ant among pillars.

    Args:
        integrator: "RK4", OGBench's own, or "implicitfast", which is four times as fast.
        num_pillars: how many; their places are always the same.
    """
    spec = body()
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    pillars = _places(num_pillars)
    for place in pillars:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[*place, HEIGHT / 2],
            size=[WIDTH / 2, WIDTH / 2, HEIGHT / 2],
            contype=1,
            conaffinity=1,
        )
    return Ground(spec.compile(), SUBSTEPS, pillars, WIDTH)


def body() -> Any:
    """OGBench's file of the ant, to be changed and compiled."""
    found = find_spec("ogbench")
    if found is None or found.origin is None:
        raise ImportError(MISSING)
    return mujoco.MjSpec.from_file(str(Path(found.origin).parent / "locomaze" / "assets" / "ant.xml"))


def _places(count: int) -> np.ndarray:
    """Random places where ants start, apart from each other."""
    rng, places = np.random.default_rng(0), np.zeros((0, 2))
    while len(places) < count:
        place = rng.uniform(-HALF_WIDTH, HALF_WIDTH, 2) * 1.3
        if (np.abs(places - place).max(axis=-1) > WIDTH + GAP).all():
            places = np.vstack([places, place])
    return places
