"""The sparse-reward ant (extra `ant`): names are imported when used, so that its table needs no MuJoCo."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ggpi.envs.ant.observation import INDEX, NAMES, SPEC
from ggpi.envs.ant.task import reached

_LAZY = {
    "SparseAnt": "single",
    "SparseAntVector": "vector",
    "AntDynamics": "dynamics",
    "CHANGES": "physics",
    "CONTROL_STEP": "physics",
}

__all__ = ["INDEX", "NAMES", "SPEC", "reached", *_LAZY]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ggpi.envs.ant' has no attribute {name!r}")
    try:
        return getattr(import_module(f"ggpi.envs.ant.{_LAZY[name]}"), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "mujoco":
            raise
        raise ModuleNotFoundError(
            "the ant needs MuJoCo: pip install '.[ant]' in the checkout", name="mujoco"
        ) from error
