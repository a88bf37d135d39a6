"""MuJoCo's pool of threads, which all callers of a process share: one of them at a time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

TURN = threading.Lock()


def rolled_out(model: Any, data: list[Any], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """The states [n, steps, …] that follow states [n, …] under controls [n, steps, …]; `data` has room for each thread.

    Two threads that call MuJoCo at once with the same pool end the process.
    """
    from mujoco.rollout import rollout

    with TURN:
        return np.asarray(rollout(model, data, states, controls, persistent_pool=True)[0])
