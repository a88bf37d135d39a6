"""Detects processes that were forked after JAX had started, in which compiled programs would hang.

JAX's threads exist in the parent only, so a program in the child waits for them forever; `check_process` raises.
"""

from __future__ import annotations

import os
import sys

_is_cut_off = False


def check_process() -> None:
    """Raises in a process that was forked after JAX had started in its parent."""
    if _is_cut_off:
        raise RuntimeError(
            "this process was forked after JAX had started in its parent; JAX would hang in it. Start processes with "
            "multiprocessing.get_context('spawn'), or fork before the first use of JAX"
        )


def _after_fork() -> None:
    """Reads a variable of JAX; calling JAX could start it, or wait for a lock that was held during the fork."""
    global _is_cut_off
    bridge = sys.modules.get("jax._src.xla_bridge")
    _is_cut_off = _is_cut_off or bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
