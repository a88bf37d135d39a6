"""Variables of the environment that workers start with: the number of threads, and where JAX runs and caches.

They only have an effect before NumPy and JAX are imported.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping

KEPT = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "JAX_PLATFORMS",
    "MUJOCO_GL",
    "PYTHONPATH",
    "XDG_CACHE_HOME",
)
"""What workers take over from this process, if it is set here."""


def positive(count: int, what: str) -> int:
    """A number of processes or threads."""
    if operator.index(count) < 1:
        raise ValueError(f"{what} is at least 1, got {count}")
    return count


def variables(threads: int, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables for a worker whose tasks use so many threads.

    XLA takes the size of its thread pools from NPROC. A product of matrices that is split over threads is added up in
    another order, so with one thread XLA must not split either, even if a program was compiled for more.
    """
    count = str(positive(threads, "threads"))
    blas = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), count)
    eigen = "--xla_cpu_multi_thread_eigen=" + ("true" if threads > 1 else "false")
    flags = [flag for flag in environ.get("XLA_FLAGS", "").split() if "multi_thread_eigen" not in flag]
    kept = {name: environ[name] for name in KEPT if name in environ}
    return {**kept, **blas, "NPROC": count, "XLA_FLAGS": " ".join([*flags, eigen])}
