"""Processes that were forked after JAX had started: compiled programs would wait in them for ever, for threads that
only the parent has. They get an error instead.
"""

from __future__ import annotations

import os
import sys

_is_cut_off = False


def check_process() -> None:
    """Raises an error in a process that was forked after JAX had started in its parent."""
    if _is_cut_off:
        raise RuntimeError(
            "this process was forked after JAX had started in its parent, and JAX does not run in such a process: "
            "it would wait for ever. Start processes with multiprocessing.get_context('spawn'), or fork before the "
            "first use of JAX"
        )


def _after_fork() -> None:
    """Only looks: asking JAX could start it, or wait for a lock that another thread held during the fork."""
    global _is_cut_off
    bridge = sys.modules.get("jax._src.xla_bridge")
    _is_cut_off = _is_cut_off or bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
